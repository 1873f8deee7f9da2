"""The pieces of one answer, put together from deltas that were lost, doubled, reordered, of several calls.

What is shown is always the beginning of one answer, in order and without gaps. The rules:

- A piece is shown once all before it, of the same call, have been.
- Another call that says the same is passed over as far as it was shown, and goes on from there: of calls
  that agree, whoever is ahead is shown.
- One that says something else and came later is shown from its beginning, after a `Restart`; those before
  it may not take that back. So there are never more restarts than calls.
- The recorded answer has the last word: what is missing of it is added; if it is not what was shown, it is
  shown whole after a `Restart`. Only then comes the `Finish`: what stands before one is what was recorded.
"""

from __future__ import annotations

from msgspec.structs import replace

from flyball.core.events import ModelAnswered, ModelFailed
from flyball.core.messages import Message, Part, Role, Text, Thinking, ToolCall
from flyball.inference.cut import events_of
from flyball.inference.stream import (
    Assembler,
    Finish,
    PartEnd,
    Restart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from flyball.orchestrate.elsewhere import Delta
from flyball.orchestrate.soundness import sound


class _Call:
    """What has come of one call."""

    __slots__ = ("agreed", "early", "events", "finished", "passed")

    def __init__(self) -> None:
        self.events: list[StreamEvent] = []
        self.early: dict[int, StreamEvent] = {}
        """Pieces that wait for one before them."""
        self.agreed = 0
        """How many of `events` are known to be shown."""
        self.finished = False
        self.passed = False
        """Whether a later call was shown in its place."""

    def take(self, number: int, event: StreamEvent) -> None:
        if number >= len(self.events):
            self.early.setdefault(number, event)
        while (following := self.early.pop(len(self.events), None)) is not None:
            if type(following) is Finish:
                self.finished = True
                return
            self.events.append(following)


class Pieces:
    """One model call as its reader sees it. Taking all deltas costs as much as there are deltas."""

    __slots__ = ("_calls", "_shown")

    def __init__(self) -> None:
        self._calls: dict[str, _Call] = {}
        self._shown: list[StreamEvent] = []

    @property
    def shown(self) -> tuple[StreamEvent, ...]:
        """What is shown of the answer, from its beginning; without what an engine itself took back."""
        began = max(
            (number for number, event in enumerate(self._shown, 1) if type(event) is Restart), default=0
        )
        return tuple(self._shown[began:])

    def message(self) -> Message:
        """What is shown, joined."""
        assembler = Assembler()
        for event in self.shown:
            assembler.feed(event)
        return assembler.message()

    def take(self, delta: Delta) -> list[StreamEvent]:
        """What can be shown now that this has come: often one piece, often none."""
        call = self._calls.setdefault(delta.call, _Call())
        call.take(delta.number, delta.event)
        events, shown = call.events, self._shown
        while call.agreed < min(len(events), len(shown)):
            if events[call.agreed] != shown[call.agreed]:
                return [] if call.passed else self._begin_again(call)
            call.agreed += 1
        new = events[len(shown) :]
        shown += new
        call.agreed = len(events)
        return new

    def complete(self, recorded: ModelAnswered | ModelFailed) -> list[StreamEvent]:
        """What is missing until the recorded answer and its `Finish`; of one that failed, until it broke."""
        message = recorded.message if isinstance(recorded, ModelAnswered) else recorded.partial
        if message is None:
            return []
        request_id = recorded.request_id if isinstance(recorded, ModelAnswered) else None
        *whole, finish = events_of(message, None, request_id)
        rest = self._rest(message, broken=isinstance(recorded, ModelFailed))
        if rest is None:
            self._shown, rest = whole, [Restart(), *whole]
        else:
            self._shown += rest
        return rest if isinstance(recorded, ModelFailed) else [*rest, finish]

    def _begin_again(self, call: _Call) -> list[StreamEvent]:
        for other in self._calls.values():
            other.agreed, other.passed = 0, other is not call
        self._shown = list(call.events)
        call.agreed = len(call.events)
        return [Restart(), *self._shown]

    def _rest(self, message: Message, *, broken: bool) -> list[StreamEvent] | None:
        """What leads from what is shown to a message; None where nothing does."""
        joined, closed = Assembler(), set[int]()
        for event in self._shown:
            joined.feed(event)
            if type(event) is PartEnd:
                closed.add(event.index)
            elif type(event) is Restart:
                closed.clear()
        begun = joined.message()
        whole = broken or any(
            call.finished and call.agreed == len(self._shown) for call in self._calls.values()
        )
        if whole and _alike(sound(begun)[0].parts, message.parts):
            return []  # part by part they may differ: an answer is made sound before it is recorded
        rest: list[StreamEvent] = []
        numbers = [index for index in range(len(message.parts)) if joined.part(index) is not None]
        if len(numbers) != len(begun.parts):
            return None
        for index, part in enumerate(message.parts):
            there = joined.part(index)
            missing = _whole(index, part) if there is None else _missing(index, there, part, closed)
            if missing is None:
                return None
            rest += missing
        return rest


def _whole(index: int, part: Part) -> list[StreamEvent]:
    """The events of one part of a message."""
    *events, _ = events_of(Message(Role.ASSISTANT, (part,)))
    return [replace(event, index=index) for event in events if not isinstance(event, Finish | Restart)]


def _missing(index: int, there: Part, part: Part, closed: set[int]) -> list[StreamEvent] | None:
    """The events from what is there of a part to the whole of it; None where it is not a beginning of it."""
    if index in closed:
        return [] if _alike((there,), (part,)) else None
    grown, more = part, ""
    delta: StreamEvent | None = None
    if isinstance(there, Text) and isinstance(part, Text) and part.text.startswith(there.text):
        grown, more = replace(there, text=part.text), part.text[len(there.text) :]
        delta = TextDelta(index, more)
    elif isinstance(there, Thinking) and isinstance(part, Thinking) and part.text.startswith(there.text):
        grown, more = replace(there, text=part.text), part.text[len(there.text) :]
        delta = ThinkingDelta(index, more)
    elif isinstance(there, ToolCall) and isinstance(part, ToolCall) and there.name == part.name:
        known = "" if there.args_json == "{}" else there.args_json
        if not part.args_json.startswith(known):
            return None
        grown, more = replace(there, args_json=part.args_json), part.args_json[len(known) :]
        delta = ToolCallDelta(index, more)
    elif there != part:
        return None
    ended = PartEnd(index, None if grown == part else part)
    return [ended] if delta is None or not more else [delta, ended]


def _alike(some: tuple[Part, ...], others: tuple[Part, ...]) -> bool:
    """Whether parts say the same. Call ids may differ: they are told apart as an answer is recorded."""
    return len(some) == len(others) and all(
        replace(one, id="") == replace(other, id="")
        if isinstance(one, ToolCall) and isinstance(other, ToolCall)
        else one == other
        for one, other in zip(some, others, strict=True)
    )

"""What of a stream may be told where nothing can be taken back, and in which order.

OpenAI's protocols have no word for what a `Restart` says, nor for the turns of an agent: a text that was told
is part of the answer. So what is told is always a beginning of the answer that is given without a stream:

- An agent that has no tools of its own, and whose answers nobody looks at first, is told as it speaks
  (`live`). Should its answer begin again, what was told is not told twice; where it goes on with other words
  the stream ends with an error (`Diverged`).
- Of any other, nobody knows whether a text is the answer before the turn is over: the text is held, and told
  whole.
- Of one whose answers a person approves, the stream has nothing but what was approved (`System.stream`).
- With `loose` a client wants text as it comes all the same. Then what is said before a call of an agent's own
  tool stays where it was told, and the next text is a new paragraph.
- What the model thinks is told as it comes, and so is what it said in turns before the last: as thoughts.
  Once the answer has begun there are no more of them.
- Calls of the client's tools are told as they come where they are certain to be recorded so, else at the end.

What is told, joined, is `Joined`: a stream and an answer at once are made of the same.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import assert_never

from msgspec import Struct

from flyball.adapters.http.openai.call_ids import call_name
from flyball.adapters.http.openai.said import Arguments, Call, Said, Thought, Words
from flyball.core.errors import StreamRestarted
from flyball.core.messages import Text, Thinking, ToolCall
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from flyball.orchestrate.contracts import SystemResponse

_APART = "\n\n"


class How(Struct, frozen=True):
    """How a stream is told.

    `loop_id` is the loop's; `live` and `loose` say whether text is told as it comes; `calls` are the
    client's tools whose calls are, and `taken` the ids that calls cannot have any more.
    """

    loop_id: str
    live: bool = False
    loose: bool = False
    calls: Collection[str] = ()
    taken: Collection[str] = ()


class Diverged(StreamRestarted):
    """What was told is not how the answer begins: it was begun again, with other words."""


class Telling:
    """Tells of one stream. It costs the same for each piece, however long the stream is."""

    def __init__(self, how: How) -> None:
        self._how = how
        self._thinking = self._apart = False
        """Whether a thought was told, and whether the next one is of another answer."""
        self._over = False
        """Whether the answer that came last is complete: another piece belongs to another turn."""
        self._held: list[str] = []
        """The text of the answer that is coming, where it is held."""
        self._told: list[str] = []
        """The text that was told."""
        self._before: str | None = None
        """What was told of an answer that has begun again."""
        self._at = 0
        """How much of that has come again."""
        self._calls: dict[int, _Open] = {}
        """The calls that are being told, by the numbers of their parts."""
        self._given: dict[str, _Open] = {}
        """All calls that were told, by their ids."""
        self._whole = False
        """Whether the calls that come are told at the end: one before them has to be."""

    def feed(self, piece: StreamEvent) -> list[Said]:
        """What is told with a piece.

        Raises:
            Diverged: the answer began again, and goes on with other words than were told.
        """
        said: list[Said] = []
        if isinstance(piece, Finish):
            self._over = True
            return said
        if self._over or isinstance(piece, Restart):
            said = self._anew(kept=self._over)
        match piece:
            case TextDelta():
                said += self._text(piece.text)
            case ThinkingDelta():
                said += self._think(piece.text)
            case PartStart():
                said += self._start(piece)
            case ToolCallDelta():
                said += self._arguments(piece)
            case PartEnd():
                self._calls.pop(piece.index, None)
            case Restart():
                pass
            case _:
                assert_never(piece)
        return said

    def end(self, response: SystemResponse) -> list[Said]:
        """What is left to be told of a request that was answered.

        Raises:
            Diverged: what was told is not how the answer begins.
        """
        said: list[Said] = []
        told = "".join(self._told)
        if not self._how.loose:
            if not response.content.startswith(told):
                raise _diverged()
            if rest := response.content[len(told) :]:
                said.append(Words(rest))
        elif not told and response.content:
            said.append(Words(response.content))
        wanted = [call_name(self._how.loop_id, one.tool_call_id) for one in response.calls_wanted]
        if any(name not in wanted for name in self._given):
            raise _diverged()
        for name, one in zip(wanted, response.calls_wanted, strict=True):
            call = self._given.get(name)
            if call is None:
                call = _Open(len(self._given), name)
                self._given[name] = call
                said.append(Call(call.number, name, one.tool_name))
            if not one.args_json.startswith(before := "".join(call.told)):
                raise _diverged()
            if rest := one.args_json[len(before) :]:
                said.append(Arguments(call.number, rest))
        return said

    def _anew(self, *, kept: bool) -> list[Said]:
        """Another answer begins, after one that was complete (`kept`) or that is void."""
        if self._given:
            raise _diverged()
        self._over = False
        held, self._held = "".join(self._held), []
        self._calls.clear()
        self._whole = False
        self._apart = True
        if self._told and not self._how.loose:
            self._before, self._at = "".join(self._told), 0
        elif self._told:
            self._told.append(_APART)
            return [Words(_APART)]
        said = self._think(held) if kept else []
        self._apart = True
        return said

    def _text(self, text: str) -> list[Said]:
        if not text:
            return []
        if not (self._how.live or self._how.loose):
            self._held.append(text)
            return []
        if self._before is not None:
            again = text[: len(self._before) - self._at]
            if not self._before.startswith(again, self._at):
                raise _diverged()
            self._at += len(again)
            text = text[len(again) :]
            if not text:
                return []
            self._before = None
        self._told.append(text)
        return [Words(text)]

    def _think(self, text: str) -> list[Said]:
        if not text or self._told or self._given:
            return []
        if self._apart and self._thinking:
            text = _APART + text
        self._thinking, self._apart = True, False
        return [Thought(text)]

    def _start(self, piece: PartStart) -> list[Said]:
        part = piece.part
        if isinstance(part, Text):
            return self._text(part.text)
        if isinstance(part, Thinking):
            return self._think(part.text)
        if not isinstance(part, ToolCall):
            return []
        how = self._how
        name = call_name(how.loop_id, part.id) if part.id else ""
        certain = part.name in how.calls and name and part.id not in how.taken and name not in self._given
        if self._whole or not (certain and how.live):
            self._whole = True
            return []
        call = _Open(len(self._given), name)
        self._calls[piece.index] = self._given[name] = call
        said: list[Said] = [Call(call.number, name, part.name)]
        return [*said, *call.more("" if part.args_json == "{}" else part.args_json)]

    def _arguments(self, piece: ToolCallDelta) -> list[Said]:
        call = self._calls.get(piece.index)
        return [] if call is None else call.more(piece.args_json)


class _Open:
    """A call that is told, and what was told of its arguments."""

    __slots__ = ("name", "number", "told")

    def __init__(self, number: int, name: str) -> None:
        self.number = number
        self.name = name
        self.told: list[str] = []

    def more(self, text: str) -> list[Said]:
        if not text:
            return []
        self.told.append(text)
        return [Arguments(self.number, text)]


def _diverged() -> Diverged:
    return Diverged(
        "the answer had to be begun again, and goes on with other words than were sent: ask again"
    )

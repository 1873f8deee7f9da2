"""A loop that is driven elsewhere, as a run's handle shows it: by its journal and its deltas.

What the handle shows is the fold of the journal as far as the caller has read: messages and usage grow with
the steps and the answers that were given out, also where the loop is ahead.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.effects import Infer
from flyball.core.errors import JournalCorrupt, UserError
from flyball.core.events import Event, FlowStarted, ModelAnswered, ModelFailed, Stage
from flyball.core.messages import Message, Role
from flyball.core.signals import Signal, SignalType
from flyball.inference.stream import Finish, Restart, StreamEvent
from flyball.inference.text import text_pieces
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.edited import editor_followed, has_edited
from flyball.orchestrate.elsewhere import Delta, Following
from flyball.orchestrate.machine import apply, fold, owed, take
from flyball.orchestrate.machines import AnyState, is_flow, start
from flyball.orchestrate.machines import take as take_any
from flyball.orchestrate.output import Reader
from flyball.orchestrate.pieces import Pieces
from flyball.orchestrate.result import RunResult, deferred, failure
from flyball.orchestrate.runs import Step, begun_at, result_from, step_of
from flyball.orchestrate.state import State, turns_before
from flyball.orchestrate.streaming import is_running
from flyball.orchestrate.tracing import trace_from

if TYPE_CHECKING:
    from flyball.observe.trace import RunTrace


class Recorded(Struct, frozen=True):
    """An event of a loop, and its number: how many events the loop has with it."""

    number: int
    event: Event


async def told(following: Following, loop_id: str, after: int = 0) -> AsyncGenerator[Recorded | StreamEvent]:
    """What happens in a loop that is there or is going to be, until it is over. See `Runtime.follow`."""
    early: list[Delta] = []
    while not (events := await following.journal.read(loop_id)):
        early += await following.news(0)
    if is_flow(events):
        async for one in _flow_told(following, events, after):
            yield one
        return
    number = following.length = max(1, min(after, len(events)))
    loop = Followed(following, events)
    loop.take_in(early)
    if after < 1:
        yield Recorded(1, events[0])
    async with aclosing(loop.course()) as course:
        async for one in course:
            if isinstance(one, Event):
                number += 1
                if number > after:
                    yield Recorded(number, one)
            elif number >= after:
                yield one


async def _flow_told(following: Following, events: list[Event], after: int) -> AsyncGenerator[Recorded]:
    """The events of a flow, as they come. The pieces of answers are told by the loops under it."""
    first = events[0]
    assert isinstance(first, FlowStarted), "a flow begins so"
    state, number = start(first), 0
    while True:
        for event in events:
            number += 1
            if number > 1 and not take_any(state, event):
                raise _misfit(state, event)
            if number > after:
                yield Recorded(number, event)
        if state.at == "done":
            return
        await following.news(number)
        events = await following.journal.read(state.loop_id, number)


def _misfit(state: AnyState, event: Event) -> JournalCorrupt:
    where = f" in turn {state.turn}" if isinstance(state, State) else ""
    return JournalCorrupt(
        f"loop {state.loop_id!r}: {type(event).__name__} does not fit: it stands at {state.at!r}{where}",
        loop_id=state.loop_id,
    )


async def until_over(following: Following, loop_id: str) -> State:
    """Wait until a loop is over, whatever it waits for; its state.

    Raises:
        FlyballError: the loop can be driven on no longer.
    """
    events = await following.journal.read(loop_id)
    state, length = fold(events, f"loop {loop_id}"), len(events)
    while state.at != "done":
        await following.news(length)
        for event in await following.journal.read(loop_id, length):
            apply(state, event)
            length += 1
    return state


class Followed:
    """One loop, as far as somebody has been told about it."""

    def __init__(self, following: Following, events: list[Event]) -> None:
        self.state = fold(events[: following.length])
        self._following = following
        self._length = len(events)
        self._ahead = deque(events[following.length :])
        """What is recorded and was not shown yet."""
        self._deltas: dict[str, list[Delta]] = {}
        """What came of model calls whose turn was not reached yet, by effect."""
        self._open: tuple[str, Pieces] = ("", Pieces())
        """The answer that is being shown, with the effect that it answers."""

    @property
    def done(self) -> bool:
        """Whether all has been shown, to the end."""
        return self.state.at == "done" and not self._ahead

    async def course(self) -> AsyncGenerator[StreamEvent | Event]:
        """All that comes, to the end: the pieces of each answer, and each event once it is folded."""
        reading, unfinished = "", False
        while not self.done:
            effect = self._inference()
            if effect is None:
                yield await self._next()
                continue
            pieces = self._pieces_of(effect)
            events: list[StreamEvent] = []
            if effect != reading:
                reading = effect
                events = [Restart()] if unfinished else []
                events += pieces.shown
            for delta in self._deltas.pop(effect, ()):
                events += pieces.take(delta)
            recorded = self._ahead[0] if self._ahead else None
            if isinstance(recorded, ModelAnswered | ModelFailed):
                events += pieces.complete(recorded)
            for event in events:
                unfinished = type(event) is not Finish
                yield event
            if recorded is None:
                await self._hear()
            else:
                yield await self._next()

    def take_in(self, deltas: Iterable[Delta]) -> None:
        """Keep deltas until the answer that they are of is shown."""
        for delta in deltas:
            if delta.turn >= self.state.turn:  # others are late: their answer is recorded and was shown
                self._deltas.setdefault(delta.effect, []).append(delta)

    def _inference(self) -> str | None:
        """The id of the turn's model call that is owed, as far as was shown."""
        for effect in owed(self.state):
            if type(effect) is Infer and effect.purpose == "turn":
                return effect.id
        return None

    def _pieces_of(self, effect: str) -> Pieces:
        if self._open[0] != effect:
            self._open = effect, Pieces()
        return self._open[1]

    async def _next(self) -> Event:
        """Fold what was recorded next, and wait for it if need be."""
        while not self._ahead:
            await self._hear()
        event = self._ahead.popleft()
        if not take(self.state, event):
            raise _misfit(self.state, event)
        return event

    async def _hear(self) -> None:
        """Wait for news, and take them in."""
        self.take_in(await self._following.news(self._length))
        events = await self._following.journal.read(self.state.loop_id, self._length)
        self._length += len(events)
        self._ahead += events


class FollowedLoop(Followed):
    """One loop, followed by one reader, who may speak to it and asks for its result."""

    def __init__(self, following: Following, bindings: Bindings, events: list[Event]) -> None:
        super().__init__(following, events)
        self._bindings = bindings
        self._shown = events[: following.length] if bindings.stages.tracings else None
        """What was shown, if a trace is made of it."""
        self._editor: RunResult[Any] | None = None

    @classmethod
    async def join(cls, following: Following, bindings: Bindings, loop_id: str) -> FollowedLoop:
        """Begin to show a loop that is being followed."""
        return cls(following, bindings, await following.journal.read(loop_id))

    @property
    def reader(self) -> Reader:
        """What reads its answers as the output."""
        return self._bindings.output

    async def _next(self) -> Event:
        event = await super()._next()
        if self._shown is not None:
            self._shown.append(event)
        return event

    async def _hear(self) -> None:
        """Wait for news, unless none will come before somebody gives the loop results.

        Raises:
            Deferred: it waits for them.
        """
        if waits_for_results(self.state):
            raise deferred(self.state, self._following.journal, self._bindings.tracker)
        await super()._hear()

    async def signal(self, signal: Signal) -> Stage:
        """Say something to the loop, where it stands now; that may be ahead of what was shown."""
        stage = await self._following.signal(signal)
        while signal.type is SignalType.RETRY and self.done:
            await self._next()  # there is more to show again
        return stage

    def result(self) -> RunResult[Any]:
        """The result of a loop that is over."""
        bindings, journal = self._bindings, self._following.journal
        result = result_from(self.state, bindings.output, journal, bindings.tracker, self._trace())
        return result if self._editor is None else replace(result, editor=self._editor)

    def _trace(self) -> RunTrace | None:
        return None if self._shown is None else trace_from(self._shown, self._bindings.stages)

    def response(self) -> Message | None:
        """What has been shown of the answer that is being read, or was last."""
        effect, pieces = self._open
        if not effect:
            return None
        if effect != self._inference():  # it is recorded, with all that is known of it
            for message in reversed(self.state.history):
                if message.role is Role.ASSISTANT:
                    return message
        return pieces.message()

    async def step(self) -> Step | None:
        """The next turn, once it is recorded. None when the run is over."""
        state = self.state
        while state.turn == turns_before(state) and not self.done:
            await self._next()
        if self.done:
            return None
        turn, begun = state.turn, begun_at(state)
        while not self.done and state.turn == turn:
            await self._next()
        await self._edit()
        return step_of(turn, state.history[begun:])

    async def _edit(self) -> None:
        """Wait for the editor, once all that the architect said has been shown."""
        if self._editor is None and self.done and has_edited(self.state):
            journal = self._following.journal
            self._editor = await editor_followed(self._bindings, journal, self.state)

    def text(self, before: AsyncGenerator[Any] | None) -> AsyncGenerator[str]:
        """The text of `events`, piece by piece."""
        return text_pieces(self.events(before))

    async def events(self, before: AsyncGenerator[Any] | None) -> AsyncGenerator[StreamEvent]:
        """The pieces of the answers, from the beginning of the one that is open. `before` ends here.

        Raises:
            UserError: another task is reading just now.
            FlyballError: the run's own failure, at its end.
        """
        if before is not None:
            if is_running(before):
                raise UserError(
                    "a stream is read by one reader at a time, and another task is reading this one"
                )
            await before.aclose()
        async with aclosing(self.course()) as course:
            async for one in course:
                if not isinstance(one, Event):
                    yield one
        bindings = self._bindings
        if (error := failure(self.state, self._following.journal, bindings.tracker)) is not None:
            error.partial = replace(error.partial, trace=self._trace())
            raise error
        await self._edit()

"""Runs that a caller takes part in: step by step, or as a stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any, Generic, Protocol

from msgspec import UNSET, Struct

from flyball.core.apart import messages_apart
from flyball.core.errors import AgentRunClosed, SignalRefused, UserError
from flyball.core.events import Outcome, Stage
from flyball.core.messages import Message, ToolResult
from flyball.core.signals import Signal, SignalType
from flyball.core.snapshot import RunSnapshot
from flyball.core.usage import RunUsage
from flyball.inference.stream import StreamEvent
from flyball.inference.text import text_so_far
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.output import Reader
from flyball.orchestrate.partial_output import PartialOutput, partial_outputs, same
from flyball.orchestrate.result import OutputT, RunResult, deferred, failure
from flyball.orchestrate.signalling import as_signal
from flyball.orchestrate.snapshot import snapshot_of
from flyball.orchestrate.state import State
from flyball.orchestrate.streaming import is_running

if TYPE_CHECKING:
    from flyball.observe.cost import CostTracker
    from flyball.observe.trace import RunTrace


class Step(Struct, frozen=True):
    """One turn: the model's message, and the results of the calls in it."""

    turn: int
    message: Message | None
    results: tuple[ToolResult, ...] = ()


class Loop(Protocol):
    """What a run's handle needs of whoever drives the loop, here or elsewhere."""

    @property
    def state(self) -> State:
        """The fold of what the caller has been shown."""
        ...

    @property
    def done(self) -> bool:
        """Whether it is over, and recorded as such."""
        ...

    async def signal(self, signal: Signal) -> Stage:
        """Say something to the loop; recorded when this returns, with the stage that it is in then."""
        ...

    @property
    def reader(self) -> Reader:
        """What reads its answers as the output."""
        ...

    def result(self) -> RunResult[Any]:
        """The result of a loop that is over."""
        ...

    def response(self) -> Message | None:
        """What has come of the answer that is being read, or was last; None before the first."""
        ...

    async def step(self) -> Step | None:
        """The next turn; None when the run is over."""
        ...

    def text(self, before: AsyncGenerator[Any] | None) -> AsyncGenerator[str]:
        """The text of the answers, piece by piece. `before` is a former reading, which ends here."""
        ...

    def events(self, before: AsyncGenerator[Any] | None) -> AsyncGenerator[StreamEvent]:
        """The pieces of the answers. `before` is a former reading, which ends here."""
        ...


class _Run(Generic[OutputT]):
    """What the two kinds share: the loop, its result, and signals to it."""

    __slots__ = ("_left", "_loop")

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._left = False

    def leave(self) -> None:
        """The block of the run is left: nothing more is done from here. The loop stays as it is recorded."""
        self._left = True

    def _check_open(self) -> None:
        if self._left and not self._loop.done:
            raise AgentRunClosed(
                "the block of the run was left before its end: "
                f"go on with agent.resume({self.loop_id!r}, journal)",
                loop_id=self.loop_id,
            )

    @property
    def loop_id(self) -> str:
        """The loop's id."""
        return self._loop.state.loop_id

    @property
    def done(self) -> bool:
        """Whether the run is over."""
        return self._loop.done

    @property
    def messages(self) -> tuple[Message, ...]:
        """The history so far."""
        return messages_apart(self._loop.state.history)

    @property
    def usage(self) -> RunUsage:
        """What was used so far."""
        return self._loop.state.usage

    def snapshot(self) -> RunSnapshot:
        """The run as far as it was shown: what another can go on from by `snapshot=`, also in mid-run."""
        return snapshot_of(self._loop.state, SYSTEM_CLOCK.now())

    async def signal(
        self,
        signal: Signal | SignalType | str,
        text: str = "",
        call_id: str | None = None,
        *,
        by: str = "",
    ) -> Stage:
        """Send a signal: cancel, pause, resume, approve, reject, feedback, retry or detach.

        It is recorded when this returns, and gives the stage that the loop is in then. One whose id was taken
        before is not taken again, and that is no error. After a retry there are more steps, or pieces.

        Raises:
            SignalRefused: it does not fit where the loop stands; it says which do.
            UserError: there is no such signal.
        """
        return await self._loop.signal(as_signal(signal, text, call_id, by))

    async def cancel(self, reason: str = "") -> Stage:
        """Cancel the run. What it did so far stays recorded."""
        return await self.signal(SignalType.CANCEL, reason)

    @property
    def result(self) -> RunResult[OutputT]:
        """The result of a run that is over.

        Raises:
            AgentRunClosed: it is not over yet.
            FlyballError: the run's own failure.
        """
        if not self._loop.done:
            raise AgentRunClosed(
                "the run is not over: iterate to its end before asking for its result",
                loop_id=self.loop_id,
            )
        return self._loop.result()


class AgentRun(_Run[OutputT]):
    """A run taken step by step. Nothing runs while the caller holds a step, where the loop is driven here.

    A driver that runs it elsewhere does not wait: its steps are given out as they were recorded.
    """

    __slots__ = ("_stepping",)

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._stepping = False

    def __aiter__(self) -> AsyncIterator[Step]:
        return self._steps()

    async def next(self) -> Step | None:
        """One turn: a model call and the handling of its tool calls. None when the run is over.

        What comes before the first turn (prompt functions) belongs to its step.

        Raises:
            UserError: another task takes a step just now.
            AgentRunClosed: the block was left before the run's end.
            FlyballError: the run's own failure, in the place of None; the step that it failed in comes first.
        """
        if self._stepping:
            raise UserError("steps are taken one after the other, and another task is taking one of this run")
        self._check_open()
        self._stepping = True
        try:
            step = await self._loop.step()
        finally:
            self._stepping = False
        if step is None and self._loop.state.error is not None:
            self._loop.result()  # raises
        return step

    async def close(self, reason: str = "the run was closed") -> None:
        """End a run before its end: it is cancelled, and what its end owes (deliveries, children) is done.

        One that is over stays as it is. Without it, a run that is left can be resumed.
        """
        if self.done:
            return
        with suppress(SignalRefused):  # elsewhere, it may have come to its end by itself
            await self.cancel(reason)
        while await self._loop.step() is not None:
            pass

    async def _steps(self) -> AsyncIterator[Step]:
        while (step := await self.next()) is not None:
            yield step


def begun_at(state: State) -> int:
    """Where in the history the turn began that a loop stands in, perhaps in its middle."""
    return len(state.history) - bool(state.calls)


def step_of(turn: int, added: list[Message]) -> Step:
    """The step of a turn, from the messages that it added to the history."""
    message = next((message for message in added if message.role == "assistant"), None)
    results = tuple(result for added_message in added for result in added_message.tool_results)
    return Step(turn, message, results)


class StreamedRun(_Run[OutputT]):
    """A run whose model calls are streamed. Driven here, it goes as far as the caller reads, and no further.

    A streamed run leaves the same journal as a plain one: the pieces pass by, the message is recorded. It
    is read by one reader at a time: who begins to read anew ends the reading before, and reads the answer
    that is open from its beginning. (Driven here, the model call that was under way is made again.) Driven
    elsewhere, pieces that were lost on the way are made up for from the recorded answer, and a model call
    that was made again and says something else than was read is told by a `Restart`.

    Reading a run that fails, whichever way, gives what came of it, and then raises the run's failure.
    """

    __slots__ = ("_reading",)

    def __init__(self, loop: Loop) -> None:
        super().__init__(loop)
        self._reading: AsyncGenerator[Any] | None = None

    def events(self) -> AsyncIterator[StreamEvent]:
        """All pieces of all the model's answers, in order.

        Raises:
            FlyballError: the run's own failure, at its end.
        """
        self._check_open()
        self._reading = pieces = self._loop.events(self._reading)
        return pieces

    def text(self, *, delta: bool = True, debounce_by: float | None = None) -> AsyncIterator[str]:
        """The text of the answers: piece by piece, or, with `delta=False`, all of it so far each time.

        With `debounce_by`, what comes within so many seconds is given out as one, and read ahead for as long.

        Raises:
            StreamRestarted: a model call was made again and has other text than was given out. With
                `delta=False` there is nothing to take back: the next text is the right one.
            FlyballError: the run's own failure, at its end.
        """
        self._check_open()
        before = self._reading
        pieces = self._loop.text(before) if delta else text_so_far(self._loop.events(before))
        if debounce_by is not None:
            from flyball.inference.debouncing import debounced

            pieces = debounced(pieces, debounce_by, joined=delta)
        self._reading = pieces
        return pieces

    def stream_output(self, *, debounce_by: float | None = 0.1) -> AsyncIterator[OutputT]:
        """The output as it grows: what has come of it, validated as far as that goes, and last the output.

        Each is valid by its type and another than the one before; what is incomplete and cannot be validated
        yet is passed over. Output validators look at the last one only, which is the run's output. There is
        at most one in `debounce_by` seconds; None gives each that can be told apart at little cost. Where an
        answer is refused, or begins again, the next one begins anew.

        Raises:
            FlyballError: the run's own failure, at its end.
        """
        self._check_open()
        if debounce_by is not None:
            from flyball.inference.debouncing import sensible_window

            sensible_window(debounce_by)
        self._reading = outputs = self._outputs(self._loop.events(self._reading), debounce_by)
        return outputs

    async def _outputs(
        self, events: AsyncGenerator[StreamEvent], debounce_by: float | None
    ) -> AsyncGenerator[OutputT]:
        following = PartialOutput(self._loop.reader, self._loop.state.spec.output)
        given: Any = UNSET
        async with aclosing(partial_outputs(events, following, debounce_by)) as outputs:
            async for given in outputs:
                yield given
        output = self.result.output
        if not same(output, given):
            yield output

    @property
    def response(self) -> Message | None:
        """The model's answer as far as it has come: the one under way, or the last; None before the first.

        `messages` are what is recorded: before anything is read, the history that the run begins with.
        """
        return self._loop.response()

    async def close(self) -> None:
        """End the reading, and, driven here, the model call under way. The journal stays as it is."""
        self.leave()
        if self._reading is not None and not is_running(self._reading):
            await self._reading.aclose()

    async def get_output(self) -> OutputT:
        """Read to the end, and give the output."""
        return (await self.get_result()).output

    async def get_result(self) -> RunResult[OutputT]:
        """Read to the end, and give the result. What is being read is read on: no model call is made again.

        Raises:
            AgentRunClosed: the block was left before the run's end.
            FlyballError: the run's own failure.
        """
        self._check_open()
        if self._reading is not None and not is_running(self._reading):
            async for _ in self._reading:
                pass
        if not self.done:
            async for _ in self.events():
                pass
        return self.result


def result_of(drive: Drive) -> RunResult[Any]:
    """The result of a drive that is over.

    Raises:
        FlyballError: the loop failed or was cancelled; the error carries what was reached as `partial`.
    """
    state, bindings = drive.state, drive.bindings
    if state.error is None:
        return RunResult(drive.read_output(), state, drive.journal, None, bindings.tracker, drive.trace)
    return result_from(state, bindings.output, drive.journal, bindings.tracker, drive.trace)


def result_from(
    state: State,
    reader: Reader,
    journal: Journal,
    tracker: CostTracker | None = None,
    trace: RunTrace | None = None,
) -> RunResult[Any]:
    """The result of a loop that is over, from its state alone; `tracker` says what it cost.

    Raises:
        Deferred: it waits for results from outside.
        FlyballError: the loop failed or was cancelled; the error carries what was reached as `partial`.
    """
    if state.error is None and state.outcome is Outcome.SUCCESS:
        return RunResult(reader.of(state), state, journal, None, tracker, trace)
    if waits_for_results(state):
        raise deferred(state, journal, tracker)
    raise failure(state, journal, tracker, trace) or AgentRunClosed(
        f"loop {state.loop_id!r} is not over", loop_id=state.loop_id
    )

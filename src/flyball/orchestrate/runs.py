"""Runs that a caller takes part in: step by step, or as a stream."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Generic

from msgspec import Struct

from flyball.core.errors import AgentRunClosed, UserError
from flyball.core.events import Outcome
from flyball.core.messages import Message, ToolResult
from flyball.core.signals import Signal, SignalType
from flyball.core.usage import RunUsage
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.output import Reader
from flyball.orchestrate.result import OutputT, RunResult
from flyball.orchestrate.state import State
from flyball.orchestrate.streaming import is_running, stream


class Step(Struct, frozen=True):
    """One turn: the model's message, and the results of the calls in it."""

    turn: int
    message: Message | None
    results: tuple[ToolResult, ...] = ()


class _Run(Generic[OutputT]):
    """What the two kinds share: the drive, its result, and signals to it."""

    __slots__ = ("_drive",)

    def __init__(self, drive: Drive) -> None:
        self._drive = drive

    @property
    def loop_id(self) -> str:
        """The loop's id."""
        return self._drive.loop_id

    @property
    def done(self) -> bool:
        """Whether the run is over."""
        return self._drive.done

    @property
    def messages(self) -> tuple[Message, ...]:
        """The history so far."""
        return tuple(self._drive.state.history)

    @property
    def usage(self) -> RunUsage:
        """What was used so far."""
        return self._drive.state.usage

    async def signal(
        self, signal: Signal | SignalType | str, text: str = "", call_id: str | None = None
    ) -> bool:
        """Send a signal: cancel, pause, resume, approve, reject or feedback. False if it does not fit now.

        Raises:
            UserError: there is no such signal.
        """
        if not isinstance(signal, Signal):
            if signal not in tuple(SignalType):
                raise UserError(f"there is no signal {signal!r}; there are {', '.join(SignalType)}")
            signal = Signal(SignalType(signal), text=text, call_id=call_id)
        return await self._drive.signal(signal)

    async def cancel(self, reason: str = "") -> bool:
        """Cancel the run. What it did so far stays recorded."""
        return await self.signal(SignalType.CANCEL, reason)

    @property
    def result(self) -> RunResult[OutputT]:
        """The result of a run that is over.

        Raises:
            AgentRunClosed: it is not over yet.
            FlyballError: the run's own failure.
        """
        if not self._drive.done:
            raise AgentRunClosed(
                "the run is not over: iterate to its end before asking for its result",
                loop_id=self.loop_id,
            )
        return result_of(self._drive)


class AgentRun(_Run[OutputT]):
    """A run taken step by step. Nothing runs while the caller holds a step."""

    __slots__ = ()

    def __aiter__(self) -> AsyncIterator[Step]:
        return self._steps()

    async def next(self) -> Step | None:
        """One turn: a model call and the handling of its tool calls. None when the run is over.

        What comes before the first turn (prompt functions) belongs to its step.
        """
        drive = self._drive
        while drive.state.turn == 0 and not drive.done:
            drive.enter()
            await drive.advance()
        if drive.done:
            return None
        state = drive.state
        turn = state.turn
        begun = len(state.history) - bool(state.calls)  # a run that is resumed may stand in a turn's middle
        drive.enter()
        while not drive.done and drive.state.turn == turn:
            await drive.advance()
        await drive.flush()
        return _step(turn, drive.state.history[begun:])

    async def _steps(self) -> AsyncIterator[Step]:
        while (step := await self.next()) is not None:
            yield step


def _step(turn: int, added: list[Message]) -> Step:
    message = next((message for message in added if message.role == "assistant"), None)
    results = tuple(result for added_message in added for result in added_message.tool_results)
    return Step(turn, message, results)


class StreamedRun(_Run[OutputT]):
    """A run whose model calls are streamed. It goes on as far as the caller reads, and no further.

    A streamed run leaves the same journal as a plain one: the pieces pass by, the message is recorded.
    It is read by one reader at a time: who begins to read anew ends the reading before, and the model call
    that was under way is made again.
    """

    __slots__ = ("_reading",)

    def __init__(self, drive: Drive) -> None:
        super().__init__(drive)
        self._reading: AsyncGenerator[Any] | None = None

    def events(self) -> AsyncIterator[StreamEvent]:
        """All pieces of all the model's answers, in order."""
        self._reading = pieces = stream(self._drive, self._reading)
        return pieces

    def text(self, *, delta: bool = True) -> AsyncIterator[str]:
        """The text of the answers: piece by piece, or, with `delta=False`, all of it so far each time."""
        self._reading = pieces = stream(self._drive, self._reading, only_text=True)
        return pieces if delta else _cumulative(pieces)

    async def close(self) -> None:
        """End the reading; the model call that is under way ends too, and the journal stays as it is."""
        if self._reading is not None and not is_running(self._reading):
            await self._reading.aclose()

    async def get_output(self) -> OutputT:
        """Read to the end, and give the output."""
        async for _ in self.events():
            pass
        return self.result.output


async def _cumulative(pieces: AsyncIterator[str]) -> AsyncIterator[str]:
    so_far: list[str] = []
    async for piece in pieces:
        so_far.append(piece)
        yield "".join(so_far)


def result_of(drive: Drive) -> RunResult[Any]:
    """The result of a drive that is over.

    Raises:
        FlyballError: the loop failed or was cancelled; the error carries what was reached as `partial`.
    """
    state = drive.state
    if state.error is None:
        return RunResult(drive.read_output(), state, drive.journal)
    return result_from(drive.state, drive.bindings.output, drive.journal)


def result_from(state: State, reader: Reader, journal: Journal) -> RunResult[Any]:
    """The result of a loop that is over, from its state alone.

    Raises:
        FlyballError: the loop failed or was cancelled; the error carries what was reached as `partial`.
    """
    if state.error is None and state.outcome is Outcome.SUCCESS:
        return RunResult(reader.of(state), state, journal)
    if state.error is None:
        raise AgentRunClosed(f"loop {state.loop_id!r} is not over", loop_id=state.loop_id)
    failure = state.error.exception()
    failure.partial = RunResult(None, state, journal)
    raise failure

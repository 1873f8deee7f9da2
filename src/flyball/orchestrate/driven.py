"""A loop that is driven in this process, as a run's handle shows it: it goes as far as it is read."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from flyball.core.signals import Signal
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.runs import Step, begun_at, result_of, step_of
from flyball.orchestrate.state import State
from flyball.orchestrate.streaming import stream


class DrivenLoop:
    """One loop, driven by whoever reads it."""

    __slots__ = ("drive",)

    def __init__(self, drive: Drive) -> None:
        self.drive = drive

    @property
    def state(self) -> State:
        """Where it stands."""
        return self.drive.state

    @property
    def done(self) -> bool:
        """Whether it is over, and recorded as such."""
        return self.drive.done

    async def signal(self, signal: Signal) -> bool:
        """Say something to the loop."""
        return await self.drive.signal(signal)

    def result(self) -> RunResult[Any]:
        """The result of a loop that is over."""
        return result_of(self.drive)

    async def step(self) -> Step | None:
        """Drive one turn. None when the run is over."""
        drive = self.drive
        while drive.state.turn == 0 and not drive.done:
            drive.enter()
            await drive.advance()
        if drive.done:
            return None
        turn, begun = drive.state.turn, begun_at(drive.state)
        drive.enter()
        while not drive.done and drive.state.turn == turn:
            await drive.advance()
        await drive.flush()
        return step_of(turn, drive.state.history[begun:])

    def text(self, before: AsyncGenerator[Any] | None) -> AsyncGenerator[str]:
        """The text of `events`, piece by piece."""
        return stream(self.drive, before, only_text=True)

    def events(self, before: AsyncGenerator[Any] | None) -> AsyncGenerator[StreamEvent]:
        """Drive to the end; the pieces of the answers as they come. `before` ends here."""
        return stream(self.drive, before)

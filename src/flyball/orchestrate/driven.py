"""A loop that is driven in this process, as a run's handle shows it: it goes as far as it is read."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any, TypeVar

from flyball.core.events import Stage
from flyball.core.messages import Message
from flyball.core.signals import Signal
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.edited import edited, has_edited
from flyball.orchestrate.output import Reader
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.runs import Step, begun_at, result_of, step_of
from flyball.orchestrate.state import State, turns_before
from flyball.orchestrate.streaming import stream

PieceT = TypeVar("PieceT")


class DrivenLoop:
    """One loop, driven by whoever reads it."""

    __slots__ = ("_edited", "drive")

    def __init__(self, drive: Drive) -> None:
        self.drive = drive
        drive.by_hand = True
        self._edited: RunResult[Any] | None = None

    @property
    def state(self) -> State:
        """Where it stands."""
        return self.drive.state

    @property
    def done(self) -> bool:
        """Whether it is over, and recorded as such."""
        return self.drive.done

    @property
    def reader(self) -> Reader:
        """What reads its answers as the output."""
        return self.drive.bindings.output

    async def signal(self, signal: Signal) -> Stage:
        """Say something to the loop."""
        return await self.drive.signal(signal)

    def result(self) -> RunResult[Any]:
        """The result of a loop that is over."""
        return self._edited or result_of(self.drive)

    def response(self) -> Message | None:
        """What has come of the answer that is being read, or was last."""
        return None if self.drive.answering is None else self.drive.answering.message()

    async def step(self) -> Step | None:
        """Drive one turn. None when the run is over."""
        drive = self.drive
        while drive.state.turn == turns_before(drive.state) and not drive.done:
            drive.enter()
            await drive.advance()
        if drive.done:
            return None
        turn, begun = drive.state.turn, begun_at(drive.state)
        drive.enter()
        while not drive.done and drive.state.turn == turn:
            await drive.advance()
            if drive.state.turn != turn:
                await drive.flush()  # somebody may have said something first: then the turn is still this one
        await drive.flush()
        await self._edit()
        return step_of(turn, drive.state.history[begun:])

    async def _edit(self) -> None:
        """Have the editor carried out, once an architect has answered: nobody else would."""
        drive = self.drive
        if self._edited is None and drive.done and has_edited(drive.state):
            self._edited = await edited(drive)

    def text(self, before: AsyncGenerator[Any] | None) -> AsyncGenerator[str]:
        """The text of `events`, piece by piece."""
        return self._then_edit(stream(self.drive, before, only_text=True))

    def events(self, before: AsyncGenerator[Any] | None) -> AsyncGenerator[StreamEvent]:
        """Drive to the end; the pieces of the answers as they come. `before` ends here."""
        return self._then_edit(stream(self.drive, before))

    def _then_edit(self, pieces: AsyncGenerator[PieceT]) -> AsyncGenerator[PieceT]:
        return self._with_editor(pieces) if self.drive.state.spec.editor else pieces

    async def _with_editor(self, pieces: AsyncGenerator[PieceT]) -> AsyncGenerator[PieceT]:
        try:
            async for piece in pieces:
                yield piece
        finally:
            await pieces.aclose()
        await self._edit()

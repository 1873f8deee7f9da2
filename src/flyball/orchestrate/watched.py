"""Ledgers that are watched: the drivers of loops whose agent has somebody to tell. See `watching`."""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar, cast

from flyball.core.clock import Clock
from flyball.core.effects import Effect, Infer
from flyball.core.events import Event, Started
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.children import Parent
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.ledger import Ledger
from flyball.orchestrate.machine import start
from flyball.orchestrate.tracing import trace_recorded
from flyball.orchestrate.watching import AgentWatch, Watch

DriveT = TypeVar("DriveT", bound=Drive)


class WatchedLedger(Ledger[Any]):
    """A ledger that tells what is recorded, as soon as it is."""

    watch: Watch
    watches = True

    def flush_now(self) -> bool:
        """There is somebody to be told, and that takes waiting."""
        return False

    async def flush(self) -> bool:
        """See `Ledger.flush`; and tell what is recorded. Something may come meanwhile."""
        calm = await super().flush()
        return await self._tell() and calm

    async def catch_up(self) -> None:
        """See `Ledger.catch_up`; and tell what is recorded."""
        await super().catch_up()
        await self._tell()

    async def _tell(self) -> bool:
        """Tell what is recorded; whether nothing else was folded meanwhile."""
        if not self.watch.has_news:
            return True
        state, length = self.state, self.length
        await self.watch.tell()
        return self.state is state and self.length == length and not self.pending


class WatchedDrive(WatchedLedger, Drive):
    """A drive that tells all that is recorded of its loop, by itself or by others."""

    def __init__(self, bindings: Bindings, journal: Journal, *rest: Any, **options: Any) -> None:
        super().__init__(bindings, journal, *rest, **options)
        self.watch = AgentWatch(bindings, journal, self.loop_id)

    @classmethod
    def fresh(cls, bindings: Bindings, journal: Journal, started: Started) -> WatchedDrive:
        """A loop of its own that has just begun; it is told when it is driven."""
        drive = cls(bindings, journal, start(started), 1, SYSTEM_CLOCK, shared=False)
        drive.watch.heard(0, [started])
        return drive

    @classmethod
    async def begin(
        cls,
        bindings: Bindings,
        journal: Journal,
        started: Started,
        clock: Clock = SYSTEM_CLOCK,
        *,
        shared: bool = True,
        parent: Parent | None = None,
    ) -> Drive:
        """See `Drive.begin`."""
        drive = await super().begin(bindings, journal, started, clock, shared=shared, parent=parent)
        if isinstance(drive, WatchedDrive) and drive.state.epoch == 0 and not drive.done:
            # Nobody has taken it over: it was begun just now.
            first = [started] if drive.length == 1 else await journal.read(started.loop_id)
            drive.watch.heard(0, first[: drive.length])
            await drive.watch.tell()
        return drive

    @classmethod
    async def take_over(
        cls,
        bindings: Bindings,
        journal: Journal,
        loop_id: str,
        clock: Clock = SYSTEM_CLOCK,
        wanted: Started | None = None,
    ) -> Drive:
        """See `Drive.take_over`."""
        drive = await super().take_over(bindings, journal, loop_id, clock, wanted)
        assert isinstance(drive, WatchedDrive)
        if drive.done:
            drive.trace = await trace_recorded(journal, loop_id, bindings.stages)
        return drive

    def recorded(self, first: int, events: list[Event]) -> None:
        """See `Ledger.recorded`."""
        super().recorded(first, events)
        self.watch.heard(first, events)

    async def advance(self, *, to_end: bool = False) -> None:
        """See `Drive.advance`."""
        await self._tell()
        if not to_end:
            await super().advance()
            return
        try:
            while not self.done:
                await super().advance()  # a step at a time: each is recorded, and told, before the next
        finally:
            self.close()

    async def _tell(self) -> bool:
        calm = await super()._tell()
        if self.trace is None:
            self.trace = self.watch.trace
        return calm

    async def next_inference(self) -> Infer | None:
        """See `Drive.next_inference`."""
        await self._tell()
        return await super().next_inference()


class WatchedKeeper(WatchedLedger, Keeper):
    """A keeper that tells what it appends itself: others tell what they append.

    What this process has appended to the loop otherwise is claimed.
    """

    def __init__(self, bindings: Bindings, journal: Journal, *rest: Any, **options: Any) -> None:
        super().__init__(bindings, journal, *rest, **options)
        self._claimed: list[Event] = []
        self.watch = AgentWatch(bindings, journal, self.loop_id)
        self.watch.heard(0, self.events, tell=False)

    def written(self, first: int, events: list[Event]) -> None:
        """See `Ledger.written`."""
        super().written(first, events)
        for event in events:
            self.watch.claim(event)

    def recorded(self, first: int, events: list[Event]) -> None:
        """See `Ledger.recorded`."""
        super().recorded(first, events)
        self.watch.heard(first, events, tell=False)
        if self._claimed:
            self._claimed = [event for event in self._claimed if not self.watch.claim(event)]

    def claim(self, event: Event) -> None:
        """See `Keeper.claim`."""
        if not self.watch.claim(event):
            self._claimed.append(event)

    def disclaim(self, event: Event) -> None:
        """See `Keeper.disclaim`."""
        self._claimed = [one for one in self._claimed if one != event]

    async def pump(self) -> list[Effect]:
        """See `Keeper.pump`."""
        await self._tell()
        return await super().pump()


@cache
def watched(kind: type[DriveT]) -> type[DriveT]:
    """A kind of drive, watched."""
    if issubclass(kind, WatchedDrive):
        return kind
    made = type(f"Watched{kind.__name__}", (WatchedDrive, kind), {})
    return cast("type[DriveT]", made)

"""SplitDriver: the loop, the model and the tools as performers that share nothing but bytes.

It drives a loop the way a cluster does, in one process and in an order that a seed decides: commands and
reports are encoded, delivered at least once, doubled and out of order; each performer may crash before or
after it acts, or in the middle of a stream, and forgets everything when it does. Only the journal, under
compare-and-set, and the claims of at_most_once calls survive. Whoever follows a loop hears of it by its
journal and by deltas that may be lost. If an agent's run needs anything else, it fails here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from typing import Any

from flyball.core.clock import Clock
from flyball.core.events import SignalReceived, Stage, Started
from flyball.core.signals import Signal
from flyball.orchestrate.answering import OutsideResult, send_results
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.commands import Report
from flyball.orchestrate.edited import has_edited
from flyball.orchestrate.editing import editor_bindings, editor_loop
from flyball.orchestrate.elsewhere import Delta, check_deps
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.state import State
from flyball.orchestrate.watching import AgentWatch
from flyball.testing.broker import CALM, ROUGH, Broker, Chaos, Inbox
from flyball.testing.bytes_journal import BytesJournal
from flyball.testing.split_loop import SplitLoop

__all__ = ["CALM", "ROUGH", "Chaos", "SplitDriver"]


class SplitDriver:
    """A driver for tests. One instance is one world: its journal, its queues, its claims."""

    def __init__(self, seed: int = 0, chaos: Chaos = CALM, *, deps: Any = None) -> None:
        self.journal = BytesJournal()
        self.executions: list[str] = []
        """The ids of the tool calls that were physically run, in order."""
        self.deps = deps
        self._broker = Broker(seed, chaos)
        self._watches: dict[str, AgentWatch] = {}
        """What was told of loops that are watched: it is all that is kept of them beside the journal."""

    @property
    def crashes(self) -> int:
        """How often somebody died."""
        return self._broker.crashes

    async def run(
        self, bindings: Bindings, journal: Journal | None, started: Started, clock: Clock
    ) -> tuple[Journal, State]:
        """Drive a loop to its end, or until it only waits.

        Raises:
            DepsError: dependencies were passed to the run: they do not travel, workers bind their own.
        """
        journal = journal or self.journal
        loop = self._loop(bindings, journal, clock, started.loop_id)
        await loop.begin(started)
        return journal, await loop.settle_down()

    @asynccontextmanager
    async def join(
        self,
        bindings: Bindings,
        journal: Journal | None,
        started: Started,
        clock: Clock,
        *,
        pieces: bool = True,
    ) -> AsyncGenerator[SplitFollowing]:
        """Drive a loop in a task of its own, until it is over or the block is left.

        Raises:
            DepsError: dependencies were passed to the run: they do not travel, workers bind their own.
        """
        journal, loop_id = journal or self.journal, started.loop_id
        loop = self._loop(bindings, journal, clock, loop_id)
        length = await loop.begin(started)
        with self._broker.listening(loop_id) if pieces else nullcontext(Inbox()) as inbox:
            task = asyncio.create_task(self._live(loop, bindings, journal, clock))
            try:
                yield SplitFollowing(journal, loop_id, length, clock, inbox, task)
            finally:
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _live(self, loop: SplitLoop, bindings: Bindings, journal: Journal, clock: Clock) -> None:
        """Drive a loop to its end, and then its editor's; and again, if somebody opens it again."""
        while True:
            driven, bound = loop, bindings
            while has_edited(state := await driven.live()):
                bound = editor_bindings(bound)
                driven = self._loop(bound, journal, clock, editor_loop(state.loop_id))
            await loop.grown()

    async def signal(self, bindings: Bindings, loop_id: str, signal: Signal, clock: Clock) -> State:
        """Deliver a signal as a message, and drive on."""
        self._broker.publish("report", Report(loop_id, SignalReceived(clock.now(), signal)))
        return await self._loop(bindings, self.journal, clock, loop_id).settle_down()

    async def answer(
        self, loop_id: str, results: Sequence[OutsideResult], wanted: Started | None = None
    ) -> Stage:
        """See `Driver.answer`."""
        return await send_results(self.journal, loop_id, results, wanted=wanted)

    def _loop(self, bindings: Bindings, journal: Journal, clock: Clock, loop_id: str) -> SplitLoop:
        check_deps(bindings)
        watch = self._watches.get(loop_id)
        if watch is None and bindings.watched is not None:
            watch = self._watches[loop_id] = AgentWatch(bindings, journal, loop_id, deps=self.deps)
        return SplitLoop(
            self._broker,
            bindings,
            journal,
            clock,
            loop_id,
            deps=bindings.deps if self.deps is None else self.deps,
            executions=self.executions,
            home=SplitHome(self, journal, clock),
            watch=watch,
        )


class SplitHome:
    """Where the children of a split world's loops go: into the same world, as loops of their own."""

    calls_again = False
    """See `Home.calls_again`: a call waits for the loop that it begins."""

    def __init__(self, driver: SplitDriver, journal: Journal, clock: Clock) -> None:
        self._driver = driver
        self._journal = journal
        self._clock = clock

    def child_options(self) -> Mapping[str, Any]:
        """See `Home.child_options`."""
        return {"runtime": self._driver, "journal": self._journal, "clock": self._clock}


class SplitFollowing:
    """One loop of a split world, as somebody hears of it."""

    def __init__(  # noqa: PLR0917 - made in one place
        self,
        journal: Journal,
        loop_id: str,
        length: int,
        clock: Clock,
        inbox: Inbox,
        task: asyncio.Task[None],
    ) -> None:
        self.journal = journal
        self.length = length
        self._loop_id = loop_id
        self._clock = clock
        self._inbox = inbox
        self._task = task

    async def news(self, length: int) -> Sequence[Delta]:
        """See `Following.news`."""
        grown = asyncio.ensure_future(self.journal.wait(self._loop_id, length))
        filled = asyncio.ensure_future(self._inbox.filled.wait())
        try:
            # A world that came to its end has recorded that: it is waited for only while it lives.
            world = [] if self._task.done() else [self._task]
            await asyncio.wait([grown, filled, *world], return_when=asyncio.FIRST_COMPLETED)
        finally:
            grown.cancel()
            filled.cancel()
            await asyncio.gather(grown, filled, return_exceptions=True)
        if self._task.done():
            self._task.result()
        return self._inbox.take()

    async def signal(self, signal: Signal) -> Stage:
        """See `Following.signal`."""
        return await send_signal(self.journal, self._loop_id, signal, self._clock)

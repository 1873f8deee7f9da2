"""NatsRuntime: a Driver whose loops are carried on by workers, wherever these are.

    async with await NatsRuntime.open(options) as runtime:
        result = await agent.run("…", driver=runtime)

The caller asks for a loop, and then reads its journal. It may go away at any time, and come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from flyball.core.clock import Clock
from flyball.core.errors import DepsError, JournalUnreachable, UserError
from flyball.core.events import Stage, Started
from flyball.core.ids import new_id
from flyball.core.signals import Signal
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.driver import check_same
from flyball.orchestrate.elsewhere import Delta
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import apply
from flyball.orchestrate.recorded import load
from flyball.orchestrate.signalling import stage_if_taken
from flyball.orchestrate.state import State
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.connection import Connection, NatsOptions
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.layout import Layout
from flyball.runtime.nats.messages.told import write_signal, write_task
from flyball.runtime.nats.subjects import deltas_subject, signal_subject, task_subject
from flyball.runtime.nats.workers.loop import REPLY

if TYPE_CHECKING:
    from nats.aio.msg import Msg


class NatsRuntime:
    """Loops that workers carry on. Made by `open`, or over a journal that somebody else closes."""

    def __init__(self, journal: NatsJournal) -> None:
        self.journal = journal
        self.bus = Bus(journal.connection, journal.layout.replicas)

    @classmethod
    async def open(cls, options: NatsOptions | None = None, layout: Layout | None = None) -> Self:
        """Connect to a server, and make there what is missing; `aclose` it after use.

        Raises:
            UserError, MissingExtra, JournalUnreachable: see `connect` and `set_up`.
        """
        journal = await NatsJournal.open(options, layout)
        try:
            runtime = cls(journal)
            await runtime.bus.set_up()
        except BaseException:
            await journal.aclose()
            raise
        return runtime

    async def aclose(self) -> None:
        """Close the connection. Loops go on."""
        await self.journal.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def submit(self, started: Started) -> int:
        """Ask for a loop; returns when it is recorded, with the number of its events then.

        Raises:
            LoopMismatch: the id belongs to a loop with another prompt, history or spec.
            JournalUnreachable: no loop worker took it up. It is on the wire all the same, and one that comes
                later does.
        """
        loop_id = started.loop_id
        events = await self.journal.read(loop_id)
        if not events:
            data = write_task(started)
            await self.bus.publish(task_subject(loop_id), data, f"{loop_id}/task", loop_id=loop_id)
            patience = self.journal.connection.patience
            if not await self.journal.wait(loop_id, 0, patience):
                raise JournalUnreachable(
                    f"no loop worker has taken up loop {loop_id!r} in {patience:g} s: is one running? "
                    "(flyball worker … --serve loop)",
                    loop_id=loop_id,
                )
            events = await self.journal.read(loop_id)
        check_same(events, started)
        return len(events)

    async def run(
        self, bindings: Bindings, journal: Journal | None, started: Started, clock: Clock
    ) -> tuple[Journal, State]:
        """See `Driver.run`. It waits until the loop is over, however long people take to approve.

        Raises:
            DepsError: dependencies were passed to the run: they do not travel, workers bind their own.
        """
        self._check(bindings, journal)
        del clock
        await self.submit(started)
        events, state = await load(self.journal, started.loop_id)
        length = len(events)
        while state.at != "done":
            await self.journal.wait(started.loop_id, length)
            for event in await self.journal.read(started.loop_id, length):
                apply(state, event)
                length += 1
        return self.journal, state

    @asynccontextmanager
    async def follow(
        self, bindings: Bindings, journal: Journal | None, started: Started, clock: Clock
    ) -> AsyncGenerator[NatsFollowing]:
        """See `Driver.follow`."""
        self._check(bindings, journal)
        del clock
        async with self.listen(started.loop_id) as following:
            following.length = await self.submit(started)
            yield following

    @asynccontextmanager
    async def listen(self, loop_id: str) -> AsyncGenerator[NatsFollowing]:
        """Hear of a loop that is there, or is going to be, until the block is left."""
        following = NatsFollowing(self, loop_id)
        connection = self.journal.connection
        subscription = await connection.subscribe(deltas_subject(loop_id), following.heard)
        try:
            await connection.flush()
            yield following
        finally:
            if not connection.closed:
                await subscription.unsubscribe()

    async def signal(self, loop_id: str, signal: Signal) -> Stage:
        """Say something to a loop; recorded when this returns, with the stage that it is in then.

        Raises:
            LoopNotFound: there is no such loop.
            SignalRefused: it does not fit where the loop stands; it says which do.
            JournalUnreachable: no loop worker took it. It is on the wire, and one that comes later does.
        """
        await load(self.journal, loop_id)
        if not signal.id:
            signal = msgspec.structs.replace(signal, id=new_id())
        connection, answer = self.journal.connection, asyncio.get_running_loop().create_future()
        inbox = connection.new_inbox()

        async def heard(message: Msg) -> None:
            if not answer.done():
                answer.set_result(message.data == b"1")

        subscription = await connection.subscribe(inbox, heard)
        try:
            data = write_signal(loop_id, signal, SYSTEM_CLOCK.now())
            where, name = signal_subject(loop_id), f"{loop_id}/signal/{new_id()}"
            await self.bus.publish(where, data, name, loop_id=loop_id, more={REPLY: inbox})
            async with asyncio.timeout(connection.patience):
                taken = await answer
            _, state = await load(self.journal, loop_id)
            return stage_if_taken(state, None if taken else signal)
        except TimeoutError:
            # The answer passes by once: the journal knows, if it was lost.
            _, state = await load(self.journal, loop_id)
            if signal.id in state.signals:
                return stage_if_taken(state)
            raise JournalUnreachable(
                f"no loop worker has taken the signal {signal.type} for loop {loop_id!r}: is one running?",
                loop_id=loop_id,
            ) from None
        finally:
            if not connection.closed:
                await subscription.unsubscribe()

    @property
    def connection(self) -> Connection:
        """The connection that it uses."""
        return self.journal.connection

    def _check(self, bindings: Bindings, journal: Journal | None) -> None:
        if bindings.deps is not None:
            raise DepsError("deps= does not travel to another process: bind them where the workers run")
        if journal is not None and journal is not self.journal:
            raise UserError("loops on NATS are kept there: leave journal= out")


class NatsFollowing:
    """One loop, as somebody hears of it."""

    def __init__(self, runtime: NatsRuntime, loop_id: str) -> None:
        self.journal: Journal = runtime.journal
        self.length = 0
        self._runtime = runtime
        self._loop_id = loop_id
        self._deltas: list[Delta] = []
        self._filled = asyncio.Event()

    async def heard(self, message: Msg) -> None:
        """A piece came by, or somebody asks whether anybody listens."""
        if message.data:
            self._deltas.append(msgspec.json.decode(message.data, type=Delta))
            self._filled.set()
        elif message.reply:
            await self._runtime.connection.publish(message.reply, b"yes")

    async def news(self, length: int) -> Sequence[Delta]:
        """See `Following.news`."""
        grown = asyncio.ensure_future(self.journal.wait(self._loop_id, length))
        filled = asyncio.ensure_future(self._filled.wait())
        try:
            await asyncio.wait([grown, filled], return_when=asyncio.FIRST_COMPLETED)
            if grown.done():
                grown.result()
        finally:
            for task in (grown, filled):
                task.cancel()
            await asyncio.gather(grown, filled, return_exceptions=True)
        self._filled.clear()
        deltas, self._deltas = self._deltas, []
        return deltas

    async def signal(self, signal: Signal) -> Stage:
        """See `Following.signal`."""
        return await self._runtime.signal(self._loop_id, signal)

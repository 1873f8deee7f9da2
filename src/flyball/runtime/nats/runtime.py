"""NatsRuntime: a Runtime whose loops are carried on by workers, wherever these are.

    async with await NatsRuntime.open(options) as runtime:
        result = await agent.run("…", runtime=runtime)

The caller asks for a loop, and then reads its journal. It may go away at any time, and come back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import msgspec
from typing_extensions import Unpack

from flyball.core.clock import Clock
from flyball.core.context import DepsT
from flyball.core.errors import JournalFailure, JournalFull, JournalUnreachable, SignalRefused, WorkPutAside
from flyball.core.events import Event, Stage, Started
from flyball.core.ids import new_id
from flyball.core.messages import Content
from flyball.core.signals import Signal, SignalType
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.answering import OutsideResult, answers, by_loop
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.elsewhere import Delta, check_deps, check_nothing_lent
from flyball.orchestrate.followed import Recorded, told
from flyball.orchestrate.hearing import Hearing
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.lifecycle import stage_of
from flyball.orchestrate.machine import accepts, apply, effect_id
from flyball.orchestrate.machines import is_flow
from flyball.orchestrate.matching import begun_as, check_same
from flyball.orchestrate.options import RunOptions
from flyball.orchestrate.recorded import load, send_signal, until_done
from flyball.orchestrate.result import OutputT, RunResult
from flyball.orchestrate.runtime import check_kept, check_submitted, result_once_over
from flyball.orchestrate.signalling import as_signal, see_that_it_is_the_same, stage_if_taken
from flyball.orchestrate.state import State
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.connection import Connection, NatsOptions
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.layout import Layout
from flyball.runtime.nats.messages.told import as_read, write_signal, write_task
from flyball.runtime.nats.messages.work import write_outside_result
from flyball.runtime.nats.naming import is_inbox
from flyball.runtime.nats.room import lacks_room
from flyball.runtime.nats.stored import no_room
from flyball.runtime.nats.stuck import Stuck, noticing
from flyball.runtime.nats.subjects import deltas_subject, result_subject, signal_subject, task_subject
from flyball.runtime.nats.workers.signalled import REPLY

if TYPE_CHECKING:
    from nats.aio.msg import Msg

_LOOK = 3.0
"""Seconds after which who waits for a loop to be begun looks whether there is room for it."""


class NatsRuntime:
    """Loops that workers carry on. Made by `open`, or over a journal that somebody else closes."""

    def __init__(self, journal: NatsJournal) -> None:
        self.journal = journal
        self.bus = Bus(journal.connection, journal.layout)

    @classmethod
    async def open(cls, options: NatsOptions | None = None, layout: Layout | None = None) -> Self:
        """Connect to a server, and make there what is missing; `aclose` it after use. See `NatsJournal.open`.

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

    # What users call

    async def submit(
        self,
        agent: Agent[DepsT, OutputT],
        prompt: Content | None = None,
        **options: Unpack[RunOptions[DepsT]],
    ) -> str:
        """See `Runtime.submit`.

        Raises:
            DepsError: dependencies were passed: they do not travel, workers bind their own.
            JournalUnreachable: no loop worker took it up. It is on the wire all the same.
            JournalFull: there is no room to record it; see `begin`.
        """
        check_submitted(options, self.journal)
        bindings, started, _ = await agent.beginning(prompt, options)
        self._check(bindings, None)
        await self.begin(started)
        return started.loop_id

    async def follow(self, loop_id: str, after: int = 0) -> AsyncGenerator[Recorded | StreamEvent]:
        """See `Runtime.follow`."""
        async with self.listen(loop_id) as following, aclosing(told(following, loop_id, after)) as course:
            async for one in course:
                yield one

    async def result(self, agent: Agent[Any, OutputT], loop_id: str) -> RunResult[OutputT]:
        """See `Runtime.result`.

        Raises:
            WorkPutAside: the loop waits for what no worker could do.
        """
        return await result_once_over(agent, self.journal, loop_id, self._until_done)

    async def _until_done(self, loop_id: str) -> State:
        async with noticing(self.bus, self.journal, loop_id) as stuck:
            try:
                return await stuck.unless(until_done(self.journal, loop_id))
            except WorkPutAside:
                _, state = await load(self.journal, loop_id)
                if state.at != "done":
                    raise
                return state  # whatever of it was put aside, it came to its end

    # As a driver

    async def ask_for(self, started: Started) -> list[Event]:
        """Have a loop begun that is not there, without waiting for that; gives the events that it has."""
        loop_id = started.loop_id
        events = await self.journal.read(loop_id)
        if not events:
            data = write_task(started)
            await self.bus.publish(task_subject(loop_id), data, f"{loop_id}/task", loop_id=loop_id)
        return events

    async def begin(self, started: Started) -> int:
        """Ask for a loop; returns when it is recorded, with the number of its events before that is news.

        That is 1 for a loop that is begun by this, however far it has come until it is heard of.

        Raises:
            LoopMismatch: the id belongs to a loop with another prompt, history or spec.
            JournalUnreachable: no loop worker took it up. It is on the wire all the same, and one that comes
                later does.
            JournalFull: there is no room to record it. If it is on the wire, it begins when there is.
            WorkPutAside: no worker could do anything with it.
        """
        loop_id = started.loop_id
        events = await self.ask_for(started)
        if not events:
            async with noticing(self.bus, self.journal, loop_id) as stuck:
                await stuck.unless(self._taken_up(loop_id, len(write_task(started))))
            check_same(await self.journal.read(loop_id), started)
            return 1
        check_same(events, started)
        return len(events)

    async def _taken_up(self, loop_id: str, size: int) -> None:
        """Wait until a loop is recorded that was asked for by a message of this size; see `begin`."""
        patience = self.journal.connection.patience
        until = time.monotonic() + patience
        while not await self.journal.wait(loop_id, 0, min(_LOOK, until - time.monotonic())):
            if await self._lacks_room(size):
                raise self._no_room(f"there is no room to begin loop {loop_id!r}", loop_id)
            if time.monotonic() >= until:
                raise JournalUnreachable(
                    f"no loop worker has taken up loop {loop_id!r} in {patience:g} s: is one running? "
                    "(flyball worker … --serve loop)",
                    loop_id=loop_id,
                )

    async def _not_taken(self, loop_id: str, what: str, size: int) -> JournalFailure:
        """Why nobody has taken something that is on the wire, of this size: no room for it, or nobody."""
        if await self._lacks_room(size):
            return self._no_room(f"there is no room to record {what} for loop {loop_id!r}", loop_id)
        return JournalUnreachable(
            f"no loop worker has taken {what} for loop {loop_id!r}: is one running?", loop_id=loop_id
        )

    async def _lacks_room(self, size: int) -> bool:
        return await lacks_room(self.connection, size, self.journal.layout.replicas)

    def _no_room(self, said: str, loop_id: str) -> JournalFull:
        return no_room(self.connection.identity, said, loop_id=loop_id)

    async def run(
        self, bindings: Bindings, journal: Journal | None, started: Started, clock: Clock
    ) -> tuple[Journal, State]:
        """See `Driver.run`. It waits until the loop is over, however long people take to approve; but not for
        results from outside.

        Raises:
            DepsError: dependencies were passed to the run: they do not travel, workers bind their own.
            WorkPutAside: the loop waits for what no worker could do.
        """
        self._check(bindings, journal)
        del clock
        await self.begin(started)
        return self.journal, await self._until_done(started.loop_id)

    @asynccontextmanager
    async def join(
        self,
        bindings: Bindings,
        journal: Journal | None,
        started: Started,
        clock: Clock,
        *,
        pieces: bool = True,
    ) -> AsyncGenerator[NatsFollowing]:
        """See `Driver.join`."""
        self._check(bindings, journal)
        del clock
        async with self.listen(started.loop_id, pieces=pieces) as following:
            following.length = await self.begin(started)
            yield following

    @asynccontextmanager
    async def listen(self, loop_id: str, *, pieces: bool = True) -> AsyncGenerator[NatsFollowing]:
        """Hear of a loop that is there, or is going to be, until the block is left; see `Driver.join`."""
        connection = self.journal.connection
        async with noticing(self.bus, self.journal, loop_id) as stuck:
            following = NatsFollowing(self, loop_id, stuck)
            if not pieces:
                yield following
                return
            subscription = await connection.subscribe(deltas_subject(loop_id), following.heard)
            try:
                await connection.flush(deltas_subject(loop_id))
                yield following
            finally:
                if not connection.closed:
                    await subscription.unsubscribe()

    async def signal(
        self,
        loop_id: str,
        signal: Signal | SignalType | str,
        text: str = "",
        call_id: str | None = None,
        *,
        by: str = "",
    ) -> Stage:
        """See `Runtime.signal`.

        Raises:
            JournalUnreachable: no loop worker took it. It is on the wire, and one that comes later does.
            JournalFull: there is no room to record it. If it is on the wire, it is taken when there is.
        """
        signal = as_signal(signal, text, call_id, by)
        if is_flow(await self.journal.read(loop_id)):
            # Whoever drives a flow follows its journal: no worker is in between. What is under it has some.
            return await send_signal(self.journal, loop_id, signal, offer=self._offer)
        events, state = await load(self.journal, loop_id)
        if not signal.id:
            signal = msgspec.structs.replace(signal, id=new_id())
        connection, answer = self.journal.connection, asyncio.get_running_loop().create_future()
        inbox = connection.new_inbox()

        async def heard(message: Msg) -> None:
            if not answer.done():
                answer.set_result(message.data == b"1")

        data = write_signal(loop_id, signal, SYSTEM_CLOCK.now())
        subscription = await connection.subscribe(inbox, heard)
        try:
            where, name = signal_subject(loop_id), f"{loop_id}/signal/{new_id()}"
            await self.bus.publish(where, data, name, loop_id=loop_id, more={REPLY: inbox})
            async with asyncio.timeout(connection.patience):
                taken = await answer
            before, news = signal.id in state.signals, await self.journal.read(loop_id, len(events))
            for event in news:
                apply(state, event)
                if signal.id in state.signals and not before:
                    break  # as it was taken: the loop may have gone on since
            if not taken:
                see_that_it_is_the_same((*events, *news), as_read(signal))
            return stage_if_taken(state, None if taken else signal)
        except TimeoutError:
            # The answer passes by once: the journal knows, if it was lost.
            events, state = await load(self.journal, loop_id)
            if signal.id in state.signals:
                see_that_it_is_the_same(events, as_read(signal))
                return stage_if_taken(state)
            raise await self._not_taken(loop_id, f"the signal {signal.type}", len(data)) from None
        finally:
            if not connection.closed:
                await subscription.unsubscribe()

    async def carry_on(self, bindings: Bindings, loop_id: str, clock: Clock = SYSTEM_CLOCK) -> None:
        """See `Runtime.carry_on`. The workers do that by themselves; of a fork they are told here."""
        del bindings, clock
        events, state = await load(self.journal, loop_id)
        if state.at != "done":
            data = write_task(begun_as(events))
            await self.bus.publish(task_subject(loop_id), data, f"{loop_id}/on/{new_id()}", loop_id=loop_id)

    async def drain(self, seconds: float) -> None:
        """See `Runtime.drain`: nothing is driven here."""

    async def _offer(self, loop_id: str, signal: Signal) -> bool:
        """Say something to a loop under a flow; see `flyball.orchestrate.family.Offer`."""
        try:
            await self.signal(loop_id, signal)
        except SignalRefused:
            return False
        return True

    async def answer(
        self, loop_id: str, results: Sequence[OutsideResult], wanted: Started | None = None
    ) -> Stage:
        """See `Driver.answer`.

        Raises:
            JournalUnreachable: no loop worker took them. They are on the wire, and one that comes later does.
            JournalFull: there is no room to record them. Those on the wire are taken when there is.
        """
        events, state = await load(self.journal, loop_id)
        if wanted is not None:
            check_same(events, wanted)
        for whose, given in (await by_loop(self.journal, state, results)).items():
            await self._answer(whose, given)
        _, state = await load(self.journal, loop_id)
        return stage_of(state)

    async def _answer(self, loop_id: str, results: Sequence[OutsideResult]) -> None:
        events, state = await load(self.journal, loop_id)
        length, returned = len(events), answers(state, results, SYSTEM_CLOCK.now())
        size = 0
        for event in returned:
            effect = effect_id(state, "execute", event.index)
            # Not the name of what the tool itself has said: that it is deferred.
            data = write_outside_result(loop_id, effect, event, name := f"{effect}/outside/{new_id()}")
            await self.bus.publish(result_subject(effect), data, name, loop_id=loop_id)
            size = max(size, len(data))
        try:
            async with asyncio.timeout(self.journal.connection.patience):
                while any(accepts(state, event) for event in returned):
                    await self.journal.wait(loop_id, length)
                    for event in await self.journal.read(loop_id, length):
                        apply(state, event)
                        length += 1
        except TimeoutError:
            raise await self._not_taken(loop_id, "the results", size) from None
        answers(state, results, 0.0)  # somebody else's may have been first

    @property
    def connection(self) -> Connection:
        """The connection that it uses."""
        return self.journal.connection

    def _check(self, bindings: Bindings, journal: Journal | None) -> None:
        check_deps(bindings)
        check_nothing_lent(bindings)
        check_kept(journal, self.journal)


class NatsFollowing(Hearing):
    """One loop, as somebody hears of it."""

    def __init__(self, runtime: NatsRuntime, loop_id: str, stuck: Stuck) -> None:
        super().__init__(runtime.journal, loop_id)
        self._runtime = runtime
        self._stuck = stuck

    async def news(self, length: int) -> Sequence[Delta]:
        """See `Following.news`.

        Raises:
            WorkPutAside: the loop waits for what no worker could do.
        """
        return await self._stuck.unless(super().news(length))

    async def heard(self, message: Msg) -> None:
        """A piece came by, or somebody asks whether anybody listens."""
        if message.subject != deltas_subject(self.loop_id):
            return  # a message of elsewhere, that somebody has had sent here
        if message.data:
            self.put(msgspec.json.decode(message.data, type=Delta))
        elif is_inbox(message.reply):
            await self._runtime.connection.publish(message.reply, b"yes")

    async def signal(self, signal: Signal) -> Stage:
        """See `Following.signal`."""
        return await self._runtime.signal(self.loop_id, signal)

"""LocalRuntime: loops that tasks of this process carry on, over any journal.

They end with the process; what they recorded does not, if the journal outlives it: a loop that is submitted
again by its id goes on where it stopped. Signals, and who follows, reach a loop through the journal, so over
SQLite they may come from another process.

A loop that another process drives is left to it. Who waits for it here is told what the journal says; and if
that process dies, the loop is gone on with here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from types import TracebackType
from typing import Any, Self

from typing_extensions import Unpack

from flyball.core.clock import Clock
from flyball.core.context import DepsT
from flyball.core.errors import Deferred, LoopTakenOver
from flyball.core.events import Outcome, Reopened, Stage, Started
from flyball.core.messages import Content
from flyball.core.signals import Signal, SignalType
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.answering import OutsideResult, send_results
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.claims import DrivenElsewhere
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.edited import has_edited
from flyball.orchestrate.editing import editor_loop
from flyball.orchestrate.followed import Recorded, told
from flyball.orchestrate.heard import HeardDrive
from flyball.orchestrate.hearing import Hearing, raise_failure
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.left import LOOK, LeftToOthers
from flyball.orchestrate.lifecycle import stage_of
from flyball.orchestrate.matching import check_same
from flyball.orchestrate.options import RunOptions
from flyball.orchestrate.permissions import channel_of
from flyball.orchestrate.recorded import load, send_signal, until_done
from flyball.orchestrate.result import OutputT, RunResult
from flyball.orchestrate.runtime import check_kept, check_submitted, result_once_over
from flyball.orchestrate.signalling import as_signal
from flyball.orchestrate.state import State

_log = logging.getLogger("flyball.loops")

_REMEMBERED = 100
"""Loops that ended badly for which it is remembered how they are driven."""


class LocalRuntime:
    """Carries loops on in this process. See `Runtime`.

    Args:
        journal: where they are recorded; in memory without it. Whoever made it closes it.
        aloud: whether models are asked for their answers in pieces also while nobody hears of them: for who
            follows a loop only once it has begun.
    """

    def __init__(self, journal: Journal | None = None, *, aloud: bool = False) -> None:
        self._journal = MemoryJournal() if journal is None else journal
        self._aloud = aloud
        self._carried: dict[str, _Carried] = {}
        """The loops that were begun here and have not ended well: one that failed may be tried again."""
        self._failed: deque[str] = deque()
        """Those of them that have ended, the first at first: not all are remembered."""
        self._left = LeftToOthers(self._journal, self._begin)
        self._beginning: dict[str, asyncio.Event] = {}
        self._hearing: dict[str, list[Hearing]] = {}

    @property
    def journal(self) -> Journal:
        """Where its loops are recorded."""
        return self._journal

    # What users call

    async def submit(
        self,
        agent: Agent[DepsT, OutputT],
        prompt: Content | None = None,
        **options: Unpack[RunOptions[DepsT]],
    ) -> str:
        """See `Runtime.submit`."""
        check_submitted(options, self._journal)
        bindings, started, clock = await agent.beginning(prompt, options)
        await self._begin(bindings, started, clock)
        return started.loop_id

    async def follow(self, loop_id: str, after: int = 0) -> AsyncGenerator[Recorded | StreamEvent]:
        """See `Runtime.follow`."""
        with self._listening(loop_id) as following:
            async with aclosing(told(following, loop_id, after)) as course:
                async for one in course:
                    yield one

    async def result(self, agent: Agent[Any, OutputT], loop_id: str) -> RunResult[OutputT]:
        """See `Runtime.result`."""
        return await result_once_over(agent, self._journal, loop_id, self._ended)

    async def signal(
        self,
        loop_id: str,
        signal: Signal | SignalType | str,
        text: str = "",
        call_id: str | None = None,
        *,
        by: str = "",
    ) -> Stage:
        """See `Runtime.signal`. A retried loop goes on if it was begun here, else once it is submitted."""
        said, carried = as_signal(signal, text, call_id, by), self._carried.get(loop_id)
        clock = SYSTEM_CLOCK if carried is None else carried.clock
        stage = await send_signal(self._journal, loop_id, said, clock)
        if said.type is SignalType.RETRY and carried is not None:
            await self._go_on(loop_id)
        return stage

    async def answer(
        self, loop_id: str, results: Sequence[OutsideResult], wanted: Started | None = None
    ) -> Stage:
        """See `Driver.answer`. A loop that is not carried on here goes on once it is submitted."""
        carried = self._carried.get(loop_id)
        clock = SYSTEM_CLOCK if carried is None else carried.clock
        return await send_results(self._journal, loop_id, results, clock, wanted)

    async def carry_on(self, bindings: Bindings, loop_id: str, clock: Clock = SYSTEM_CLOCK) -> None:
        """See `Runtime.carry_on`."""
        async with self._alone(loop_id):
            carried = self._carried.get(loop_id)
            if carried is not None and not carried.task.done():
                return
            _, state = await load(self._journal, loop_id)
            if state.at == "done":
                return
            try:
                drive = await HeardDrive.take_over(bindings, self._journal, loop_id, clock)
            except DrivenElsewhere:
                return
            assert isinstance(drive, HeardDrive)
            drive.aloud = True  # who looks after such a loop comes in a moment, and would miss what was said
            self._carry(drive, bindings, clock)

    async def drain(self, seconds: float) -> None:
        """See `Runtime.drain`."""
        try:
            async with asyncio.timeout(seconds):
                while busy := [one.task for one in self._carried.values() if one.is_busy]:
                    await asyncio.wait(busy, timeout=LOOK, return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            return

    @property
    def under_way(self) -> tuple[str, ...]:
        """The loops that are driven here and wait for nobody; not those under another."""
        busy = [carried.drive for carried in self._carried.values() if carried.is_busy]
        return tuple([drive.loop_id for drive in busy if not drive.state.parent_loop_id])

    async def aclose(self) -> None:
        """Stop driving. The loops stay as they are recorded."""
        await self._left.aclose()
        tasks = [carried.task for carried in self._carried.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def park(self) -> None:
        """Stop driving, for now: the loops stay as they are recorded, and anybody may go on with them.

        What is begun or carried on later is driven again. For who waits for none of them any more.
        """
        await self.aclose()
        self._carried.clear()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    # As a driver

    async def run(
        self, bindings: Bindings, journal: Journal | None, started: Started, clock: Clock
    ) -> tuple[Journal, State]:
        """See `Driver.run`. It waits until the loop is over, however long people take to approve; but not for
        results from outside.
        """
        check_kept(journal, self._journal)
        await self._begin(bindings, started, clock)
        return self._journal, await self._ended(started.loop_id)

    @asynccontextmanager
    async def join(
        self,
        bindings: Bindings,
        journal: Journal | None,
        started: Started,
        clock: Clock,
        *,
        pieces: bool = True,
    ) -> AsyncGenerator[LocalFollowing]:
        """See `Driver.join`."""
        check_kept(journal, self._journal)
        loop_id = started.loop_id
        with self._listening(loop_id) if pieces else nullcontext(LocalFollowing(self, loop_id)) as following:
            following.length = await self._begin(bindings, started, clock)
            yield following

    # Driving

    async def _begin(self, bindings: Bindings, started: Started, clock: Clock) -> int:
        """Begin a loop, or go on with it, or join the task that drives it here; how many events it has."""
        loop_id, above = started.loop_id, self._carried.get(started.parent_loop_id)
        if above is not None and loop_id == editor_loop(started.parent_loop_id):
            await asyncio.wait([above.task])  # which has the editor driven, when it has ended
        async with self._alone(loop_id):
            carried = self._carried.get(loop_id)
            if carried is not None and not carried.task.done():
                events = await self._journal.read(loop_id)
                check_same(events, started)
                return len(events)
            while True:
                try:
                    drive = await HeardDrive.begin(bindings, self._journal, started, clock)
                except DrivenElsewhere:
                    if await self._journal.wait(loop_id, 0, LOOK):
                        return await self._left.leave(bindings, started, clock)
                else:
                    return self._carry(drive, bindings, clock)

    async def _go_on(self, loop_id: str) -> None:
        """Drive on a loop that was opened again, if nobody does yet."""
        async with self._alone(loop_id):
            carried = self._carried.get(loop_id)
            if carried is None or not isinstance((await self._journal.read(loop_id))[-1], Reopened):
                return
            await asyncio.wait([carried.task])  # it has recorded the end, and is about to see that
            try:
                drive = await HeardDrive.take_over(carried.bindings, self._journal, loop_id, carried.clock)
            except DrivenElsewhere:
                return
            self._carry(drive, carried.bindings, carried.clock)

    @asynccontextmanager
    async def _alone(self, loop_id: str) -> AsyncGenerator[None]:
        """A block for one at a time: who begins a loop twice at once would drive it twice."""
        while (other := self._beginning.get(loop_id)) is not None:
            await other.wait()
        self._beginning[loop_id] = begun = asyncio.Event()
        try:
            yield
        finally:
            del self._beginning[loop_id]
            begun.set()

    def _carry(self, drive: Drive, bindings: Bindings, clock: Clock) -> int:
        """Drive a loop in a task of its own; how many events it has as it begins."""
        assert isinstance(drive, HeardDrive)
        length, loop_id = drive.length, drive.loop_id
        if not drive.done:
            # People on a channel follow a loop once it has begun, and would miss what was said first.
            drive.aloud = drive.aloud or self._aloud or bool(channel_of(drive.state.metadata))
            drive.hearers = lambda: self._hearing.get(loop_id, ())
            task = asyncio.create_task(self._driven(drive), name=loop_id)
            task.add_done_callback(_looked_at)
            task.add_done_callback(drive.stood_still)
            self._carried[loop_id] = _Carried(bindings, clock, task, drive)
        return length

    async def _driven(self, drive: Drive) -> None:
        try:
            await drive.run()
        finally:
            drive.close()
        if drive.state.outcome is Outcome.SUCCESS:
            if has_edited(drive.state):
                editor = await drive.begin_editor()
                self._carry(editor, editor.bindings, drive.clock)
            self._carried.pop(drive.loop_id, None)
        else:
            self._failed.append(drive.loop_id)
            while len(self._failed) > _REMEMBERED:
                self._forget(self._failed.popleft())

    def _forget(self, loop_id: str) -> None:
        """Let go of a loop that ended badly long ago: to try it again, it is submitted or carried on."""
        carried = self._carried.get(loop_id)
        if carried is not None and carried.task.done():
            del self._carried[loop_id]

    def driving(self, loop_id: str) -> asyncio.Task[None] | None:
        """The task that drives a loop, unless it ended well or somebody else drives the loop now."""
        carried = self._carried.get(loop_id)
        if carried is None:
            return None
        task = carried.task
        ended = task.done() and not task.cancelled()
        well = ended and (task.exception() is None or isinstance(task.exception(), LoopTakenOver))
        return None if well else task

    async def _ended(self, loop_id: str) -> State:
        """The state of a loop once it is over, or waits for results from outside."""
        carried = self._carried.get(loop_id)
        if carried is not None and await carried.came_to_rest():
            return carried.drive.state
        return await self._told_ended(loop_id)

    async def _told_ended(self, loop_id: str) -> State:
        """`_ended`, by what the journal says: others may drive the loop, or say something to it."""
        ending = asyncio.ensure_future(until_done(self._journal, loop_id))
        try:
            while not ending.done():
                driving = self.driving(loop_id)
                await asyncio.wait(
                    [ending] if driving is None else [ending, driving],
                    timeout=LOOK if loop_id in self._left else None,
                    return_when=asyncio.FIRST_COMPLETED,
                )
                if ending.done() or driving is None or not driving.done():
                    continue
                if self.driving(loop_id) is driving:
                    raise_failure(driving, loop_id)
            return ending.result()
        finally:
            ending.cancel()
            await asyncio.gather(ending, return_exceptions=True)

    @contextmanager
    def _listening(self, loop_id: str) -> Generator[LocalFollowing]:
        following = LocalFollowing(self, loop_id)
        if (carried := self._carried.get(loop_id)) is not None:
            for delta in carried.drive.said:
                following.put(delta)
        hearing = self._hearing.setdefault(loop_id, [])
        hearing.append(following)
        try:
            yield following
        finally:
            hearing.remove(following)
            if not hearing:
                del self._hearing[loop_id]


class LocalFollowing(Hearing):
    """One loop, as somebody hears of it."""

    def __init__(self, runtime: LocalRuntime, loop_id: str) -> None:
        super().__init__(runtime.journal, loop_id)
        self._runtime = runtime

    def driving(self) -> asyncio.Task[Any] | None:
        """See `Hearing.driving`."""
        return self._runtime.driving(self.loop_id)

    async def signal(self, signal: Signal) -> Stage:
        """See `Following.signal`."""
        return await self._runtime.signal(self.loop_id, signal)


class _Carried:
    """A loop that is driven here."""

    __slots__ = ("bindings", "clock", "drive", "task")

    def __init__(self, bindings: Bindings, clock: Clock, task: asyncio.Task[None], drive: HeardDrive) -> None:
        self.bindings = bindings
        self.clock = clock
        self.task = task
        self.drive = drive

    @property
    def is_busy(self) -> bool:
        """Whether it does something: it is not over, and waits for nobody outside."""
        state = self.drive.state
        waits = waits_for_results(state) or stage_of(state) in (Stage.PAUSED, Stage.AWAITING_APPROVAL)
        return not (self.task.done() or waits)

    async def came_to_rest(self) -> bool:
        """Wait until it is driven no further here; whether that is because it is over.

        If so, its drive has the state that the journal leads to. Otherwise only the journal knows.
        """
        if self.task.done() or waits_for_results(self.drive.state):
            return False
        rest = asyncio.get_running_loop().create_future()
        self.drive.resting.append(rest)
        await rest
        return self.drive.done and self.task.done()


def _looked_at(task: asyncio.Task[None]) -> None:
    """A failure is raised where somebody waits for the loop; the log has it, for nobody may."""
    error = None if task.cancelled() else task.exception()
    if isinstance(error, LoopTakenOver | Deferred):
        return  # others go on with it
    if isinstance(error, Exception):  # what ends the program is told by whoever runs it
        _log.error("loop %s is driven no longer, and stays as it is recorded: %s", task.get_name(), error)

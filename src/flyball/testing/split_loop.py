"""One loop in the split world: its own side, the model's and the tools', nothing kept between their steps.

Performers work beside each other, as on a cluster: who waits for something holds nobody else up. When the
journal says that what one works on is owed no longer, it is told to stop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any

import msgspec

from flyball.core.clock import Clock
from flyball.core.effects import Effect, End, Execute, Infer, Wait
from flyball.core.errors import JournalConflict
from flyball.core.events import Event, Started, TimePassed, ToolReturned, ToolStarted
from flyball.core.ids import new_id
from flyball.core.signals import Signal
from flyball.orchestrate import performers
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.call_ids import told_apart
from flyball.orchestrate.children import Home, begin, cancel_by_journal
from flyball.orchestrate.commands import (
    ExecuteCommand,
    InferCommand,
    Report,
    execute_command,
    infer_command,
)
from flyball.orchestrate.editing import take_leave
from flyball.orchestrate.elsewhere import Delta
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import accepts, asked_to_detach, fold, owed
from flyball.orchestrate.matching import check_same
from flyball.orchestrate.model_call import infer_in_pieces
from flyball.orchestrate.moves import interrupted
from flyball.orchestrate.reaching import as_recorded
from flyball.orchestrate.state import State
from flyball.orchestrate.watching import Watch
from flyball.testing.broker import Broker, Crash, Message
from flyball.tool.detach import Detaches


class SplitLoop:
    """Drives one loop. `executions` gets the ids of the tool calls that are physically run."""

    def __init__(
        self,
        broker: Broker,
        bindings: Bindings,
        journal: Journal,
        clock: Clock,
        loop_id: str,
        *,
        deps: Any,
        executions: list[str],
        home: Home | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._watch = watch
        self._broker = broker
        self._bindings = bindings
        self._journal = journal
        self._clock = clock
        self._loop_id = loop_id
        self._deps = deps
        self._executions = executions
        self._home = home
        self._detaches = Detaches()
        self._working: dict[asyncio.Task[None], Message] = {}
        self._seen = 0
        """How many events the loop had when it was last looked at."""
        self._until: float | None = None
        """The time that it waited for then."""

    async def begin(self, started: Started) -> int:
        """Append Started, or join the loop that is there; how many events it has."""
        try:
            if started.parent_loop_id:
                return (await begin(self._journal, started, self._clock))[1]
            return await self._journal.append(started.loop_id, (started,), 0)
        except JournalConflict:
            events = await self._journal.read(started.loop_id)
            check_same(events, started)
            return len(events)

    async def grown(self) -> None:
        """Wait until there is something new in the loop's journal, or the time has come that it waits for."""
        await self._news(())

    async def live(self) -> State:
        """Drive to the end, and wait for signals and for time where nothing else is owed."""
        while (state := await self.settle_down()).at != "done":
            await self._news(())
        return state

    async def settle_down(self) -> State:
        """Deliver messages until none are left and nothing but waiting is owed."""
        try:
            while True:
                try:
                    state = await self._step()
                except (Crash, JournalConflict):
                    # What was not acknowledged comes again, and what is owed is worked out from the journal
                    # anew.
                    continue
                if state is not None:
                    self._broker.land(self._loop_id)
                    return state
        finally:
            # Who drives is gone: what was begun and not acknowledged is delivered to the next one.
            for message in await self._stop(list(self._working)):
                message.busy = False

    async def _step(self) -> State | None:
        """Deliver the next message; without one, wait for those who work. The state, where nothing moves."""
        self._collect()
        message = self._broker.next_message(self._loop_id)
        if message is not None:
            self._broker.maybe_crash()
            if message.kind == "report":
                await self._report(msgspec.json.decode(message.data, type=Report))
                self._broker.acknowledge(message)
            else:
                await self._begin_work(message)
            return None
        if self._working:
            if await self._news(self._working):
                await self._pump()
            return None
        state = await self._pump()
        if self._broker.is_quiet(self._loop_id):
            return state
        await asyncio.sleep(0)  # somebody else who drives this loop may be at it
        return None

    # Those who work

    async def _begin_work(self, message: Message) -> None:
        message.busy = True
        work = self._model if message.kind == "infer" else self._tool
        self._working[asyncio.create_task(work(message.data))] = message
        # Most work is done without waiting for anything: it is, now.
        await asyncio.sleep(0)

    def _collect(self) -> None:
        """Acknowledge what was done. What a crash left undone is delivered again."""
        for task in [task for task in self._working if task.done()]:
            message = self._working.pop(task)
            message.busy = False
            if task.cancelled():
                self._ended_itself(message)
            elif isinstance(error := task.exception(), Crash):
                continue
            elif error is not None:
                raise error
            self._broker.acknowledge(message)

    def _ended_itself(self, message: Message) -> None:
        """A performer whose work cancelled the task that it ran in reports that."""
        now = self._clock.now()
        if message.kind == "execute":
            command = msgspec.json.decode(message.data, type=ExecuteCommand)
            event: Event = performers.call_cancelled(command.call, command.turn, command.index, now)
        else:
            asked = msgspec.json.decode(message.data, type=InferCommand)
            error, purpose = asyncio.CancelledError(), asked.purpose
            event = performers.model_failed(error, asked.turn, now, now, purpose=purpose)
        self._broker.publish("report", Report(self._loop_id, event))

    async def _stop(self, tasks: list[asyncio.Task[None]]) -> list[Message]:
        """Tell performers to stop, and wait until they have; the messages that they worked on."""
        messages = [self._working.pop(task) for task in tasks]
        await _stopped(tasks)
        return messages

    async def _model(self, data: bytes) -> None:
        command = msgspec.json.decode(data, type=InferCommand)
        purpose, now = command.purpose, self._clock.now
        engine = self._bindings.engine_for(purpose)
        if purpose != "turn" or not self._broker.is_heard(command.loop_id):
            event: Event = await performers.infer(engine, command.request, command.turn, now, purpose)
            self._broker.maybe_crash()
            self._broker.publish("report", Report(command.loop_id, event))
            return
        call, number, doomed = new_id(), 0, self._broker.doomed()
        async with aclosing(infer_in_pieces(engine, command.request, command.turn, now)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Event):
                    self._broker.maybe_crash()
                    self._broker.publish("report", Report(command.loop_id, piece))
                    return
                delta = Delta(command.id, command.turn, call, number, piece)
                self._broker.hand_on(command.loop_id, delta)
                number += 1
                await asyncio.sleep(0)  # whoever follows may hear of it now
                if doomed and self._broker.chance(0.3):
                    self._broker.crash()

    async def _tool(self, data: bytes) -> None:
        command = msgspec.json.decode(data, type=ExecuteCommand)
        now = self._clock.now
        if command.once and not self._broker.claim(command.id):
            event = ToolReturned(now(), command.turn, command.index, interrupted(command.call))
        else:
            self._broker.maybe_crash()
            self._executions.append(command.id)
            tool = self._bindings.tools.get(command.call.name)
            event = await performers.call_tool(
                tool,
                command.call,
                command.turn,
                command.index,
                self._deps,
                command.facts,
                now,
                self._home,
                self._detaches,
            )
        self._broker.maybe_crash()
        self._broker.publish("report", Report(command.loop_id, event))

    # The loop's side

    async def _report(self, report: Report) -> None:
        state, length = await self._load()
        event = told_apart(as_recorded(report.event, state), state.ids)
        if accepts(state, event):
            await self._append(event, length)
            self._broker.maybe_crash()
        await self._pump()

    async def _load(self) -> tuple[State, int]:
        events = await self._journal.read(self._loop_id)
        if self._watch is not None:
            self._watch.heard(0, events)
            await self._watch.tell()
        state = fold(events, self._loop_id)
        # A state must survive being written down and read back.
        return msgspec.json.decode(msgspec.json.encode(state), type=State), len(events)

    async def _append(self, event: Event, length: int) -> None:
        await self._journal.append(self._loop_id, (event,), length)

    async def _look(self) -> tuple[State, int, list[Effect]]:
        """Where the loop stands and what it owes now, once the time has been seen to."""
        while True:
            state, length = await self._load()
            effects, now = owed(state), self._clock.now()
            self._seen = length
            self._until = next(
                (one.until for one in effects if isinstance(one, Wait) and one.until is not None), None
            )
            if self._until is None or now < self._until:
                return state, length, effects
            await self._append(TimePassed(now), length)

    async def _pump(self) -> State:
        """Do what is the loop's own to do, publish the rest, and stop who works on what is owed no longer."""
        while True:
            state, length, effects = await self._look()
            self._detaches.ask(asked_to_detach(state))
            wanted = {effect.id for effect in effects}
            unwanted = [task for task, message in self._working.items() if _effect(message) not in wanted]
            for message in await self._stop(unwanted):
                self._broker.acknowledge(message)
            own = next((one for one in effects if not isinstance(one, Infer | Execute | Wait)), None)
            if own is not None:
                await self._own(state, own)
            elif not await self._commanded(state, length, effects):
                return state

    async def _commanded(self, state: State, length: int, effects: list[Effect]) -> bool:
        """Publish the commands that are owed. Whether something had to be recorded before."""
        parts = self._bindings.parts_for(state.spec)
        for effect in effects:
            if isinstance(effect, Execute) and effect.once and effect.index not in state.once:
                # From here on it may have had its effect, also if the loop is cancelled before a result is
                # there.
                await self._append(ToolStarted(self._clock.now(), effect.turn, effect.index), length)
                return True
        for effect in effects:
            if isinstance(effect, Infer):
                self._broker.command("infer", infer_command(state, effect, parts))
            elif isinstance(effect, Execute):
                self._broker.command("execute", execute_command(state, effect))
        return False

    async def _own(self, state: State, effect: Effect) -> None:
        """Carry out an effect of the loop's own and record what came of it, unless it is owed no longer."""
        if isinstance(effect, End):
            await self._take_leave(state, effect)
        task = asyncio.ensure_future(
            performers.perform_own(effect, state, self._bindings, self._deps, self._clock.now, self._home)
        )
        try:
            await asyncio.sleep(0)
            while not task.done():
                if await self._news((task,)):
                    _, _, effects = await self._look()
                    if all(other.id != effect.id for other in effects):
                        return
        finally:
            if not task.done():
                await _stopped([task])
        self._broker.maybe_crash()
        state, length = await self._load()
        if accepts(state, event := task.result()):
            await self._append(event, length)

    async def _take_leave(self, state: State, effect: End) -> None:
        """Do what the end owes others; whoever does it may die before, after and in between."""
        by_journal = cancel_by_journal(self._journal, self._clock)

        async def cancel(loop_id: str, signal: Signal) -> bool:
            self._broker.maybe_crash()
            taken = await by_journal(loop_id, signal)
            self._broker.maybe_crash()
            return taken

        self._broker.maybe_crash()
        await take_leave(effect, state, self._journal, self._bindings, self._clock, cancel=cancel)

    async def _news(self, tasks: Iterable[asyncio.Task[Any]]) -> bool:
        """Wait for a task to end, the journal to grow, or the time to come; whether it was not a task."""
        rung: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = None if self._until is None else self._clock.call_at(self._until, lambda: _ring(rung))
        grown = asyncio.ensure_future(self._journal.wait(self._loop_id, self._seen))
        try:
            await asyncio.wait([*tasks, grown, rung], return_when=asyncio.FIRST_COMPLETED)
            return grown.done() or rung.done()
        finally:
            if timer is not None:
                timer.cancel()
            await _stopped([grown])


def _effect(message: Message) -> str:
    """The id of the effect that a command is for."""
    return msgspec.json.decode(message.data, type=InferCommand | ExecuteCommand).id


def _ring(rung: asyncio.Future[None]) -> None:
    if not rung.done():
        rung.set_result(None)


async def _stopped(tasks: list[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended, however they end."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

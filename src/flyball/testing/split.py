"""SplitDriver: the loop, the model and the tools as performers that share nothing but bytes.

It drives a loop the way a cluster does, in one process and in an order that a seed decides: commands and
reports are encoded, delivered at least once, doubled and out of order; each performer may crash before or
after it acts, and forgets everything when it does. Only the journal, under compare-and-set, and the claims
of at_most_once calls survive. If an agent's run needs anything else, it fails here.
"""

from __future__ import annotations

from random import Random
from typing import Any

import msgspec
from msgspec import Struct

from flyball.core.clock import Clock
from flyball.core.effects import Admit, Deliver, Effect, End, Execute, Infer, Judge, Prepare, Settle, Wait
from flyball.core.errors import DepsError, JournalConflict, OrchestrationFailure
from flyball.core.events import Ended, Event, Outcome, SignalReceived, Started, TimePassed, ToolReturned
from flyball.core.signals import Signal
from flyball.orchestrate import performers
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.call_ids import told_apart
from flyball.orchestrate.commands import (
    ExecuteCommand,
    InferCommand,
    Report,
    execute_command,
    infer_command,
)
from flyball.orchestrate.driver import check_same
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import accepts, fold, owed
from flyball.orchestrate.moves import interrupted
from flyball.orchestrate.state import State
from flyball.testing.bytes_journal import BytesJournal


class Chaos(Struct, frozen=True):
    """How bad the world is: the chance of each mishap, at every point where it can happen."""

    double: float = 0.0
    reorder: float = 0.0
    crash: float = 0.0


CALM = Chaos()
ROUGH = Chaos(double=0.2, reorder=0.5, crash=0.2)


class _Crash(Exception):  # noqa: N818 - it is a mishap of the simulation, not an error
    """A performer died at this point."""


class SplitDriver:
    """A driver for tests. One instance is one world: its journal, its queues, its claims."""

    def __init__(self, seed: int = 0, chaos: Chaos = CALM, *, deps: Any = None) -> None:
        self.journal = BytesJournal()
        self.executions: list[str] = []
        """The ids of the tool calls that were physically run, in order."""
        self.crashes = 0
        self._random = Random(seed)
        self._chaos = chaos
        self.deps = deps
        self._queue: list[tuple[str, bytes]] = []
        self._published: set[str] = set()
        self._claims: set[str] = set()
        self._budget = 10_000

    async def run(
        self, bindings: Bindings, journal: Journal | None, started: Started, clock: Clock
    ) -> tuple[Journal, State]:
        """Drive a loop to its end, or until it only waits.

        Raises:
            DepsError: dependencies were passed to the run: they do not travel, workers bind their own.
        """
        if bindings.deps is not None:
            raise DepsError("deps= does not travel to another process: bind them where the workers run")
        journal = journal or self.journal
        world = _World(self, bindings, journal, clock, started.loop_id)
        await world.begin(started)
        return journal, await world.settle_down()

    async def signal(self, bindings: Bindings, loop_id: str, signal: Signal, clock: Clock) -> State:
        """Deliver a signal, and drive on."""
        world = _World(self, bindings, self.journal, clock, loop_id)
        self._queue.append(("report", _encode(Report(loop_id, SignalReceived(clock.now(), signal)))))
        return await world.settle_down()

    # The world's mishaps

    def chance(self, probability: float) -> bool:
        """Whether a mishap happens now."""
        return bool(probability) and self._random.random() < probability

    def maybe_crash(self) -> None:
        """Perhaps die here."""
        if self.chance(self._chaos.crash):
            self.crashes += 1
            raise _Crash

    @property
    def quiet(self) -> bool:
        """Whether no message is on its way."""
        return not self._queue

    def command(self, kind: str, body: InferCommand | ExecuteCommand) -> None:
        """Put a command on its way, unless it was: a broker knows one that it had by its id.

        Brokers forget: then it goes out again, although it was or is being carried out.
        """
        if body.id not in self._published or self.chance(self._chaos.double):
            self._published.add(body.id)
            self.publish(kind, body)

    def publish(self, kind: str, body: Struct) -> None:
        """Put a message on its way, perhaps twice."""
        data = _encode(body)
        self._queue.append((kind, data))
        if self.chance(self._chaos.double):
            self._queue.append((kind, data))

    def next_message(self) -> tuple[str, bytes] | None:
        """The message that is delivered next; it stays in the queue until it is acknowledged."""
        if not self._queue:
            return None
        self._budget -= 1
        if self._budget < 0:
            raise OrchestrationFailure("the loop does not come to an end: 10,000 messages were delivered")
        last = len(self._queue) - 1
        return self._queue[self._random.randint(0, last) if self.chance(self._chaos.reorder) else 0]

    def acknowledge(self, message: tuple[str, bytes]) -> None:
        """The message was handled."""
        self._queue.remove(message)

    def claim(self, name: str) -> bool:
        """Create-only: whether this is the first to ask."""
        if name in self._claims:
            return False
        self._claims.add(name)
        return True


class _World:
    """One loop in the split world. Each method is one performer's step, with nothing kept between steps."""

    def __init__(
        self, driver: SplitDriver, bindings: Bindings, journal: Journal, clock: Clock, loop_id: str
    ) -> None:
        self._driver = driver
        self._bindings = bindings
        self._journal = journal
        self._clock = clock
        self._loop_id = loop_id

    async def begin(self, started: Started) -> None:
        """Append Started, or take the loop over."""
        try:
            await self._journal.append(started.loop_id, (started,), 0)
        except JournalConflict:
            events = await self._journal.read(started.loop_id)
            check_same(events, started)

    async def settle_down(self) -> State:
        """Deliver messages until none are left and nothing but waiting is owed."""
        while True:
            message = self._driver.next_message()
            try:
                if message is None:
                    state = await self._pump()
                    if self._driver.quiet:
                        return state
                else:
                    await self._deliver(*message)
                    self._driver.acknowledge(message)
            except (_Crash, JournalConflict):
                # What was not acknowledged comes again, and what is owed is worked out from the journal anew.
                continue

    async def _deliver(self, kind: str, data: bytes) -> None:
        self._driver.maybe_crash()
        if kind == "infer":
            await self._model(msgspec.json.decode(data, type=InferCommand))
        elif kind == "execute":
            await self._tool(msgspec.json.decode(data, type=ExecuteCommand))
        else:
            await self._report(msgspec.json.decode(data, type=Report))

    # The model's side

    async def _model(self, command: InferCommand) -> None:
        event = await performers.infer(self._bindings.engine, command.request, command.turn, self._clock.now)
        self._driver.maybe_crash()
        self._driver.publish("report", Report(command.loop_id, event))

    # The tools' side

    async def _tool(self, command: ExecuteCommand) -> None:
        now = self._clock.now
        if command.once and not self._driver.claim(command.id):
            event = ToolReturned(now(), command.turn, command.index, interrupted(command.call))
        else:
            self._driver.maybe_crash()
            self._driver.executions.append(command.id)
            tool = self._bindings.tools.get(command.call.name)
            event = await performers.call_tool(
                tool, command.call, command.turn, command.index, self._driver.deps, command.facts, now
            )
        self._driver.maybe_crash()
        self._driver.publish("report", Report(command.loop_id, event))

    # The loop's side

    async def _report(self, report: Report) -> None:
        state, length = await self._load()
        event = told_apart(report.event, state.ids)
        if accepts(state, event):
            await self._append(event, length)
            self._driver.maybe_crash()
        await self._pump()

    async def _load(self) -> tuple[State, int]:
        events = await self._journal.read(self._loop_id)
        state = fold(events, self._loop_id)
        # A state must survive being written down and read back.
        return msgspec.json.decode(msgspec.json.encode(state), type=State), len(events)

    async def _append(self, event: Event, length: int) -> None:
        await self._journal.append(self._loop_id, (event,), length)

    async def _pump(self) -> State:
        """Do what is the loop's own to do, and publish the rest."""
        while True:
            state, length = await self._load()
            effects = owed(state)
            parts = self._bindings.parts_for(state.spec)
            own: Effect | None = None
            for effect in effects:
                if isinstance(effect, Infer):
                    self._driver.command("infer", infer_command(state, effect, parts))
                elif isinstance(effect, Execute):
                    self._driver.command("execute", execute_command(state, effect))
                elif not isinstance(effect, Wait):
                    own = effect
                elif effect.until is not None and self._clock.now() >= effect.until:
                    await self._append(TimePassed(self._clock.now()), length)
                    break
            else:
                if own is None:
                    return state
                event = await self._own(state, own)
                self._driver.maybe_crash()
                await self._append(event, length)

    async def _own(self, state: State, effect: Effect) -> Event:
        now, bindings, deps = self._clock.now, self._bindings, self._driver.deps
        if isinstance(effect, Admit):
            return await performers.admit(state, bindings, deps, now)
        if isinstance(effect, Prepare):
            return await performers.prepare(state, bindings, deps, now)
        if isinstance(effect, Judge):
            return await performers.judge(state, effect.indices, bindings, deps, now)
        if isinstance(effect, Settle):
            if bindings.validators:
                return (await performers.settle_validated(state, bindings, deps, now))[0]
            return performers.settle(state, bindings.output, now)[0]
        if isinstance(effect, Deliver):
            output = bindings.output.of(state) if state.outcome is Outcome.SUCCESS else None
            return await performers.deliver(state, bindings, output, deps, now)
        assert isinstance(effect, End), effect
        return Ended(now(), effect.outcome, effect.error)


def _encode(body: Struct) -> bytes:
    return msgspec.json.encode(body)

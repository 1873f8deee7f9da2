"""Telling those who watch a loop what happens in it, as it is recorded.

The rules
=========
- What is told is a projection of what is recorded (`projections.runtime_events`), in the journal's order, and
  told by whoever drives the loop, before the next effect begins: a model call is told before it is made.
- Each recorded event is told at most once, also after a crash: what a process recorded that died before it
  had told it is told by nobody. Replay tells nothing, and a resumed loop tells what happens from then on.
- Who watches decides nothing. What a watcher raises is logged, and what it changes is its own copy.
- A watcher that speaks to the very loop that it is told of is not waited for by itself.

Only loops of agents that have a watcher have a Watch: all others are driven as if there were none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from msgspec.structs import replace

from flyball.core.apart import apart, messages_apart
from flyball.core.context import RunContext, RunFacts
from flyball.core.events import Event, Forked
from flyball.observe.events import (
    ModelRequestedEvent,
    ModelRespondedEvent,
    RunCompletedEvent,
    RuntimeEvent,
    ToolEndedEvent,
    TurnEndedEvent,
)
from flyball.observe.trace import RunTrace
from flyball.observe.watcher import unharmed
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.facts import in_context, run_facts
from flyball.orchestrate.features import Stages
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machines import AnyState
from flyball.orchestrate.projections.runtime_events import Narrator, run_trace, turn_of
from flyball.orchestrate.state import State

_telling: ContextVar[tuple[Watch, ...]] = ContextVar("flyball_telling", default=())
"""Those that are telling something in this context just now."""


class Teller(Protocol):
    """Who tells of a loop, event by event: `Narrator`, `FlowNarrator`."""

    @property
    def state(self) -> AnyState | None:
        """What the loop has come to."""
        ...

    def told(self, event: Event) -> list[RuntimeEvent]:
        """Fold one more event; what is told of it."""
        ...

    def pass_by(self, event: Event) -> None:
        """Fold one more event, and tell nothing."""
        ...

    def passed_by(self) -> Teller:
        """Who goes on after events that were not told."""
        ...


class Watch:
    """What the watchers of one loop, an agent's or a flow's, have been told, and are still to be."""

    def __init__(self, stages: Stages, journal: Journal, loop_id: str) -> None:
        self.trace: RunTrace | None = None
        """The trace, once the loop is over and if the agent traces."""
        self._stages = stages
        self._journal = journal
        self._loop_id = loop_id
        self._heard: deque[tuple[Event, bool]] = deque()
        """What is recorded and was not told of yet, and whether it is to be told here."""
        self._length: int | None = None
        """How many events were heard of, with those before the first; None before that."""
        self._untold = 0
        self._position = 0
        """How many events the narrator has folded."""
        self._narrator: Teller | None = None
        self._passed_by = False
        """Whether something was folded and not told."""
        self._facts: RunFacts | None = None
        """What is so at the event that is being told, once somebody has asked."""
        self._lock = asyncio.Lock()

    @property
    def has_news(self) -> bool:
        """Whether there is something to tell, or somebody is at it."""
        return self._untold > 0 or self._lock.locked()

    def heard(self, first: int, events: Sequence[Event], *, tell: bool = True) -> None:
        """Hear of events that are recorded, from number `first` on; those that were heard of are left out."""
        if self._length is None:
            self._length = self._position = first
        fresh = events[max(0, self._length - first) :]
        self._length += len(fresh)
        self._heard.extend([(event, tell) for event in fresh])
        if tell:
            self._untold += len(fresh)

    def claim(self, event: Event) -> bool:
        """Have an event told that was heard of and was not to be; False if there is none such (any more)."""
        for place in range(len(self._heard) - 1, -1, -1):
            known, told = self._heard[place]
            if known == event:
                self._heard[place] = known, True
                self._untold += not told
                return True
        return False

    async def tell(self) -> None:
        """Tell all that there is to tell; returns when all of it has been told, also by others.

        Raises:
            JournalFailure: the journal, which the beginning is read from, cannot be read.
        """
        around = _telling.get()
        if not self.has_news or self in around:
            return
        token = _telling.set((*around, self))
        try:
            async with self._lock:
                while self._untold:
                    if self._narrator is None:
                        await self._begin()
                    await self._tell_next()
        finally:
            _telling.reset(token)

    async def _begin(self) -> None:
        before: Sequence[Event] = ()
        if self._position:
            events = await self._journal.read(self._loop_id)
            if isinstance(events[self._position - 1], Forked):
                # Who forks a loop tells nobody: it is told by who goes on with it first.
                self._position -= 1
                self._heard.appendleft((events[self._position], True))
                self._untold += 1
            before = events[: self._position]
        self._narrator = self._after(before)

    def _after(self, before: Sequence[Event]) -> Teller:
        """Who goes on telling after some events."""
        raise NotImplementedError

    def context(self, event: RuntimeEvent) -> RunContext[Any]:
        """The run as it stands in what is being told. Nothing that is begun from it is the run's."""
        raise NotImplementedError

    async def _tell_next(self) -> None:
        narrator = self._narrator
        assert narrator is not None
        event, tell = self._heard.popleft()
        self._position += 1
        if not tell and narrator.state is not None:
            narrator.pass_by(event)
            self._passed_by = True
            return
        self._untold -= tell
        if self._passed_by:
            narrator = self._narrator = narrator.passed_by()
            self._passed_by = False
        told = narrator.told(event)
        self._facts = None
        if tell:
            for one in told:
                await self._tell_all(_apart(one))

    async def _tell_all(self, event: RuntimeEvent) -> None:
        stages = self._stages
        context = _Once(self, event)
        for watcher in stages.watchers:
            await unharmed(watcher, event.type, watcher.tell, event, context)
        if stages.tracings and isinstance(event, RunCompletedEvent):
            events = await self._journal.read(self._loop_id)
            self.trace = run_trace(events[: self._position])
            for tracing in stages.tracings:
                await tracing.export(self.trace)


class AgentWatch(Watch):
    """The watch over a loop of an agent."""

    def __init__(self, bindings: Bindings, journal: Journal, loop_id: str, *, deps: Any = None) -> None:
        super().__init__(bindings.stages, journal, loop_id)
        self._bindings = bindings
        self._deps = bindings.deps if deps is None else deps

    def _after(self, before: Sequence[Event]) -> Narrator:
        return Narrator.after(before, self._bindings.parts_for, f"loop {self._loop_id}")

    def context(self, event: RuntimeEvent) -> RunContext[Any]:
        """See `Watch.context`."""
        assert self._narrator is not None
        state, facts = self._narrator.state, self._facts
        assert isinstance(state, State)
        if facts is None:
            facts = self._facts = run_facts(state, event.occurred_at)
        turn = turn_of(event, state)
        if turn != facts.turn:  # what followed from it at once has begun the next
            facts = replace(facts, turn=turn)
        return in_context(facts, self._bindings, self._deps)


def _apart(event: RuntimeEvent) -> RuntimeEvent:
    """An event that nothing recorded can be changed through."""
    if isinstance(event, ModelRequestedEvent):
        return replace(event, messages=messages_apart(event.messages))
    if isinstance(event, ModelRespondedEvent | TurnEndedEvent):
        if event.response is None:
            return event
        return replace(event, response=messages_apart((event.response,))[0])
    return apart(event) if isinstance(event, ToolEndedEvent | RunCompletedEvent) else event


class _Once:
    """A context that is made when somebody asks for it, and then is the same for all."""

    __slots__ = ("_event", "_made", "_watch")

    def __init__(self, watch: Watch, event: RuntimeEvent) -> None:
        self._watch = watch
        self._event = event
        self._made: RunContext[Any] | None = None

    def __call__(self) -> RunContext[Any]:
        if self._made is None:
            self._made = self._watch.context(self._event)
        return self._made

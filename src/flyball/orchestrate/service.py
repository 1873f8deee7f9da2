"""Service: agents by name, the runtime that carries their loops on, and all that is recorded of them.

It is what adapters stand on that serve many callers (an HTTP API, an MCP server): each of their operations is
one call here. It is the same over a local journal and over NATS.

Rules:
- A run belongs to nobody who waits for it. Who goes away is no reason to stop it: who wants that sends the
  signal cancel.
- What is told of a loop, live or later, is what its journal says.
- Nothing is kept here but what is under way, and what people were asked last.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from flyball.core.errors import (
    FlyballError,
    IllegalTransition,
    InvalidRequest,
    LoopNotFound,
    UnknownAgent,
    UserError,
)
from flyball.core.events import Ended, Event, Stage
from flyball.core.ids import new_id
from flyball.core.messages import Content
from flyball.core.signals import NO_ANSWER, Signal, SignalType
from flyball.inference.embedder import Embedder
from flyball.inference.engine import Engine
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.accounts import UsageReport, usage_report
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.answering import OutsideResult
from flyball.orchestrate.cards import AgentCard, ModelCard, card_of, models_of
from flyball.orchestrate.catalogue import Catalogue, LoopPage, LoopQuery
from flyball.orchestrate.claims import is_claimed
from flyball.orchestrate.contracts import SystemRequest, SystemResponse
from flyball.orchestrate.dead_letters import DeadLetters
from flyball.orchestrate.family import WaitingCall
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machines import AnyState, stage
from flyball.orchestrate.matching import check_bound
from flyball.orchestrate.permissions import Permission, Person, Policy, owner_of
from flyball.orchestrate.projections.summary import LoopSummary
from flyball.orchestrate.recorded import calls_waiting, load_any
from flyball.orchestrate.runtime import Runtime
from flyball.orchestrate.served import Responded, ServedSystem, served_by
from flyball.orchestrate.serving.trying import Pieces
from flyball.orchestrate.signalling import as_signal
from flyball.orchestrate.state import State
from flyball.orchestrate.system import System

T = TypeVar("T")

_log = logging.getLogger("flyball.loops")

TALK = "talk-"
"""What the ids of a conversation's loops begin with."""
_REMEMBERED = 10_000
"""How many notes are kept of what people were told."""
_MOMENT = 0.2
"""Seconds that a flow has to begin its next step, at the end."""


class Service:
    """Serves agents over one runtime. See the module for its rules.

    Args:
        agents: the agents, no two of one name.
        runtime: who carries their loops on; whoever made it closes it.
        deps: what the agents' tools and functions get, where the loops run in this process.
        dead: what was put aside, where there is such a thing.
        policy: who may say what to loops, where it is said who speaks.
        lasting: whether a loop that is left unfinished is gone on with by a service that comes after this one
            (`served_by`); without it, that is for whoever began it to say.
        stands_in: whether the first agent goes on with recorded loops of agents that are not here, by their
            recorded policy; without it, they are refused with UnknownAgent.
        options: what `System` takes besides (`planner`, `redundancy`, ...).
    """

    def __init__(
        self,
        agents: Sequence[Agent[Any, Any]],
        runtime: Runtime,
        *,
        deps: Any = None,
        dead: DeadLetters | None = None,
        policy: Policy = Policy(),  # noqa: B008 - it is frozen
        lasting: bool = True,
        stands_in: bool = False,
        **options: Any,
    ) -> None:
        self.runtime = runtime
        self.policy = policy
        self.dead = dead
        self.catalogue = Catalogue(runtime.journal)
        self._options: dict[str, Any] = {**options, "runtime": runtime, "journal": runtime.journal}
        if deps is not None:
            self._options["deps"] = deps
        self.responded: Responded | None = None
        """Is told of every response, where somebody wants that: whoever counts them."""
        self._stands_in = stands_in
        self._systems: dict[str, ServedSystem] = {}
        for agent in agents:
            name = agent.config.name
            if name in self._systems:
                raise UserError(f"two agents are called {name!r}: give one another name=")
            self._systems[name] = ServedSystem(
                agent, self._begun, self._told, lasting=lasting, **self._options
            )
        self._tasks: set[asyncio.Task[Any]] = set()
        self._told_up_to: OrderedDict[tuple[str, str], int] = OrderedDict()

    @property
    def journal(self) -> Journal:
        """Where everything is recorded."""
        return self.runtime.journal

    @property
    def systems(self) -> Mapping[str, ServedSystem]:
        """The systems behind the agents, by name."""
        return self._systems

    def system(self, name: str) -> ServedSystem:
        """The system behind an agent.

        Raises:
            UnknownAgent: there is none of that name; the message says which there are.
        """
        found = self._systems.get(name)
        if found is None:
            known = ", ".join(self._systems) or "none"
            raise UnknownAgent(f"there is no agent {name[:100]!r} here; there are: {known}", agent=name[:100])
        return found

    def agents(self) -> tuple[AgentCard, ...]:
        """The agents, as callers see them."""
        return tuple([self.agent(name) for name in self._systems])

    def agent(self, name: str) -> AgentCard:
        """An agent, as callers see it.

        Raises:
            UnknownAgent: there is none of that name.
        """
        return card_of(self.system(name).agent)

    def models(self) -> tuple[ModelCard, ...]:
        """The models that the agents have."""
        return models_of(self.agents())

    def model(self, name: str) -> str:
        """A model that a caller may choose: one of those that the agents here have.

        Raises:
            InvalidRequest: it is none of them. Callers do not choose whom this process speaks to.
        """
        known = [card.name for card in self.models()]
        if name not in known:
            there = ", ".join(known) or "none"
            raise InvalidRequest(
                f"model: {name[:100]!r} is none that can be chosen here; there are: {there}", field="model"
            )
        return name

    def embedder(self, name: str) -> Embedder | None:
        """The engine behind an agent, if it makes vectors; None if it does not, or there is no such agent.

        Raises:
            ConfigurationFailure: the engine cannot be had.
        """
        system = self._systems.get(name)
        engine: Any = None if system is None else system.engine()
        return engine if callable(getattr(engine, "embed", None)) else None

    async def ready(self) -> None:
        """Look whether the journal answers, and has room for more, if it can tell.

        Raises:
            JournalFailure: it does not, or has none.
        """
        await self.journal.sizes(("ready",))
        check: Any = getattr(self.journal, "check", None)
        if check is not None:
            await check()

    async def stage(self, loop_id: str) -> Stage:
        """The stage that a loop is in.

        Raises:
            LoopNotFound: there is no such loop.
        """
        _, state = await self.load(loop_id)
        return stage(state)

    async def standing(self, loop_id: str) -> tuple[int, bool]:
        """How many events a loop has, and whether it is over.

        Raises:
            LoopNotFound: there is no such loop.
        """
        length = (await self.journal.sizes((loop_id,)))[0]
        events = await self.journal.read(loop_id, max(0, length - 1))
        if not events:
            raise LoopNotFound(f"there is no loop {loop_id!r} in the journal", loop_id=loop_id)
        return max(1, length), isinstance(events[-1], Ended)

    # Requests

    async def handle(self, agent: str, request: SystemRequest, *, loop_id: str = "") -> SystemResponse:
        """Serve a request; see `System.handle`. Cancelling who waits leaves the run alone.

        Raises:
            UnknownAgent: there is no such agent.
            InvalidRequest: the id is one of a conversation's.
        """
        return await self.system(agent).handle(request, loop_id=_chosen(loop_id))

    def serve(self, agent: str, request: SystemRequest, *, loop_id: str = "") -> asyncio.Task[SystemResponse]:
        """Begin to serve a request; the task gives the response, and goes on whoever waits for it.

        Raises:
            UnknownAgent: there is no such agent.
            InvalidRequest: the id is one of a conversation's.
        """
        return self.system(agent).begin(request, _chosen(loop_id) or new_id())

    def stream(self, agent: str, request: SystemRequest, *, loop_id: str = "") -> Pieces:
        """Serve a request in pieces, and last the response; see `System.stream`.

        Closing it early leaves the run alone.

        Raises:
            UnknownAgent: there is no such agent.
            InvalidRequest: the id is one of a conversation's.
        """
        return self.system(agent).stream(request, loop_id=_chosen(loop_id))

    async def begin(
        self, agent: str, request: SystemRequest, *, loop_id: str = "", talk: bool = False
    ) -> str:
        """Begin to serve a request; gives the loop's id once it is recorded. The rest happens by itself.

        With the id of a loop that is there, the same request joins it. `talk`: it is the next one of a
        conversation, which only a dispatcher begins.

        Raises:
            UnknownAgent: there is no such agent.
            FlyballError: the request was refused, and no loop began.
        """
        system, loop_id = self.system(agent), (loop_id if talk else _chosen(loop_id)) or new_id()
        if await system.submit(request, loop_id):
            return loop_id
        before = (await self.journal.sizes((loop_id,)))[0]
        serving = system.begin(request, loop_id)
        recorded = asyncio.ensure_future(self.journal.wait(loop_id, before))
        try:
            # One that is there already may be joined, which changes nothing in its journal.
            wait = _MOMENT if before else None
            await asyncio.wait([serving, recorded], timeout=wait, return_when=asyncio.FIRST_COMPLETED)
            response = serving.result() if serving.done() else None
            there = response is None or (response.loop_id and (await self.journal.sizes((loop_id,)))[0])
            if response is not None and response.error is not None and not there:
                raise response.error.exception()
        finally:
            recorded.cancel()
            await asyncio.gather(recorded, return_exceptions=True)
        return loop_id

    # Loops

    def follow(self, loop_id: str, after: int = 0) -> AsyncGenerator[Recorded | StreamEvent]:
        """What happens in a loop, from its event number `after` on; see `Runtime.follow`."""
        return self.runtime.follow(loop_id, after)

    async def load(self, loop_id: str) -> tuple[list[Event], AnyState]:
        """A loop's events, and the state that they lead to.

        Raises:
            LoopNotFound: there is no such loop.
        """
        return await load_any(self.journal, loop_id)

    async def summary(self, loop_id: str) -> LoopSummary:
        """A loop in a few words.

        Raises:
            LoopNotFound: there is no such loop.
        """
        return await self.catalogue.summary(loop_id)

    async def loops(self, query: LoopQuery) -> LoopPage:
        """The loops that a query asks for, page by page; see `Catalogue.find`.

        Of one that cannot be read it is told that, and not where on this machine it is: callers are others.

        Raises:
            InvalidRequest: the query cannot be asked; the error names the field.
        """
        page = await self.catalogue.find(query)
        loops = [one if one.stage else replace(one, prompt="it cannot be read") for one in page.loops]
        return replace(page, loops=tuple(loops))

    async def usage(self, query: LoopQuery) -> UsageReport:
        """What the loops of a query have used and cost; see `usage_report`.

        Raises:
            InvalidRequest: the query cannot be asked; the error names the field.
        """
        return await usage_report(self.catalogue, query)

    async def waiting(self, loop_id: str) -> tuple[WaitingCall, ...]:
        """The calls of a loop, and of those under it, that wait for somebody.

        Raises:
            LoopNotFound: there is no such loop.
        """
        return await calls_waiting(self.journal, loop_id)

    async def response(self, loop_id: str) -> SystemResponse:
        """The response of a loop that is over, from its journal alone; of one that is not, an error in it.

        Raises:
            LoopNotFound: there is no such loop.
        """
        _, state = await self.load(loop_id)
        return await self._reader_of(state).replay(loop_id)

    async def signal(self, loop_id: str, signal: Signal | SignalType, *, who: Person | None = None) -> Stage:
        """Say something to a loop; recorded when this returns, with the stage in which it was taken.

        A loop that nobody drives is driven on here, if its agent is here. `who` says it, where that is to be
        looked at: it is theirs to say, or it is refused.

        Raises:
            LoopNotFound: there is no such loop.
            NotPermitted: who says it may not.
            SignalRefused: it does not fit where the loop stands; it says which do. Or its id is that of
                another signal, or of another's.
        """
        signal = as_signal(signal)
        await self.check(loop_id, signal.type, who)
        if signal.type is SignalType.FEEDBACK and not self._may_send_back(who):
            _, state = await self.load(loop_id)
            if isinstance(state, State) and state.spec.output.approval:
                signal = replace(signal, call_id=NO_ANSWER)  # one may begin to wait before it is recorded
        if signal.type is SignalType.RETRY:
            await self.resume(loop_id, retry=signal)
            _, state = await self.load(loop_id)
            return stage(state)
        stage_then = await self.runtime.signal(loop_id, signal)
        if signal.type is not SignalType.PAUSE:
            await self._seen_to(loop_id)
        return stage_then

    async def check(self, loop_id: str, kind: SignalType, who: Person | None) -> None:
        """See that somebody may say something to a loop; a program, which is nobody, may.

        Raises:
            LoopNotFound: there is no such loop.
            NotPermitted: they may not.
        """
        if who is not None:
            _, state = await self.load(loop_id)
            self.policy.permissions.check_signal(who, kind, owner_of(state.metadata))
            if kind is SignalType.FEEDBACK and state.at == "approve":
                self.policy.permissions.check_sending_back(who)

    def _may_send_back(self, who: Person | None) -> bool:
        return who is None or self.policy.permissions.allow(who, Permission.APPROVE)

    # What people were told

    def note_told(self, loop_id: str, whom: str, number: int) -> None:
        """Note that somebody was told of a loop's event of that number; or that a message was answered so."""
        self._told_up_to[loop_id, whom] = max(number, self.told_up_to(loop_id, whom))
        self._told_up_to.move_to_end((loop_id, whom))
        if len(self._told_up_to) > _REMEMBERED:
            self._told_up_to.popitem(last=False)

    def told_up_to(self, loop_id: str, whom: str) -> int:
        """The number of the last event that was noted so; 0 where none was, or it is long ago."""
        return self._told_up_to.get((loop_id, whom), 0)

    async def answer(
        self, loop_id: str, results: Sequence[OutsideResult], *, who: Person | None = None
    ) -> Stage:
        """Give a loop results of calls that wait for them. It goes on by itself. `who`: as of a signal.

        Raises:
            LoopNotFound: there is no such loop.
            NotPermitted: who gives them may not say anything to the loop.
            AnswerRefused: a result is of no call that waits, or of one that has another result.
        """
        await self.check(loop_id, SignalType.FEEDBACK, who)
        stage = await self.runtime.answer(loop_id, results)
        await self._seen_to(loop_id)
        return stage

    async def resume(self, loop_id: str, *, retry: Signal | None = None, who: Person | None = None) -> None:
        """Have a loop driven on that nobody drives; one that is, or is over, stays as it is.

        With `retry` one that ended badly is opened again. `who`: as of a signal.

        Raises:
            LoopNotFound: there is no such loop.
            NotPermitted: who wants that may not.
            UnknownAgent: the loop's agent is not here.
            SignalRefused: it is not one that can be tried again.
        """
        await self.check(loop_id, SignalType.RETRY if retry is not None else SignalType.RESUME, who)
        _, state = await self.load(loop_id)
        if state.at == "done" and retry is None:
            return
        system = self._of(state)
        if retry is not None:
            await self.runtime.signal(loop_id, retry)
        if isinstance(state, State):
            bindings = system.bindings_for(state.spec, self._other_engine(system, state.spec.model))
            await self.runtime.carry_on(bindings, loop_id)
        elif not (self._drives(loop_id) or is_claimed(self.journal, loop_id)):
            self._begun(system.go_on(loop_id), loop_id)

    async def check_at_hand(self, loop_id: str) -> None:
        """See that what a loop counts on is here, so that it can be driven on; one that is over needs none.

        Raises:
            LoopNotFound: there is no such loop.
            UnknownAgent: its agent is not here.
            UserError: a validator, a filter, an editor or another such part of its agent is not.
        """
        _, state = await self.load(loop_id)
        if state.at == "done":
            return
        system = self._of(state)
        if isinstance(state, State):
            engine = self._other_engine(system, state.spec.model)
            check_bound(state.spec, system.bindings_for(state.spec, engine))

    async def fork(
        self,
        loop_id: str,
        turn: int,
        *,
        prompt: Content | None = None,
        new_loop_id: str = "",
        who: Person | None = None,
        **changes: Any,
    ) -> str:
        """Record a loop that shares another's first turns, and have it driven on; its id. See `System.fork`.

        Raises:
            LoopNotFound: there is no such loop.
            UnknownAgent: the loop's agent is not here.
            UserError: the loop has no such turn, or a prompt is needed.
        """
        _, state = await self.load(loop_id)
        forked = await self._of(state).fork(
            loop_id, turn, prompt=prompt, new_loop_id=_chosen(new_loop_id), who=who, **changes
        )
        await self.resume(forked)
        return forked

    async def delete(self, loop_id: str) -> bool:
        """Remove a loop that is over, for good; False where the journal keeps all. Loops under it stay.

        Raises:
            LoopNotFound: there is no such loop.
            IllegalTransition: it is not over.
        """
        _, over = await self.standing(loop_id)
        if not over:
            raise IllegalTransition(f"loop {loop_id!r} is not over: cancel it first", loop_id=loop_id)
        delete: Any = getattr(self.journal, "delete", None)
        if delete is not None:
            await delete(loop_id)
        return delete is not None

    # The end

    async def drain(self, seconds: float) -> None:
        """Give what is under way so many seconds; what is not over by then is parked: it stays as recorded.

        Afterwards nothing runs here any more; `resume` goes on with what was parked.
        """
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            await self.runtime.drain(left)
            # What is busy between its loops has a moment; what is left then waits for somebody.
            if not self._tasks or not (await asyncio.wait(self._tasks, timeout=min(left, _MOMENT)))[0]:
                break
        await asyncio.sleep(0)  # what was begun just now is told of its end, too
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def aclose(self) -> None:
        """Stop what is under way, as it is recorded, and close the engines that were made here."""
        await self.drain(0)
        for system in self._systems.values():
            await system.aclose()

    # Inside

    def _of(self, state: AnyState) -> ServedSystem:
        """The system that goes on with a recorded loop: that of its agent, or what stands in for it."""
        name = self._name_of(state)
        if self._stands_in and name not in self._systems:
            return next(iter(self._systems.values()))
        return self.system(name)

    def _reader_of(self, state: AnyState) -> System:
        """The same, for who only reads: then there need be no such agent."""
        name = self._name_of(state)
        return self._systems.get(name) or System(Agent(None, name=name or "agent"), journal=self.journal)

    def _name_of(self, state: AnyState) -> str:
        name = served_by(state.metadata)  # a flow's own name may be that of its pattern
        if name in self._systems:
            return name
        return state.spec.agent if isinstance(state, State) else state.flow.name

    def _told(self, agent: str, response: SystemResponse) -> None:
        if self.responded is not None:
            self.responded(agent, response)

    def _other_engine(self, system: System, model: str) -> Engine | None:
        """The engine of a recorded loop's model, where that is another agent's: a fork may have chosen it."""
        if model == system.agent.config.model:
            return None
        others = [one for one in self._systems.values() if one.agent.config.model == model]
        return others[0].engine() if others else None

    def _begun(self, work: Coroutine[Any, Any, T], loop_id: str) -> asyncio.Task[T]:
        """Something that goes on whoever waits for it."""
        task = asyncio.create_task(work, name=loop_id)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _seen_to(self, loop_id: str) -> None:
        """Have a loop driven on that something was said to, unless somebody does: by what it was begun under,
        for as long as that is not over. What was said is recorded, whatever comes of this.
        """
        try:
            above, state = loop_id, (await self.load(loop_id))[1]
            while state.parent_loop_id:
                below, (_, state) = above, await self.load(above := state.parent_loop_id)
                if state.at == "done":
                    above = below
                    break
            await self.resume(above)
        except UnknownAgent:
            return  # whoever has its agent goes on with it
        except FlyballError as error:
            _log.warning("loop %s was told something, and is not gone on with here: %s", loop_id, error)

    def _drives(self, loop_id: str) -> bool:
        """Whether a flow is driven here."""
        return any(task.get_name() == loop_id for task in self._tasks)


def _chosen(loop_id: str) -> str:
    """An id that somebody chose for a loop, if it may be chosen.

    Raises:
        InvalidRequest: the loops of conversations have such ids: who could choose them would put words into
            other people's mouths.
    """
    if loop_id.startswith(TALK):
        raise InvalidRequest(
            f"loop_id: {loop_id[:100]!r} begins with {TALK!r}, as conversations' loops do: choose another",
            field="loop_id",
        )
    return loop_id

"""The loops that a worker has in mind: others are read from the journal when something comes for them."""

from __future__ import annotations

from collections import OrderedDict

from flyball.core.events import Event
from flyball.orchestrate.bindings import Bindings
from flyball.orchestrate.course import OVER
from flyball.orchestrate.keeping import Keeper
from flyball.orchestrate.matching import check_bound
from flyball.orchestrate.recorded import load
from flyball.orchestrate.state import State
from flyball.orchestrate.watched import WatchedKeeper
from flyball.runtime.nats.journal import NatsJournal
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.relatives import Relatives

_KEPT = 2_000


class Keepers:
    """A keeper for each loop, those of the last 2,000 at hand.

    What a keeper has in mind and what is recorded may differ after something has failed: then it is dropped,
    and the next one reads.
    """

    def __init__(self, journal: NatsJournal, agents: Agents, relatives: Relatives) -> None:
        self._journal = journal
        self._agents = agents
        self._relatives = relatives
        self._kept: OrderedDict[str, Keeper] = OrderedDict()

    def at_hand(self, loop_id: str) -> Keeper | None:
        """A loop's keeper, if it is kept in mind."""
        return self._kept.get(loop_id)

    async def get(self, loop_id: str) -> Keeper:
        """A loop's keeper, which knows all that this process has heard of.

        Raises:
            LoopNotFound: there is no such loop.
            UnknownAgent: its agent is not here.
            UserError: that has not what the loop counts on.
        """
        keeper = self._kept.get(loop_id)
        if keeper is None:
            events, state = await load(self._journal, loop_id)
            return self.keep(state, events)
        self._kept.move_to_end(loop_id)
        if self._journal.known_length(loop_id) > keeper.length:
            await keeper.catch_up()
        return keeper

    def keep(self, state: State, events: list[Event]) -> Keeper:
        """Keep a loop in mind that has just been read; raises as `bound` does."""
        bindings, relatives = self.bound(state), self._relatives
        kind = Keeper if bindings.watched is None else WatchedKeeper
        keeper = self._kept[state.loop_id] = kind(
            bindings,
            self._journal,
            state,
            events,
            cancel=relatives.cancel,
            spawn=relatives.spawn,
            above=relatives.tell_above,
        )
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return keeper

    def drop(self, loop_id: str) -> None:
        """Keep a loop in mind no longer."""
        self._kept.pop(loop_id, None)

    def bound(self, state: State) -> Bindings:
        """The code behind a loop, with all that its spec counts on. To end one that is over, less will do.

        Raises:
            UnknownAgent: its agent is not here.
            UserError: that has no guardrail, or the like, of a name with which the loop was begun.
        """
        bindings = self._agents.get(state.spec.agent)
        if state.at not in OVER:
            check_bound(state.spec, bindings)
        return bindings

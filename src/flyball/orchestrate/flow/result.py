"""What a flow gives back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import FlyballError, LoopNotFound
from flyball.core.events import Event, Outcome
from flyball.core.usage import RunUsage
from flyball.orchestrate.children import spent_in
from flyball.orchestrate.features import stages_of
from flyball.orchestrate.flow.parts import Part, leaves, part_at, read_output
from flyball.orchestrate.flow_loops import children_of, step_loop
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machines import AnyState
from flyball.orchestrate.recorded import load_any
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.state import State

if TYPE_CHECKING:
    from flyball.observe.cost import CostTracker
    from flyball.observe.run_cost import RunCost

OutT_co = TypeVar("OutT_co", covariant=True)


class StepResult(Struct, frozen=True):
    """A step that has ended, as it did last.

    `path` says where in the flow it stands: `1.0` is the first step of the second. `run` is the result of the
    agent's run, where it was one, with its messages and its cost; of one that failed, what it had reached.
    """

    path: str
    name: str
    kind: str
    output: Any = None
    error: FlyballError | None = None
    usage: RunUsage = RunUsage()
    attempt: int = 1
    duration: float = 0.0
    run: RunResult[Any] | None = None

    @property
    def loop_id(self) -> str:
        """The loop that it was run as; empty if it was none."""
        return "" if self.run is None else self.run.loop_id


class FlowResult(Struct, Generic[OutT_co], frozen=True, eq=False):
    """A flow that is over: its output, and the steps that led to it."""

    output: OutT_co
    state: FlowState
    journal: Journal
    steps: tuple[StepResult, ...]
    """Those that have ended, in the order in which they did."""
    usage: RunUsage = RunUsage()
    """What all loops under it used, those of steps that were tried in vain or not waited for, too."""
    cost: RunCost | None = None
    """What their model calls cost, by the CostTrackers of the agents; None if none has one."""

    def __repr__(self) -> str:
        return f"FlowResult(output={self.output!r}, loop_id={self.loop_id!r}, outcome={self.outcome!r})"

    @property
    def loop_id(self) -> str:
        """The flow's id, by which it can be gone on with."""
        return self.state.loop_id

    @property
    def outcome(self) -> Outcome:
        """How it ended; a flow that is not over counts as failed."""
        return self.state.outcome or Outcome.FAILED

    async def events(self) -> list[Event]:
        """The flow's own journal; those of the loops under it are there by their `loop_id`."""
        return await self.journal.read(self.loop_id)


async def result_of(root: Part, state: FlowState, journal: Journal) -> FlowResult[Any]:
    """The result of a flow, from its journal and those of the loops under it.

    Raises:
        FlyballError: the flow failed or was cancelled; the error carries what was reached as `partial`.
    """
    root = root.grown(state.flow)
    under = {loop_id: await _found(journal, loop_id) for loop_id in state.children}
    trackers = [tracker for leaf in leaves(root) if (tracker := _tracker(leaf)) is not None]
    tracker = trackers[0] if trackers else None
    steps = [await _step_result(part_at(root, path), path, state, journal, under) for path in state.ended]
    cost = None if tracker is None else await _cost(root, state, journal, under, tracker)
    usage = RunUsage()
    for found in under.values():
        usage += RunUsage() if found is None else found.usage
    reached = FlowResult(None, state, journal, tuple(steps), usage, cost)
    if state.error is None and state.outcome is Outcome.SUCCESS:
        return replace(reached, output=read_output(root, "", state.output, state))
    assert state.error is not None, "a flow that is over without an output has failed"
    failure = state.error.exception()
    failure.partial = reached
    raise failure


async def _step_result(
    part: Part, path: str, state: FlowState, journal: Journal, under: Mapping[str, AnyState | None]
) -> StepResult:
    ended = state.ended[path]
    output = None if ended.error is not None else read_output(part, path, ended.output, state)
    found = under.get(ended.loop_id)
    run = None if not isinstance(found, State) else RunResult(output, found, journal, tracker=_tracker(part))
    return StepResult(
        path,
        part.name,
        part.kind,
        output,
        None if ended.error is None else ended.error.exception(),
        ended.usage or RunUsage(),
        ended.attempt,
        ended.duration,
        run,
    )


async def _cost(
    root: Part,
    state: FlowState,
    journal: Journal,
    under: Mapping[str, AnyState | None],
    tracker: CostTracker,
) -> RunCost:
    """What all loops under a flow cost, each by its agent's tracker, or by `tracker` where that has none."""
    by: dict[str, CostTracker] = {}
    for path, ended in state.ended.items():
        own = _tracker(part_at(root, path))
        if own is not None:
            for attempt in range(1, ended.attempt + 1):
                loops = children_of(state, (step_loop(state.loop_id, path, attempt),))
                by |= dict.fromkeys(loops, own)
    cost = tracker.cost_of(())
    for loop_id, found in under.items():
        if found is not None:
            cost += by.get(loop_id, tracker).cost_of(await spent_in(journal, found))
    return cost


async def _found(journal: Journal, loop_id: str) -> AnyState | None:
    try:
        return (await load_any(journal, loop_id))[1]
    except LoopNotFound:
        return None  # it was recorded as begun, and the process died before it was


def _tracker(part: Part) -> CostTracker | None:
    agent = part.runs()
    return None if agent is None else stages_of(agent.config.features).tracker

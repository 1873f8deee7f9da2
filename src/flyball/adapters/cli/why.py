"""`flyball why`: a run explained, to the last word that was sent."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared


def why(
    run_id: Annotated[str, Parameter(name="RUN")] = "last",
    /,
    *,
    turn: int | None = None,
    full: bool = False,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Explain a run: what was sent at each turn, what came back, what decided, what may be done next.

    Args:
        run_id: The run: its id, the beginning of it, or last.
        turn: Only this turn.
        full: Leave nothing out: whole grammars, all messages, and the request as the engine got it.
        cluster: The NATS server.
        shared: Options of all commands.
    """
    return run(_why(run_id, turn, cluster, shared, full=full))


async def _why(name: str, turn: int | None, cluster: Cluster, shared: Shared, *, full: bool) -> int:
    from flyball.adapters.cli.finding import recorded
    from flyball.adapters.cli.next_commands import document
    from flyball.adapters.cli.page import print_explanation
    from flyball.adapters.cli.screen import write_json
    from flyball.core.errors import UserError
    from flyball.orchestrate.calls import awaits_approval
    from flyball.orchestrate.flow_state import FlowState
    from flyball.orchestrate.projections.explanation import explain
    from flyball.orchestrate.provenance import provenance_of
    from flyball.orchestrate.recorded import load_any
    from flyball.orchestrate.rendering import with_prompts
    from flyball.orchestrate.standing import standing_in_all

    async with recorded(name, cluster, shared) as (journal, loop_id):
        events, state = await load_any(journal, loop_id)
        process = provenance_of(events, state).process
        stage, waits = await standing_in_all(journal, events, state, process)
    told = msgspec.structs.replace(explain(events), stage=stage)
    if isinstance(state, FlowState):
        from flyball.adapters.cli.flow_course import why_flow

        return why_flow(events, told, waits, as_json=shared.json)
    if waits and not awaits_approval(state):
        told = msgspec.structs.replace(told, verdict=f"It waits for a run under it: {'; '.join(waits)}.")
    if turn is not None:
        told = msgspec.structs.replace(told, turns=tuple([one for one in told.turns if one.number == turn]))
        if not told.turns:
            raise UserError(f"run {name!r} has no turn {turn}: it has {state.turn}")
    told = await with_prompts(told)
    if shared.json:
        write_json(document(told))
    else:
        print_explanation(told, full=full)
    return 0

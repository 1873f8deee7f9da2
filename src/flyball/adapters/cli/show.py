"""`flyball show`: a run's course, drawn."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared


def show(
    run_id: Annotated[str, Parameter(name="RUN")] = "last",
    /,
    *,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Draw a run's course: each step with its time and tokens, and what came of it.

    Args:
        run_id: The run: its id, the beginning of it, or last.
        cluster: The NATS server.
        shared: Options of all commands.
    """
    return run(_show(run_id, cluster, shared))


async def _show(name: str, cluster: Cluster, shared: Shared) -> int:
    from flyball.adapters.cli.finding import recorded
    from flyball.orchestrate.approvals import is_withheld
    from flyball.orchestrate.flow_state import FlowState
    from flyball.orchestrate.provenance import provenance_of
    from flyball.orchestrate.recorded import load_any
    from flyball.orchestrate.standing import standing_in_all

    async with recorded(name, cluster, shared) as (journal, loop_id):
        events, state = await load_any(journal, loop_id)
        process = provenance_of(events, state).process
        stage, waits = await standing_in_all(journal, events, state, process)
        if isinstance(state, FlowState):
            from msgspec.structs import replace

            from flyball.adapters.cli.flow_course import show_flow
            from flyball.orchestrate.projections.explanation import explain

            return show_flow(events, replace(explain(events), stage=stage), waits, as_json=shared.json)
        if shared.json:
            from msgspec import to_builtins

            from flyball.adapters.cli.runs import line_of
            from flyball.adapters.cli.screen import write_json
            from flyball.orchestrate.projections import timeline

            line = to_builtins(await line_of(journal, loop_id))
            steps = to_builtins(timeline(events))
            acts_as = {} if state.identity is None else {"identity": state.identity}
            write_json(
                {**line, **acts_as, "answer": None if is_withheld(state) else state.answer, "timeline": steps}
            )
            return 0
    from rich.text import Text

    from flyball.adapters.cli.screen import out, plain
    from flyball.adapters.cli.timeline import print_identity, print_timeline, print_waits

    print_timeline(events)
    print_identity(state.identity)
    print_waits(waits)
    if state.answer and not is_withheld(state):
        out().print(Text(f"\n{plain(state.answer)}"), soft_wrap=True)
    elif state.error is not None:
        out().print(Text(f"\n{state.error.code}: {plain(state.error.message)}", style="red"), soft_wrap=True)
    return 0

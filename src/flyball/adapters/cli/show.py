"""`flyball show`: a run's course, drawn."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared


def show(
    run_id: Annotated[str, Parameter(name="RUN")] = "last",
    /,
    *,
    shared: Shared = SHARED,
) -> int:
    """Draw a run's course: each step with its time and tokens, and what came of it.

    Args:
        run_id: The run: its id, the beginning of it, or last.
        shared: Options of all commands.
    """
    return run(_show(run_id, shared))


async def _show(name: str, shared: Shared) -> int:
    from flyball.adapters.cli.naming import find_run
    from flyball.adapters.cli.standing import standing_in_all
    from flyball.orchestrate.flow_state import FlowState
    from flyball.orchestrate.recorded import load_any

    async with shared.recorded() as journal:
        loop_id = await find_run(journal, name)
        events, state = await load_any(journal, loop_id)
        if isinstance(state, FlowState):
            from flyball.adapters.cli.flow_course import show_flow

            return show_flow(events, state, as_json=shared.json)
        _, waits = await standing_in_all(journal, events, state, "")
        if shared.json:
            from msgspec import to_builtins

            from flyball.adapters.cli.runs import line_of
            from flyball.adapters.cli.screen import write_json
            from flyball.orchestrate.projections import timeline

            line = to_builtins(await line_of(journal, loop_id))
            steps = to_builtins(timeline(events))
            write_json({**line, "answer": state.answer, "timeline": steps})
            return 0
    from rich.text import Text

    from flyball.adapters.cli.screen import out, plain
    from flyball.adapters.cli.timeline import print_timeline

    print_timeline(events)
    for one in waits:
        out().print(Text(f"⧗ {plain(one)}", style="yellow"), soft_wrap=True)
    if state.answer:
        out().print(Text(f"\n{plain(state.answer)}"), soft_wrap=True)
    elif state.error is not None:
        out().print(Text(f"\n{state.error.code}: {plain(state.error.message)}", style="red"), soft_wrap=True)
    return 0

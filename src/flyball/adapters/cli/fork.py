"""`flyball fork`: go on from a run's first turns, in a run of its own, perhaps with another model."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.driven import DRIVEN, Driven, seconds
from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared


def fork(
    run_id: Annotated[str, Parameter(name="RUN", help="The run: its id, the beginning of it, or last.")],
    /,
    *words: str,
    at: Annotated[int, Parameter(help="After which turn; 0 begins anew.")],
    deadline: float | None = None,
    driven: Driven = DRIVEN,
    shared: Shared = SHARED,
) -> int:
    """Go on from a run's first turns, in a run of its own; the other one stays as it is.

    Args:
        run_id: The run: its id, the beginning of it, or last.
        words: What to say next; with --at 0, in the place of the prompt. After the last turn it is needed.
        at: After which turn; 0 begins anew.
        deadline: Seconds for the fork; 0 for no limit. Without it, what the run had.
        driven: Options of commands that drive a run.
        shared: Options of all commands.
    """
    limit = None if deadline is None else (seconds(deadline),)
    return run(_fork(run_id, (at, " ".join(words)), limit, driven, shared))


async def _fork(
    name: str, at: tuple[int, str], limit: tuple[float | None] | None, driven: Driven, shared: Shared
) -> int:
    from msgspec.structs import replace

    from flyball.adapters.cli.naming import find_run
    from flyball.adapters.cli.origin import origin_of
    from flyball.adapters.cli.serving import go_on, judge_of, serving
    from flyball.orchestrate.recorded import load

    async with shared.recorded() as journal:
        loop_id = await find_run(journal, name)
        events, state = await load(journal, loop_id)
        origin = origin_of(events, state).changed(driven)
        judge = await judge_of(journal, state, yes=driven.yes)
    changes: dict[str, Any] = {}
    if limit is not None:
        changes["limits"] = replace(state.spec.limits, timeout=limit[0])
    turn, prompt = at
    journal = shared.open()
    async with serving(journal, origin, origin.options(), judge=judge) as system:
        forked = await system.fork(loop_id, turn, prompt=prompt or None, **changes)
        return await go_on(system, journal, forked, as_json=shared.json, quiet=driven.quiet, yes=driven.yes)

"""`flyball why`: a run explained, to the last word that was sent."""

from __future__ import annotations

from typing import Annotated

import msgspec
from cyclopts import Parameter

from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared


def why(
    run_id: Annotated[str, Parameter(name="RUN")] = "last",
    /,
    *,
    turn: int | None = None,
    full: bool = False,
    shared: Shared = SHARED,
) -> int:
    """Explain a run: what was sent at each turn, what came back, what decided, what may be done next.

    Args:
        run_id: The run: its id, the beginning of it, or last.
        turn: Only this turn.
        full: Leave nothing out: whole grammars, all messages, and the request as the engine got it.
        shared: Options of all commands.
    """
    return run(_why(run_id, turn, shared, full=full))


async def _why(name: str, turn: int | None, shared: Shared, *, full: bool) -> int:
    from flyball.adapters.cli.explaining import explain
    from flyball.adapters.cli.naming import find_run
    from flyball.adapters.cli.origin import origin_of
    from flyball.adapters.cli.page import print_explanation
    from flyball.adapters.cli.rendering import with_prompts
    from flyball.adapters.cli.screen import write_json
    from flyball.adapters.cli.standing import standing
    from flyball.core.errors import UserError
    from flyball.orchestrate.recorded import load

    async with shared.recorded() as journal:
        events, state = await load(journal, await find_run(journal, name))
    told = explain(events)
    stage = standing(events, state, origin_of(events, state).process)
    told = msgspec.structs.replace(told, stage=stage)
    if turn is not None:
        told = msgspec.structs.replace(told, turns=tuple([one for one in told.turns if one.number == turn]))
        if not told.turns:
            raise UserError(f"run {name!r} has no turn {turn}: it has {state.turn}")
    told = await with_prompts(told)
    if shared.json:
        write_json(msgspec.to_builtins(told))
    else:
        print_explanation(told, full=full)
    return 0

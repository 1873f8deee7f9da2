"""`flyball replay`: what a run answered, from its journal alone."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.running import run
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.orchestrate.journal import Journal


def replay(
    run_id: Annotated[str, Parameter(name="RUN")] = "last",
    /,
    *,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Give the answer of a finished run again, from its journal alone: no model is asked, no tool runs.

    Args:
        run_id: The run: its id, the beginning of it, or last.
        quiet: Leave out the last line, with tokens, time and the run's id.
        cluster: The NATS server.
        shared: Options of all commands.
    """
    return run(_replay(run_id, cluster, shared, quiet=quiet))


async def _replay(name: str, cluster: Cluster, shared: Shared, *, quiet: bool) -> int:
    from flyball.adapters.cli.finding import recorded

    async with recorded(name, cluster, shared) as (journal, loop_id):
        return await shown_again(journal, loop_id, as_json=shared.json, quiet=quiet)


async def shown_again(journal: Journal, loop_id: str, *, as_json: bool, quiet: bool) -> int:
    """Show what a run answered; gives the exit code."""
    from flyball.adapters.cli.answering import Answer, print_response
    from flyball.adapters.cli.serving import gives_json
    from flyball.orchestrate.recorded import load_any
    from flyball.orchestrate.system import System

    response = await System(journal=journal).replay(loop_id)
    if as_json:
        return print_response(response)
    typed = response.ok and gives_json((await load_any(journal, loop_id))[1])
    return Answer(typed=typed, tools=False, quiet=quiet).close(response)

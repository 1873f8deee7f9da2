"""`flyball tui`: the terminal UI, over a server that is named, or over one of its own."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.deciding import ROLES
from flyball.adapters.cli.driven import default_model
from flyball.adapters.cli.loading import agents_of
from flyball.adapters.cli.others import adapter
from flyball.adapters.cli.person import person
from flyball.adapters.cli.running import run
from flyball.adapters.cli.serve import opened, plain_agent, services_of
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.errors import UserError

if TYPE_CHECKING:
    from flyball.runtime.services import Tenants

TOKEN = "FLYBALL_TOKEN"
_GRACE = 1.0
"""Seconds that what runs has to end, when the terminal is left: the next server goes on with it."""


def tui(
    agents: Annotated[str | None, Parameter(name="AGENTS")] = None,
    /,
    *,
    server: str | None = None,
    token: str | None = None,
    model: Annotated[tuple[str, ...], Parameter(name=["--model", "-m"])] = (),
    deps: str | None = None,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Chat, runs and approvals on the whole terminal.

    It is a client of the HTTP API: of the server that --server names, or of one that it starts for itself,
    which is the same as `flyball serve` and open to nobody else. Ctrl-Q leaves, ? shows the keys.

    Args:
        agents: The agents: module, or module:name of one or of a list of them. Without it, models alone.
        server: The address of a server that runs already, such as http://127.0.0.1:8000.
        token: The token that the server asks for; without it $FLYBALL_TOKEN.
        model: A model that is served by itself, under its own name; may be said several times. Without
            AGENTS, FLYBALL_MODEL or local.
        deps: What agents and tools get as ctx.deps: module:name of it, or of a function that makes it.
        cluster: The NATS server, if workers are to carry the loops on.
        shared: Options of all commands.
    """
    if shared.json:
        raise UserError("the terminal UI is for people: the HTTP API (flyball serve) is for programs")
    application = adapter("tui")
    if server is not None:
        if agents is not None or model or deps is not None:
            raise UserError("--server names a server that has its agents: leave AGENTS, -m and --deps out")
        ui = application(server, token or os.environ.get(TOKEN, ""))
        _check_terminal()
        return run(_show(ui))
    if token is not None:
        raise UserError("--token opens a server that is named: give --server too")
    serving_http, tokens = adapter("http-serving"), adapter("tokens")
    _check_terminal()
    found = agents_of(agents) if agents is not None else []
    named = model or (() if found else (default_model(),))
    services = services_of([*found, *[plain_agent(one) for one in named]], deps, cluster, shared)
    return run(_serve(services, serving_http, tokens, application))


def _check_terminal() -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UserError("the terminal UI needs a terminal; flyball ask and flyball runs do without")


async def _show(ui: Any) -> int:
    await ui.run_async()
    if (task := asyncio.current_task()) is not None and task.cancelling():
        raise asyncio.CancelledError  # for textual that is an end like any other
    return int(ui.return_code or 0)


async def _serve(services: Callable[[], Tenants], serving_http: Any, tokens: Any, application: Any) -> int:
    async with opened(services) as tenants:
        with TemporaryDirectory(prefix="flyball-tui-") as folder:
            file = Path(folder) / "tokens.json"
            token, _ = tokens(file).add(person(), roles=ROLES)
            async with serving_http(tenants, tokens=file, grace=_GRACE, log_all=True) as url:
                return await _show(application(url, token))

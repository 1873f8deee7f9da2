"""`flyball serve`: agents over HTTP, until told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.driven import default_model
from flyball.adapters.cli.loading import agents_of, deps_of
from flyball.adapters.cli.others import adapter
from flyball.adapters.cli.places import data_folder
from flyball.adapters.cli.policy import policy_of
from flyball.adapters.cli.running import fast_loop, run
from flyball.adapters.cli.screen import err
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.core.errors import MissingExtra, UserError

if TYPE_CHECKING:
    from flyball.runtime.services import Tenants

TOKENS = "tokens.json"
MCP = "/mcp"


def serve(
    agents: Annotated[str | None, Parameter(name="AGENTS")] = None,
    /,
    *,
    host: Annotated[str, Parameter(show_default=True)] = "127.0.0.1",
    port: Annotated[int, Parameter(name=["--port", "-p"], show_default=True)] = 8000,
    model: Annotated[tuple[str, ...], Parameter(name=["--model", "-m"])] = (),
    deps: str | None = None,
    tokens: Path | None = None,
    policy: Path | None = None,
    tenants: Path | None = None,
    rate: float = 0.0,
    concurrent: Annotated[int, Parameter(show_default=True)] = 512,
    max_body: Annotated[float, Parameter(show_default=True)] = 8.0,
    grace: Annotated[float, Parameter(show_default=True)] = 10.0,
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Serve agents over HTTP, until told to stop: Ctrl-C or SIGTERM.

    The API is at /api, OpenAI's protocol at /v1, its description at /openapi.json, and MCP at /mcp where its
    extra is installed. Loops run here and are recorded in this user's journal; with --nats, workers carry
    them on (see: flyball worker).

    Args:
        agents: The agents: module, or module:name of one or of a list of them. Without it, models alone.
        host: The address to listen at. At any other than this machine's own, callers need tokens.
        port: The port; 0 for any that is free.
        model: A model that is served by itself, under its own name; may be said several times. Without
            AGENTS, FLYBALL_MODEL or local.
        deps: What agents and tools get as ctx.deps: module:name of it, or of a function that makes it.
        tokens: The file with the tokens that callers need. Without it, callers on this machine need none,
            and others those in tokens.json in the user's data folder.
        policy: A JSON file that says who may do what, of persons with tokens and of those on channels.
        tenants: On NATS, the folder with credentials for each tenant (<tenant>/api.creds): a token's tenant
            is served by its own. Without --creds, nobody else is. See: flyball tenants.
        rate: Requests that each caller may make in a minute; 0 for as many as it likes.
        concurrent: Requests that may be under way.
        max_body: Megabytes that a request may have.
        grace: Seconds that what runs has to end, when the server is told to stop.
        quiet: Write no line for each request, but only where something went wrong unforeseen.
        cluster: The NATS server, if workers are to carry the loops on.
        shared: Options of all commands.
    """
    if not 0 <= port <= 65535:
        raise UserError(f"--port {port}: give a number from 0 to 65535")
    if grace < 0 or max_body <= 0 or concurrent < 1 or rate < 0:
        raise UserError("--grace and --rate are numbers from 0, --max-body and --concurrent from above 0")
    found = agents_of(agents) if agents is not None else []
    named = model or (() if found else (default_model(),))
    served = [*found, *[plain_agent(one) for one in named]]
    options: dict[str, Any] = {
        "host": host,
        "port": port,
        "tokens": tokens if tokens is not None or (_is_here(host) and not tenants) else tokens_file(None),
        "grace": grace,
        "log": not quiet,
        "log_all": True,
        "limits": {"rate": rate, "concurrent": concurrent, "body": int(max_body * 1024 * 1024)},
    }
    services = services_of(served, deps, cluster, shared, tenants, policy=policy_of(policy))
    models = [] if cluster.named else _models_of(served)  # on NATS, the workers have them
    work = _serve(services, models, {**options, "mounts": _mounts()}, adapter("http"))
    return run(work, fast_loop(), patience=grace + 10)


def _mounts() -> dict[str, Any]:
    """What else is served, by path: MCP, where its extra is installed."""
    try:
        return {MCP: adapter("mcp-mount")}
    except (MissingExtra, UserError):
        return {}


def _is_here(host: str) -> bool:
    return host in ("localhost", "::1") or host.startswith("127.")


def plain_agent(model: str) -> Any:
    """A model by itself: an agent with nothing around it."""
    from flyball.orchestrate.agent import Agent

    return Agent(model, name=model)


def services_of(
    agents: list[Any],
    deps: str | None,
    cluster: Cluster,
    shared: Shared,
    tenants: Path | None = None,
    **more: Any,
) -> Callable[[], Tenants]:
    """What opens the services of agents: here, or on the NATS server that is named; there, by `tenants`.

    See `Service` for more.

    Raises:
        UserError: the options do not go together.
    """
    from flyball.runtime.services import local_services, nats_services

    if cluster.named and shared.journal is not None:
        raise UserError("--nats and --journal name two places: give one of them")
    if cluster.named:
        if deps is not None:
            raise UserError("--deps is for agents that run here; on NATS the workers have them")
        options = cluster.options()
        if tenants is None:
            return lambda: nats_services(agents, options, **more)
        from flyball.runtime.nats.accounts.served import ServedTenants

        known, own = ServedTenants(tenants.expanduser(), options), options if options.credentials else None
        return lambda: nats_services(agents, own, known, **more)
    if tenants is not None:
        raise UserError(
            "--tenants is for NATS: name its servers with --nats; here each tenant has a file anyway"
        )
    file, made = shared.file, deps_of(deps)
    return lambda: local_services(agents, file, deps=made, **more)


@asynccontextmanager
async def opened(services: Callable[[], Tenants]) -> AsyncGenerator[Tenants]:
    """Services that are about to be served: what was left is gone on with, and their models are here."""
    from flyball.adapters.cli.fetching import fetched

    async with _open(services) as tenants:
        for model in _models_of([system.agent for system in (await tenants()).systems.values()]):
            await fetched(model)
        yield tenants


@asynccontextmanager
async def _open(services: Callable[[], Tenants]) -> AsyncGenerator[Tenants]:
    tenants = services()
    try:
        await tenants()
        await tenants.open_known()
        yield tenants
    finally:
        await tenants.aclose()


def _models_of(agents: Iterable[Any]) -> list[str]:
    return [agent.config.model for agent in agents if isinstance(agent.config.model, str)]


async def _serve(
    services: Callable[[], Tenants], models: list[str], options: dict[str, Any], serve_http: Any
) -> int:
    """Serve, from the first moment on: models that are not here yet are fetched meanwhile."""
    from flyball.adapters.cli.arriving import arriving

    try:
        async with arriving(models) as arrivals, _open(services) as tenants:
            names = ", ".join((await tenants()).systems)

            def begun(url: str) -> None:
                _say(names, options, url)
                arrivals.begin()

            try:
                await serve_http(tenants, arriving=arrivals, begun=begun, **options)
            finally:
                await arrivals.end()  # before the engines, which may wait for them
    except asyncio.CancelledError:
        err().print("stopped: what was not over is recorded, and goes on with the next server", style="dim")
    return 0


def _say(names: str, options: dict[str, Any], url: str) -> None:
    who = "whoever has a token" if options["tokens"] is not None else "this machine"
    err().print(f"serving {names} at {url}, for {who}")
    more = f" · MCP: {url}{MCP}" if options["mounts"] else ""
    err().print(f"  the studio: {url}/ · the API: {url}/api · OpenAI: base_url={url}/v1{more}", style="dim")


def tokens_file(given: Path | None) -> Path:
    """The file that tokens are kept in, unless another is named."""
    return data_folder() / TOKENS if given is None else given.expanduser()

"""`flyball mcp serve`: agents for an MCP client, over stdin and stdout, until it goes away."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from msgspec.structs import replace

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.loading import agents_of
from flyball.adapters.cli.logs import logging_to_stderr
from flyball.adapters.cli.others import adapter
from flyball.adapters.cli.running import run
from flyball.adapters.cli.screen import err
from flyball.adapters.cli.serve import plain_agent, services_of
from flyball.adapters.cli.shared import SHARED, Shared
from flyball.adapters.cli.streams import wire
from flyball.core.errors import UserError
from flyball.tool.wrapped import WrappedTool

if TYPE_CHECKING:
    from flyball.runtime.services import Tenants

_SECRET = re.compile(r"//[^/@,]*@")
"""What stands in an address before the server's name."""


def serve_mcp(
    agents: Annotated[str | None, Parameter(name="AGENTS")] = None,
    /,
    *,
    model: Annotated[tuple[str, ...], Parameter(name=["--model", "-m"])] = (),
    tools: bool = False,
    yes: Annotated[bool, Parameter(name=["--yes", "-y"])] = False,
    deps: str | None = None,
    cluster: Cluster = CLUSTER,
    shared: Shared = SHARED,
) -> int:
    """Serve agents to an MCP client over stdin and stdout, until it goes away. Clients start this themselves.

    Each agent is a tool that takes a prompt. Runs are recorded in this user's journal; with --nats, workers
    carry them on. A client that cancels a call, or goes away, cancels its run; Ctrl-C and SIGTERM leave runs
    as they are recorded. What agents print goes to stderr.

    Args:
        agents: The agents: module, or module:name of one or of a list of them.
        model: A model that is offered by itself, under its own name; may be said several times.
        tools: Offer the agents' tools by themselves, too.
        yes: Approve all calls of tools that need approval, instead of asking the client's user.
        deps: What agents and tools get as ctx.deps: module:name of it, or of a function that makes it.
        cluster: The NATS server, if workers are to carry the runs on.
        shared: Options of all commands.
    """
    if agents is None and not model:
        raise UserError("AGENTS is missing: name the module with the agents, or a model with -m")
    if yes and cluster.named:
        raise UserError("--yes is for agents that run here; on NATS, give the workers' agents approval=")
    serve_stdio = adapter("mcp")
    with wire() as (reading, writing), logging_to_stderr():
        found = agents_of(agents) if agents is not None else []
        served = [*found, *[plain_agent(one) for one in model]]
        services = services_of([_approved(one) for one in served] if yes else served, deps, cluster, shared)
        options: dict[str, Any] = {
            "reading": reading,
            "writing": writing,
            "tools": tools,
            "how": _how(cluster, shared),
        }
        return run(_serve(services, options, serve_stdio))


async def _serve(services: Callable[[], Tenants], options: dict[str, Any], serve_stdio: Any) -> int:
    from flyball.adapters.cli.fetching import fetched

    tenants = services()
    try:
        service = await tenants()
        for system in service.systems.values():
            if isinstance(model := system.agent.config.model, str):
                await fetched(model)

        def begun(names: list[str]) -> None:
            err().print(f"ready: {', '.join(names)}, for one MCP client")

        await serve_stdio(service, note=err().print, begun=begun, **options)
    except asyncio.CancelledError:
        err().print("stopped: what was not over is recorded, and goes on with the next server", style="dim")
    finally:
        await tenants.aclose()
    return 0


def _approved(agent: Any) -> Any:
    """An agent none of whose tools needs approval, nor its answer."""
    tools = [
        WrappedTool(tool, replace(tool.spec, approval=False)) if tool.spec.approval else tool
        for tool in agent.config.tools
    ]
    return agent.clone(tools=tools, output_approval=False)


def _how(cluster: Cluster, shared: Shared) -> str:
    """The command that approves a call which waits in a run; clients are told it, and no secrets."""
    words = ["flyball", "signal", "{loop_id}", "approve"]
    if cluster.named:
        words += ["--nats", _SECRET.sub("//", cluster.named)]
    elif shared.journal is not None:
        words += ["--journal", str(shared.file.resolve())]
    return f"`{' '.join([word if word == '{loop_id}' else shlex.quote(word) for word in words])}`"

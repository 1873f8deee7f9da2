"""`flyball worker` and `flyball up`: the processes that carry loops on."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from flyball.adapters.cli.cluster import CLUSTER, Cluster
from flyball.adapters.cli.endpoints import within_limits
from flyball.adapters.cli.loading import agents_of, deps_of
from flyball.adapters.cli.logs import logging_to_stderr
from flyball.adapters.cli.policy import policy_of
from flyball.adapters.cli.running import fast_loop, run
from flyball.adapters.cli.screen import err
from flyball.core.errors import UserError
from flyball.runtime.nats.server.running import announced, server_folder

if TYPE_CHECKING:
    from flyball.orchestrate.permissions import Policy
    from flyball.runtime.nats import NatsOptions
    from flyball.runtime.nats.crew import Kind

_CARRYING = "loop,model,tools"
"""What is served unless it is said: who talks with people goes by a policy, and is told to."""
_KINDS: tuple[Kind, ...] = ("loop", "model", "tools", "dispatch")
_ALL = "all"


def worker(
    agents: Annotated[str, Parameter(name="AGENTS")],
    /,
    *,
    serve: str = _CARRYING,
    endpoint: tuple[str, ...] = (),
    deps: str | None = None,
    policy: Path | None = None,
    cluster: Cluster = CLUSTER,
    debug: bool = False,
) -> int:
    """Carry loops on, until told to stop: Ctrl-C or SIGTERM. Start as many as you like, anywhere.

    Args:
        agents: The agents: module, or module:name of one or of a list of them.
        serve: What this one does: loop, model, tools, or some of them with commas between; and dispatch,
            which takes what people say on channels, and tells them what becomes of it. Or all of these.
        endpoint: How much it asks of a model, as MODEL=rpm:60,concurrent:4: calls begun in a minute, calls at
            once. May be said for several models.
        deps: What agents and tools get as ctx.deps: module:name of it, or of a function that makes it.
        policy: A JSON file that says who may do what, for dispatch.
        cluster: The NATS server.
        debug: Show the traceback of an error.
    """
    del debug
    found, kinds = within_limits(agents_of(agents), endpoint), _kinds(serve)
    work = _work(cluster.options(), found, kinds, deps_of(deps), policy_of(policy))
    return run(work, fast_loop())


def up(
    agents: Annotated[str, Parameter(name="AGENTS")],
    /,
    *,
    port: int = 0,
    endpoint: tuple[str, ...] = (),
    deps: str | None = None,
    policy: Path | None = None,
    cluster: Cluster = CLUSTER,
    debug: bool = False,
) -> int:
    """Run a NATS server of this machine's own with all workers, until told to stop: Ctrl-C or SIGTERM.

    With --nats, no server is run, and the workers are those of that cluster.

    Args:
        agents: The agents: module, or module:name of one or of a list of them.
        port: Where the server listens, on this machine only; any port that is free unless it is said.
        endpoint: How much is asked of a model, as MODEL=rpm:60,concurrent:4: calls begun in a minute, calls
            at once. May be said for several models.
        deps: What agents and tools get as ctx.deps: module:name of it, or of a function that makes it.
        policy: A JSON file that says who may do what, of those who talk on channels.
        cluster: Another server than this machine's own.
        debug: Show the traceback of an error.
    """
    del debug
    found = within_limits(agents_of(agents), endpoint)
    if cluster.nats is not None:
        work = _work(cluster.options(), found, list(_KINDS), deps_of(deps), policy_of(policy))
        return run(work, fast_loop())
    return run(_up(found, port, deps_of(deps), policy_of(policy)), fast_loop())


async def _up(agents: list[Any], port: int, deps: Any, policy: Policy) -> int:
    from flyball.runtime.nats import EmbeddedServer

    try:
        async with EmbeddedServer(server_folder(), port=port) as server:
            with announced(server.options):
                err().print(f"NATS at {server.url}, its data in {server_folder()}", style="dim")
                return await _work(server.options, agents, list(_KINDS), deps, policy)
    except asyncio.CancelledError:
        return 0


async def _work(options: NatsOptions, agents: list[Any], kinds: list[Kind], deps: Any, policy: Policy) -> int:
    from flyball.runtime.nats import Crew, NatsJournal

    with logging_to_stderr():
        journal = await NatsJournal.open(options)
        try:
            async with journal, Crew(journal, agents, kinds, deps=deps, dispatch={"policy": policy}) as crew:
                names = ", ".join([agent.spec.agent for agent in agents])
                err().print(f"ready: {', '.join(kinds)} for {names}")
                await crew.work()
        except asyncio.CancelledError:
            err().print("stopped: what was under way is done by others, or later")
    return 0


def _kinds(serve: str) -> list[Kind]:
    kinds = [kind.strip() for kind in serve.split(",") if kind.strip()]
    if kinds == [_ALL]:
        return list(_KINDS)
    wrong = [kind for kind in kinds if kind not in _KINDS]
    if wrong or not kinds:
        raise UserError(f"--serve {serve}: there are {', '.join(_KINDS)}, or {_ALL}")
    return cast("list[Kind]", list(dict.fromkeys(kinds)))

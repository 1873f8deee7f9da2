"""Calls that somebody else answers: the run stops where it waits, and goes on when there are results.

It prints:

    waits for build {"target":"app"}
    waits for build {"target":"docs"}
    the app is there, and so is the loop: it waits for build {"target":"docs"}
    The app is green, the docs are not: a link is broken.
    without a journal: The app is green, the docs are not: a link is broken.

Between the two runs nothing of the loop is in memory: the builds may take days, and another process may go on
with it. See `docs/deferred.md`.
"""

from __future__ import annotations

import asyncio

from flyball import (
    Agent,
    CallDeferred,
    Deferred,
    DeferredToolResult,
    MemoryJournal,
    Message,
    RunContext,
    tool,
)
from flyball.testing import ScriptedEngine, tool_call


class Queue:
    """Where jobs wait for somebody who builds; a job names the loop and the call that it is for."""

    def __init__(self) -> None:
        self.jobs: list[tuple[str, str, str]] = []


@tool(safety="at_most_once")
async def build(ctx: RunContext[Queue], target: str) -> str:
    """Have something built."""
    ctx.deps.jobs.append((ctx.run_id, ctx.tool_call_id, target))
    raise CallDeferred(f"{target} is in the queue")


agent = Agent(
    ScriptedEngine(
        [tool_call("build", {"target": "app"}), tool_call("build", {"target": "docs"})],
        "The app is green, the docs are not: a link is broken.",
    ),
    tools=[build],
    deps_type=Queue,
)
LOGS = {"app": "green", "docs": {"failed": 1, "log": "a link is broken"}}


async def main() -> None:
    journal, queue, messages = MemoryJournal(), Queue(), tuple[Message, ...]()
    try:
        await agent.run("Build all.", journal=journal, loop_id="nightly", deps=queue)
    except Deferred as deferred:
        messages = deferred.messages
        for request in deferred.requests:
            print("waits for", request.tool_name, request.args_json)

    # Whoever builds: one job is done today, and the other tomorrow.
    (loop_id, app, _), (_, docs, _) = queue.jobs
    try:
        done = [DeferredToolResult("build", app, LOGS["app"])]
        await agent.resume(loop_id, journal, deps=queue, deferred_results=done)
    except Deferred as deferred:
        (request,) = deferred.requests
        waits = f"{request.tool_name} {request.args_json}"
        print("the app is there, and so is the loop: it waits for", waits)
    last = [DeferredToolResult("build", docs, LOGS["docs"])]
    result = await agent.resume(loop_id, journal, deps=queue, deferred_results=last)
    print(result.output)

    # Who keeps no journal goes on from the messages, with all results at once.
    both = [DeferredToolResult("build", call_id, LOGS[target]) for _, call_id, target in queue.jobs]
    fresh = agent.clone(model=ScriptedEngine("The app is green, the docs are not: a link is broken."))
    result = await fresh.run(messages=messages, deferred_results=both, deps=queue)
    print("without a journal:", result.output)


if __name__ == "__main__":
    asyncio.run(main())

"""Runs: an output that is sent back, a snapshot that is kept and branched, and many runs at once.

It prints:

    after 2 answers: The train leaves at 9:04 from platform 3.
    kept: 2 turns, 2 requests
    as it was: It arrives at noon. (3 requests in all)
    had it been a bus: It arrives at two.
    in a batch: ['First.', 'INFERENCE_ENGINE_ERROR', 'Third.']
    this agent makes use of: has_reflection

What the reflection said is in the journal, so a run that dies goes on from there. See `docs/runs.md`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from flyball import (
    Agent,
    Message,
    Reflection,
    ReflectResult,
    RunContext,
    RunResult,
    RunSnapshot,
    assistant,
)
from flyball.core.errors import EngineError
from flyball.testing import ScriptedEngine


def names_a_platform(ctx: RunContext[Any], output: str) -> str | None:
    """Good enough for a traveller, or what to correct."""
    return None if "platform" in output else "Say which platform it leaves from."


agent = Agent(
    ScriptedEngine("The train leaves at 9:04.", "The train leaves at 9:04 from platform 3."),
    features=[Reflection(names_a_platform, max_reflections=2)],
)
later = Agent(ScriptedEngine("It arrives at noon.", "It arrives at two."))


def by_bus(messages: list[Message]) -> list[Message]:
    """Another past: the last answer was another."""
    return [*messages[:-1], assistant("The bus leaves at 9:10.")]


async def main() -> None:
    came = ReflectResult[str].of(await agent.run("When does it leave?"))
    print(f"after {came.iterations} answers: {came.output}")

    data = came.result.snapshot().to_json()
    snapshot = RunSnapshot.from_json(data)
    print(f"kept: {snapshot.run_step} turns, {snapshot.usage.requests} requests")

    went_on = await later.run("And when does it arrive?", snapshot=snapshot)
    print(f"as it was: {went_on.output} ({went_on.usage.requests} requests in all)")
    other = await later.run("And when does it arrive?", snapshot=snapshot.branch(by_bus))
    print(f"had it been a bus: {other.output}")

    model = ScriptedEngine("First.", EngineError("gone"), "Third.")
    results = await Agent(model).run_batch(["one", "two", "three"], concurrency=1)
    print("in a batch:", [one.output if isinstance(one, RunResult) else one.code for one in results])
    print("this agent makes use of:", ", ".join(agent.features().used))


if __name__ == "__main__":
    asyncio.run(main())

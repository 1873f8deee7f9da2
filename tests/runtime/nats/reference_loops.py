"""The loops that are crashed: small ones in which everything happens that a loop can owe the world."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from flyball import Agent, Limits, RunContext, Safety, tool
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.recorded import pending_approvals
from flyball.runtime.nats import NatsRuntime
from tests.orchestrate.scenarios import City, final
from tests.runtime.nats.crashing import Life, World

ONCE = "call_once"
"""The id of the call that may start once."""


class MortalModel:
    """A script whose calls are effects of a life."""

    def __init__(self, life: Life, world: World, *answers: Answer) -> None:
        self._script = world.script(*answers)
        self._life = life
        self._world = world

    async def infer(self, request: Request) -> Result:
        async with self._life.effect("model call"):
            self._world.done["model"] += 1
            return await self._script.infer(request)

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        async with self._life.effect("model call"):
            self._world.done["model"] += 1
            pieces = [piece async for piece in self._script.stream(request)]
        for piece in pieces:
            yield piece

    def model_info(self) -> ModelInfo:
        return self._script.model_info()


class SideBySide:
    """A prompt function, two tools side by side of which one may start once, a typed output, a delivery."""

    def agent(self, life: Life, world: World) -> Agent[Any, City]:
        @tool
        async def look(at: str) -> str:
            async with life.effect("look"):
                world.done["look"] += 1
                return f"{at} is there"

        @tool(safety=Safety.AT_MOST_ONCE)
        async def launch(to: str) -> str:
            async with life.effect("launch"):
                world.done["launch"] += 1
                return f"on its way to {to}"

        async def instructions(ctx: RunContext[Any]) -> str:
            async with life.effect("instructions"):
                return f"You were asked: {ctx.prompt}"

        async def delivery(ctx: RunContext[Any], outcome: Any, output: Any) -> None:
            async with life.effect("delivery"):
                world.done["delivery"] += 1

        both = [call("look", {"at": "Rome"}, id="call_look"), call("launch", {"to": "Rome"}, id=ONCE)]
        return Agent(
            MortalModel(life, world, both, final(name="Rome", people=3)),
            output=City,
            output_mode="tool",
            tools=[look, launch],
            instructions=[instructions],
            deliveries=[delivery],
            name="side-by-side",
        )

    async def drive(self, agent: Agent[Any, Any], runtime: NatsRuntime, loop_id: str) -> Any:
        return (await agent.run("go", runtime=runtime, loop_id=loop_id)).output


class Walk:
    """Three turns, each with two calls side by side; all may run again."""

    def agent(self, life: Life, world: World) -> Agent[Any, str]:
        @tool
        async def step(n: int) -> str:
            async with life.effect("step"):
                world.done[f"step {n}"] += 1
                return f"step {n} taken"

        turns = [
            [call("step", {"n": n}, id=f"call_{n}") for n in (2 * turn, 2 * turn + 1)] for turn in range(3)
        ]
        return Agent(MortalModel(life, world, *turns, "I am there."), tools=[step], name="walker")

    async def drive(self, agent: Agent[Any, Any], runtime: NatsRuntime, loop_id: str) -> Any:
        return (await agent.run("walk", runtime=runtime, loop_id=loop_id)).output


class Approved:
    """A call that waits for a signal, and a deadline that is far: it is given, and the tool runs."""

    timeout = 600.0
    answered = True
    taken = False
    """What the one who approved was told."""

    def agent(self, life: Life, world: World) -> Agent[Any, str]:
        @tool(approval=True)
        async def pay(amount: int) -> str:
            async with life.effect("pay"):
                world.done["pay"] += 1
                return f"paid {amount}"

        return Agent(
            MortalModel(life, world, call("pay", {"amount": 5}, id="call_pay"), "It is paid."),
            tools=[pay],
            limits=Limits(timeout=self.timeout),
            name="payer",
        )

    async def drive(self, agent: Agent[Any, Any], runtime: NatsRuntime, loop_id: str) -> Any:
        async with asyncio.TaskGroup() as both:
            running = both.create_task(agent.run("pay 5", runtime=runtime, loop_id=loop_id))
            if self.answered:
                await waits_for_approval(runtime, loop_id)
                self.taken = await runtime.signal(loop_id, Signal(SignalType.APPROVE, id="yes", by="eve"))
        return running.result().output


class Asked:
    """An agent that has another one as a tool, twice at once; each of these calls a tool."""

    def agent(self, life: Life, world: World) -> Agent[Any, str]:
        @tool
        async def look(at: str) -> str:
            async with life.effect("look"):
                world.done["look"] += 1
                return f"{at} is there"

        guide = Agent(
            MortalModel(life, world, call("look", {"at": "Rome"}), "It is there."), tools=[look], name="guide"
        )
        both = [call("guide", {"prompt": where}, id=f"call_{where}") for where in ("Rome", "Oslo")]
        return Agent(MortalModel(life, world, both, "Both are."), tools=[guide.as_tool()], name="tourist")

    async def drive(self, agent: Agent[Any, Any], runtime: NatsRuntime, loop_id: str) -> Any:
        result = await agent.run("go", runtime=runtime, loop_id=loop_id)
        return result.output, result.usage, len(result.state.children)


async def waits_for_approval(runtime: NatsRuntime, loop_id: str) -> None:
    """Return when a loop waits for somebody to approve of a call."""
    length = 0
    while await runtime.journal.wait(loop_id, length):
        if await pending_approvals(runtime.journal, loop_id):
            return
        length += 1


class Unanswered(Approved):
    """The same, and nobody answers: the time runs out."""

    timeout = 8.0
    answered = False

"""flyball: an agent on its OpenAI engine."""

from __future__ import annotations

from flyball import Agent, tool
from flyball.engines.openai import OpenAIEngine


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Client:
    def __init__(self, url: str) -> None:
        self.engine = OpenAIEngine("m", api="chat", base_url=f"{url}/v1", api_key="sk-nothing")
        self.agent = Agent(self.engine, tools=[add])
        self.teller = Agent(self.engine)

    async def turns(self) -> None:
        result = await self.agent.run("Add the numbers.")
        assert result.output == "The sum is 55."

    async def stream(self) -> None:
        pieces: list[str] = []
        async with self.teller.run_stream("Tell.") as run:
            async for text in run.text():
                pieces.append(text)
        assert len("".join(pieces)) == 5_000

    async def aclose(self) -> None:
        await self.engine.aclose()

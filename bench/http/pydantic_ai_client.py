"""pydantic-ai: an agent on its OpenAI chat model, which is on the official client."""

from __future__ import annotations

from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Client:
    def __init__(self, url: str) -> None:
        model = OpenAIChatModel("m", provider=OpenAIProvider(base_url=f"{url}/v1", api_key="sk-nothing"))
        self.agent = Agent(model)

        @self.agent.tool_plain
        async def add(a: int, b: int) -> int:
            """Add two numbers."""
            return a + b

        self.teller = Agent(model)

    async def turns(self) -> None:
        result = await self.agent.run("Add the numbers.")
        assert result.output == "The sum is 55."

    async def stream(self) -> None:
        pieces: list[str] = []
        async with self.teller.run_stream("Tell.") as run:
            async for text in run.stream_text(delta=True, debounce_by=None):
                pieces.append(text)
        assert len("".join(pieces)) == 5_000

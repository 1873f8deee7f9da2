"""openai-agents: an agent on its Chat Completions model, which is on the official client; tracing is off."""

from __future__ import annotations

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

set_tracing_disabled(True)


@function_tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Client:
    def __init__(self, url: str) -> None:
        client = AsyncOpenAI(base_url=f"{url}/v1", api_key="sk-nothing")
        model = OpenAIChatCompletionsModel("m", openai_client=client)
        self.agent = Agent(name="adder", model=model, tools=[add])
        self.teller = Agent(name="teller", model=model)

    async def turns(self) -> None:
        result = await Runner.run(self.agent, "Add the numbers.", max_turns=20)
        assert result.final_output == "The sum is 55."

    async def stream(self) -> None:
        pieces: list[str] = []
        run = Runner.run_streamed(self.teller, "Tell.")
        async for event in run.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                pieces.append(event.data.delta)
        assert len("".join(pieces)) == 5_000

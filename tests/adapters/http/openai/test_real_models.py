"""The official client talks to the embedded model; and one flyball agent to another, by the same door."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from flyball import Agent, MemoryJournal, System, tool
from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.inference.answers import tool_call
from flyball.inference.permission import VARIABLE
from flyball.inference.scripted import ScriptedEngine
from flyball.models import SMALL, pull
from tests.adapters.http.openai.asgi import KEY, App, Here, serve
from tests.adapters.http.openai.test_chat_client import client


class Sum(BaseModel):
    result: int


@pytest.fixture(autouse=True)
def models_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")
    monkeypatch.setenv("OPENAI_COMPATIBLE_API_KEY", KEY)


@pytest.fixture(scope="module")
def engine() -> Generator[LlamaCppEngine]:
    assert pull(SMALL).exists()
    engine = LlamaCppEngine(SMALL, context=2048, parallel=2)
    yield engine
    asyncio.run(engine.aclose())


@pytest.mark.slow
async def test_the_embedded_model(engine: LlamaCppEngine) -> None:
    app = App(Here({"local": System(engine, journal=MemoryJournal())}, engine))
    messages: Any = [{"role": "user", "content": "Say hello."}]
    async with serve(app) as url, client(url) as to:
        whole = await to.chat.completions.create(
            model="local", messages=messages, max_tokens=12, seed=1, temperature=0
        )
        assert whole.choices[0].message.content
        assert whole.usage is not None
        assert whole.usage.completion_tokens > 0
        stream = await to.chat.completions.create(
            model="local", messages=messages, max_tokens=12, seed=1, temperature=0, stream=True
        )
        texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
        assert "".join(texts) == whole.choices[0].message.content
        assert len([text for text in texts if text]) > 2, "it is told as it comes"
        typed = await to.chat.completions.parse(
            model="local",
            messages=[{"role": "user", "content": "1 + 1?"}],
            response_format=Sum,
            max_tokens=60,
        )
        assert isinstance(typed.choices[0].message.parsed, Sum)
        tools: Any = [openai.pydantic_function_tool(Sum, name="tell")]
        called = await to.chat.completions.create(
            model="local", messages=messages, tools=tools, tool_choice="required", max_tokens=60
        )
        calls = called.choices[0].message.tool_calls
        assert calls is not None
        assert calls[0].type == "function"
        assert calls[0].function.name == "tell"
        response = await to.responses.create(model="local", input="Say hello.", max_output_tokens=12)
        assert response.output_text
        vectors = await to.embeddings.create(model="vectors", input=["rain", "snow"])
        assert len(vectors.data[0].embedding) == len(vectors.data[1].embedding) > 10


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


@pytest.mark.parametrize("streamed", [False, True])
async def test_an_agent_talks_to_an_agent(streamed: bool) -> None:
    inner = System(
        ScriptedEngine(tool_call("weather", {"city": "Rome"}, "c1"), "Rain in Rome.", chunk=4),
        journal=MemoryJournal(),
    )
    app = App(Here({"inner": inner}))
    async with serve(app) as url:
        outer = Agent(f"{url}#inner", tools=[weather], instructions="Be brief.")
        if streamed:
            async with outer.run_stream("Rain?") as run:
                text = "".join([piece async for piece in run.text()])
        else:
            text = (await outer.run("Rain?")).output
    assert text == "Rain in Rome."
    first, second = app.requests
    assert [one["role"] for one in second["messages"]] == ["system", "user", "assistant", "tool"]
    assert first["tools"][0]["function"]["name"] == "weather"

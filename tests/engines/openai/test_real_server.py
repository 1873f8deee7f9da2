"""OpenAI's protocol with a server that nobody wrote for the test: llama.cpp's, with a real model."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from flyball import Agent, tool
from flyball.core.errors import ContextExceeded, ModelHTTPError
from flyball.core.messages import user
from flyball.core.settings import ModelSettings
from flyball.engines.openai import OpenAIEngine
from flyball.engines.wire.cassette import Cassette
from flyball.inference.engine import Engine
from flyball.inference.request import Request
from flyball.inference.stream import collect
from flyball.models import SMALL, pull
from flyball.testing.conformance import EngineConformance

KEY = "open-sesame-please"
EXACT = ModelSettings(max_tokens=12, temperature=0.0, seed=1)


@pytest.fixture(scope="module")
def address() -> Generator[str]:
    here = Path(__file__).with_name("llama_server.py")
    server = subprocess.Popen(
        [sys.executable, str(here), str(pull(SMALL)), KEY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None
    yield server.stdout.readline().decode().strip() + "/v1"
    server.stdin.close()
    server.kill()
    server.wait()
    server.stdout.close()


def ask(prompt: str) -> Request:
    return Request((user(prompt),), settings=EXACT)


class TestLlamaServer(EngineConformance):
    deterministic = False

    @pytest.fixture(autouse=True)
    def _serve(self, address: str) -> None:
        self.address = address

    def make_engine(self) -> Engine:
        return OpenAIEngine(server="llama-cpp", base_url=self.address, api_key=KEY)

    def make_request(self, prompt: str) -> Request:
        return ask(prompt)

    def make_failing_engine(self) -> Engine:
        return OpenAIEngine("m", server="llama-cpp", base_url=self.address, api_key="wrong-key")


class City(BaseModel):
    name: str
    country: str


@tool
def population(city: str) -> int:
    """How many people live in a city."""
    return len(city) * 1000


async def test_the_vendors_client_gets_the_same_answer(address: str) -> None:
    engine = OpenAIEngine(server="llama-cpp", base_url=address, api_key=KEY)
    ours = await engine.infer(ask("Name a colour."))
    theirs = AsyncOpenAI(base_url=address, api_key=KEY)
    said = await theirs.chat.completions.create(
        model="m",
        messages=[{"role": "user", "content": "Name a colour."}],
        max_tokens=12,
        temperature=0.0,
        seed=1,
    )
    await theirs.close()
    assert ours.content == said.choices[0].message.content
    assert said.usage is not None
    assert ours.usage.input_tokens == said.usage.prompt_tokens
    assert ours.usage.output_tokens == said.usage.completion_tokens
    assert ours.usage.tokens_per_second > 0
    assert (await collect(engine.stream(ask("Name a colour.")))).content == ours.content


async def test_answers_are_held_to_their_form(address: str) -> None:
    engine = OpenAIEngine(server="llama-cpp", base_url=address, api_key=KEY)
    result = await Agent(engine, output=City).run(
        "Paris is the capital of France.", settings=ModelSettings(seed=1)
    )
    assert isinstance(result.output, City)
    held = await engine.infer(Request((user("Is 2 even?"),), grammar='root ::= "yes" | "no"', settings=EXACT))
    assert held.content in ("yes", "no")


async def test_tools_and_a_form_in_one_run(address: str) -> None:
    engine = OpenAIEngine(server="llama-cpp", base_url=address, api_key=KEY)
    agent = Agent(engine, output=City, tools=[population])
    result = await agent.run(
        "Paris is the capital of France.", settings=ModelSettings(seed=1, temperature=0.0)
    )
    assert isinstance(result.output, City)


async def test_failures(address: str) -> None:
    with pytest.raises(ModelHTTPError, match="Invalid API Key") as caught:
        await OpenAIEngine(server="llama-cpp", base_url=address, api_key="wrong-key").infer(ask("hi"))
    assert (caught.value.status_code, caught.value.retryable) == (401, False)
    with pytest.raises(ContextExceeded, match="exceeds the available context size"):
        await OpenAIEngine(server="llama-cpp", base_url=address, api_key=KEY).infer(ask("word " * 3000))


async def test_real_traffic_is_recorded_and_played(address: str, tmp_path: Path) -> None:
    tape = tmp_path / "colour.jsonl"
    recorder = OpenAIEngine("m", server="llama-cpp", base_url=address, api_key=KEY, transport=Cassette(tape))
    first = [event async for event in recorder.stream(ask("Name a colour."))]
    await recorder.aclose()
    player = OpenAIEngine("m", server="llama-cpp", base_url=address, api_key="none", transport=Cassette(tape))
    assert [event async for event in player.stream(ask("Name a colour."))] == first

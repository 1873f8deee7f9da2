"""An agent from end to end: two turns with tools and a typed answer, plain and streamed, the same journal."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from flyball import Agent, tool
from flyball.core.events import Event
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.projections import normal_form
from tests.engines.anthropic.wire import answering, body, engine_at, text, tool_use
from tests.engines.loopback import Loopback


class Forecast(BaseModel):
    city: str
    rain: bool


@tool
async def weather(city: str) -> str:
    """Weather in a city."""
    return f"Rain in {city}."


@tool
async def wind(city: str) -> str:
    """Wind in a city."""
    raise RuntimeError(f"no wind in {city}")


def _thought(words: str) -> dict[str, Any]:
    return {"type": "thinking", "thinking": words, "signature": "c2ln"}


NATIVE = (
    body(
        _thought("Rain?"),
        tool_use("weather", "toolu_1", city="Paris"),
        tool_use("wind", "toolu_2", city="Paris"),
    ),
    body({"type": "redacted_thinking", "data": "ZW5j"}, tool_use("weather", "toolu_3", city="Lyon")),
    body(text('{"city": "Paris", "rain": true}')),
)
TOOL = (*NATIVE[:2], body(tool_use("final_result", "toolu_4", city="Paris", rain=True)))


@pytest.mark.parametrize(("model", "script"), [("claude-opus-5-5", NATIVE), ("claude-sonnet-4-5", TOOL)])
async def test_two_turns_with_tools_and_a_typed_answer(model: str, script: tuple[Any, ...]) -> None:
    journals: list[list[Event]] = []
    bodies: list[list[Any]] = []
    for streamed in (False, True):
        async with Loopback(answering(*[{**said, "model": model} for said in script])) as server:
            engine = engine_at(server, model, cache=True)
            agent = Agent(engine, output=Forecast, tools=[weather, wind], instructions="Be brief.")
            journal = MemoryJournal()
            if streamed:
                async with agent.run_stream("Will it rain?", journal=journal, loop_id="a") as stream:
                    async for _ in stream.events():
                        pass
                    output = stream.result.output
            else:
                output = (await agent.run("Will it rain?", journal=journal, loop_id="a")).output
            await engine.aclose()
        assert output == Forecast(city="Paris", rain=True)
        journals.append(await journal.read("a"))
        bodies.append([{**got.json, "stream": None} for got in server.received])
    assert bodies[0] == bodies[1]
    assert normal_form(journals[0]) == normal_form(journals[1])
    last = bodies[0][-1]
    assert [turn["role"] for turn in last["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    # What it thought went back as it came, and only what it could be held to was asked for.
    assert last["messages"][1]["content"][0] == _thought("Rain?")
    assert last["messages"][3]["content"][0] == {"type": "redacted_thinking", "data": "ZW5j"}
    assert last["messages"][2]["content"][1]["is_error"] is True
    assert ("output_config" in last) is (script is NATIVE)
    assert last["messages"][-1]["content"][-1]["cache_control"] == {"type": "ephemeral"}

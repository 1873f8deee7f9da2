"""A whole run over the wire: two turns of tools, thought signatures, typed output; plain and streamed."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from flyball import Agent, tool
from flyball.core.events import Event
from flyball.core.settings import ModelSettings
from flyball.inference.stream import ThinkingDelta
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.projections import normal_form
from tests.engines.google.serving import answer, engine_at, replying
from tests.engines.google.test_encode import keeps_the_rules
from tests.engines.loopback import Loopback, Received


class Forecast(BaseModel):
    city: str
    degrees: int
    children: list[str] = []


@tool
async def find(name: str) -> str:
    """Find a city."""
    return f"{name} is at 48.9, 2.4"


@tool
async def weather(lat: float, lon: float) -> dict[str, float]:
    """The weather at a place."""
    if lon < 0:
        raise ValueError("no station there")
    return {"degrees": lat / 4}


def _call(name: str, args: dict[str, Any], signature: str | None = None, **more: Any) -> dict[str, Any]:
    told = {"functionCall": {"name": name, "args": args, **more}}
    return told if signature is None else {**told, "thoughtSignature": signature}


def _response(name: str, response: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": response, **more}}


def _model(got: Received) -> dict[str, Any]:
    """What the model does next, from what it was sent."""
    contents = got.json["contents"]
    keeps_the_rules(contents)
    turns = [content["parts"] for content in contents if content["role"] == "model"]
    thought = {"text": f"Turn {len(turns)}.", "thought": True}
    if not turns:
        return answer(thought, _call("find", {"name": "Paris"}, "Zmlyc3Q="), responseId="r0")
    if len(turns) == 1:
        north = _call("weather", {"lat": 48.9, "lon": 2.4}, "c2Vjb25k", id="north")
        west = _call("weather", {"lat": 48.9, "lon": -2.4}, id="west")
        return answer(thought, {"text": "Two tries."}, north, west, responseId="r1")
    output = got.json["tools"][0]["functionDeclarations"][-1]["name"]
    return answer(_call(output, {"city": "Paris", "degrees": 12}, "dGhpcmQ="), responseId="r2")


async def _run(streamed: bool) -> tuple[list[Event], list[Received], Forecast, str]:
    journal, thoughts = MemoryJournal(), ""
    async with Loopback(replying(_model)) as server:
        engine = engine_at(server)
        agent = Agent(engine, output=Forecast, tools=[find, weather], settings=ModelSettings(thinking=True))
        if streamed:
            async with agent.run_stream("Weather in Paris?", journal=journal, loop_id="one") as run:
                async for event in run.events():
                    thoughts += event.text if isinstance(event, ThinkingDelta) else ""
                result = run.result
        else:
            result = await agent.run("Weather in Paris?", journal=journal, loop_id="one")
        await engine.aclose()
    return normal_form(await journal.read("one")), server.received, result.output, thoughts


@pytest.mark.parametrize("streamed", [False, True])
async def test_signatures_ids_and_errors_go_round(streamed: bool) -> None:
    _, received, output, thoughts = await _run(streamed)
    assert output == Forecast(city="Paris", degrees=12)
    assert len(received) == 3
    last = received[-1].json
    assert last["generationConfig"]["thinkingConfig"] == {"includeThoughts": True}
    assert last["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}
    broken = last["contents"][-1]["parts"][1]["functionResponse"]
    assert "no station there" in broken["response"].pop("error")
    assert last["contents"][1:] == [
        {
            "role": "model",
            "parts": [
                {"text": "Turn 0.", "thought": True},
                {"functionCall": {"name": "find", "args": {"name": "Paris"}}, "thoughtSignature": "Zmlyc3Q="},
            ],
        },
        {
            "role": "user",
            "parts": [_response("find", {"output": "Paris is at 48.9, 2.4"})],
        },
        {
            "role": "model",
            "parts": [
                {"text": "Turn 1.", "thought": True},
                {"text": "Two tries."},
                _call("weather", {"lat": 48.9, "lon": 2.4}, "c2Vjb25k", id="north"),
                _call("weather", {"lat": 48.9, "lon": -2.4}, id="west"),
            ],
        },
        {
            "role": "user",
            "parts": [
                _response("weather", {"output": {"degrees": 12.225}}, id="north"),
                _response("weather", {}, id="west"),
            ],
        },
    ]
    assert thoughts == ("Turn 0.Turn 1." if streamed else "")


async def test_a_streamed_run_is_the_same_run() -> None:
    plain, whole, *_ = await _run(streamed=False)
    streamed, pieces, *_ = await _run(streamed=True)
    assert streamed == plain
    assert [got.json for got in pieces] == [got.json for got in whole]

from __future__ import annotations

import msgspec
import pytest

from flyball.core.errors import SchemaMalformed
from flyball.core.messages import Image, user
from flyball.core.tools import ToolChoice, ToolDefinition, ToolKind
from flyball.inference.model_string import ModelRef
from flyball.inference.request import ModelInfo, OutputObject, Request, Result
from flyball.inference.scripted import engine_for
from flyball.inference.stream import collect

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "rain": {"type": "boolean"},
        "note": {"type": "string"},
    },
    "required": ["city", "rain"],
}
SMALLEST = {"city": "a", "rain": False}
WEATHER = ToolDefinition("weather", SCHEMA)
FINAL = ToolDefinition("final_result", SCHEMA, kind=ToolKind.OUTPUT)
PROMPT = (user("Will it rain?"),)


async def answer(request: Request, text: str = "") -> Result:
    return await engine_for(ModelRef("test", text)).infer(request)


async def test_it_names_the_prompt() -> None:
    assert (await answer(Request(PROMPT))).content == "This is a test answer to: Will it rain?"
    long = (await answer(Request((user("x" * 1000),)))).content
    assert long.endswith("xxx…")
    assert len(long) < 100
    assert "(no prompt)" in (await answer(Request((user([Image("https://example.com/a.png")]),)))).content
    assert "(no prompt)" in (await answer(Request(()))).content


async def test_it_says_the_text_of_its_name() -> None:
    assert (await answer(Request(PROMPT), "some text")).content == "some text"


async def test_it_calls_no_function_tool_of_its_own() -> None:
    result = await answer(Request(PROMPT, tools=(WEATHER,)))
    assert result.tool_calls == ()
    assert result.content


async def test_it_calls_what_the_choice_forces() -> None:
    other = ToolDefinition("other", {"type": "object"})
    tools = (other, WEATHER)
    forced = await answer(Request(PROMPT, tools=tools, tool_choice=ToolChoice("function", "weather")))
    assert [(call.name, call.arguments) for call in forced.tool_calls] == [("weather", SMALLEST)]
    required = await answer(Request(PROMPT, tools=tools, tool_choice=ToolChoice("required")))
    assert [(call.name, call.arguments) for call in required.tool_calls] == [("other", {})]
    free = await answer(Request(PROMPT, tools=(FINAL,), tool_choice=ToolChoice("none")))
    assert free.tool_calls == ()
    absent = await answer(Request(PROMPT, tools=tools, tool_choice=ToolChoice("function", "nobody")))
    assert absent.tool_calls == ()


async def test_an_output_tool_gets_the_smallest_value() -> None:
    for text in ("", "some text"):
        result = await answer(Request(PROMPT, tools=(WEATHER, FINAL), allows_text=False), text)
        assert [(call.name, call.arguments) for call in result.tool_calls] == [("final_result", SMALLEST)]


async def test_where_text_counts_too_its_own_text_wins() -> None:
    request = Request(PROMPT, tools=(FINAL,), allows_text=True)
    assert (await answer(request, "some text")).content == "some text"
    assert (await answer(request)).tool_calls[0].arguments == SMALLEST


async def test_a_schema_gets_the_smallest_value_as_text() -> None:
    result = await answer(Request(PROMPT, output=OutputObject(SCHEMA)))
    assert msgspec.json.decode(result.content) == SMALLEST


async def test_it_streams_what_it_infers() -> None:
    engine = engine_for(ModelRef("test"))
    for request in (Request(PROMPT), Request(PROMPT, tools=(FINAL,), allows_text=False)):
        events = [event async for event in engine.stream(request)]
        assert len(events) > 3
        assert await collect(engine.stream(request)) == await engine.infer(request)
    assert engine.model_info() == ModelInfo("test", provider="test")


async def test_a_schema_without_a_value_is_a_typed_error() -> None:
    with pytest.raises(SchemaMalformed, match=r"\$"):
        await answer(Request(PROMPT, output=OutputObject({"not": {}})))

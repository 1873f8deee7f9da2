"""What we send is what Google's own SDK sends for the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from google.genai import types

from flyball.core.messages import ToolCall, ToolResult, assistant, system, tool_results, user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.engines.google.marks import mark
from flyball.inference.request import OutputObject, Request
from flyball.inference.stream import collect
from tests.engines.google.histories import PDF, PNG, WAV, WEB
from tests.engines.google.sdk import SDK_WARNS, asked, plain
from tests.engines.google.serving import answer, engine_at, replying
from tests.engines.loopback import Loopback, Received

pytestmark = pytest.mark.filterwarnings(SDK_WARNS)

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
SIGNED = mark(id="gRome", thoughtSignature="c2lnbmF0dXJl")
PNG_BYTES = b"\x89PNG\xff\xfe"

Config = types.GenerateContentConfig
Content, Part = types.Content, types.Part
Theirs = Callable[[], tuple[list[types.Content], types.GenerateContentConfig]]


def turn(role: str, *parts: types.Part) -> types.Content:
    return Content(role=role, parts=list(parts))


def _text() -> tuple[list[types.Content], types.GenerateContentConfig]:
    said = [turn("user", Part(text="Hi")), turn("model", Part(text="Hello")), turn("user", Part(text="And?"))]
    config = Config(
        system_instruction="Be brief.", temperature=0.5, max_output_tokens=9, seed=3, stop_sequences=["x"]
    )
    return said, config


def _tools() -> tuple[list[types.Content], types.GenerateContentConfig]:
    calls = [
        Part(
            function_call=types.FunctionCall(name="look", args={"city": city}, id=f"g{city}"),
            thought_signature=b"signature" if city == "Rome" else None,
        )
        for city in ("Rome", "Oslo")
    ]
    results = [
        Part(function_response=types.FunctionResponse(name="look", id="gRome", response={"output": "sunny"})),
        Part(
            function_response=types.FunctionResponse(name="look", id="gOslo", response={"error": "no line"})
        ),
    ]
    declared = types.FunctionDeclaration(name="look", description="Look.", parameters_json_schema=SCHEMA)
    forced = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
    config = Config(
        tools=[types.Tool(function_declarations=[declared])],
        tool_config=types.ToolConfig(function_calling_config=forced),
        automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
    )
    return [turn("user", Part(text="Weather?")), turn("model", *calls), turn("user", *results)], config


def _structured() -> tuple[list[types.Content], types.GenerateContentConfig]:
    return [turn("user", Part(text="Where?"))], Config(
        response_mime_type="application/json", response_json_schema=SCHEMA
    )


def _thinking() -> tuple[list[types.Content], types.GenerateContentConfig]:
    thinking = types.ThinkingConfig(thinking_level=types.ThinkingLevel.HIGH, include_thoughts=True)
    return [turn("user", Part(text="Why?"))], Config(thinking_config=thinking)


def _media() -> tuple[list[types.Content], types.GenerateContentConfig]:
    parts = [
        Part(text="See:"),
        Part.from_bytes(data=PNG_BYTES, mime_type="image/png"),
        Part.from_uri(file_uri="https://example.org/a.png", mime_type="image/png"),
        Part.from_bytes(data=b"RIFF", mime_type="audio/wav"),
        Part(text="Report.pdf:"),
        Part.from_bytes(data=b"%PDF", mime_type="application/pdf"),
    ]
    return [turn("user", *parts)], Config()


_CASES: dict[str, tuple[Request, Theirs]] = {
    "text": (
        Request(
            (system("Be brief."), user("Hi"), assistant("Hello"), user("And?")),
            settings=ModelSettings(temperature=0.5, max_tokens=9, seed=3, stop=("x",)),
        ),
        _text,
    ),
    "tools": (
        Request(
            (
                user("Weather?"),
                assistant(
                    "",
                    ToolCall("a", "look", '{"city": "Rome"}', provider_data=SIGNED),
                    ToolCall("b", "look", '{"city": "Oslo"}', provider_data=mark(id="gOslo")),
                ),
                tool_results([ToolResult("b", "look", None, "no line"), ToolResult("a", "look", "sunny")]),
            ),
            (ToolDefinition("look", SCHEMA, "Look."),),
            tool_choice=ToolChoice("required"),
        ),
        _tools,
    ),
    "structured": (Request((user("Where?"),), output=OutputObject(SCHEMA)), _structured),
    "thinking": (Request((user("Why?"),), settings=ModelSettings(reasoning_effort="high")), _thinking),
    "media": (Request((user(["See:", PNG, WEB, WAV, PDF]),)), _media),
}  # fmt: skip


@pytest.mark.parametrize("name", _CASES)
@pytest.mark.parametrize("streamed", [False, True])
async def test_the_sdk_sends_the_same(name: str, streamed: bool) -> None:
    request, theirs = _CASES[name]
    contents, config = theirs()
    async with Loopback(replying(lambda _: answer({"text": "fine"}))) as server:
        engine = engine_at(server)
        result = await (collect(engine.stream(request)) if streamed else engine.infer(request))
        read = await asked(server, contents, config, streamed=streamed)
        assert "".join([chunk.text or "" for chunk in read]) == result.content == "fine"
        await engine.aclose()
        ours, sdks = server.received
    assert ours.method == sdks.method
    assert ours.path == sdks.path
    assert _sent(ours) == _sent(sdks)
    assert ours.headers["x-goog-api-key"] == "the-secret-key"
    assert "secret" not in ours.path


def _sent(got: Received) -> Any:
    body = plain(got.json)
    return {key: value for key, value in body.items() if value != {}}

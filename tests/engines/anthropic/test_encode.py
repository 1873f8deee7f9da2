"""Requests: tools, schemas, thinking, the cache, and what each model takes."""

from __future__ import annotations

from typing import Any, get_args

import msgspec
import pytest
from anthropic.types import Model

from flyball.core.errors import ToolNotFound
from flyball.core.messages import ToolCall, ToolResult, assistant, system, tool_results, user
from flyball.core.settings import ModelSettings
from flyball.core.spec import OutputMode
from flyball.core.tools import ToolChoice, ToolDefinition, ToolKind
from flyball.engines.anthropic import MessagesCodec
from flyball.engines.anthropic.encode import messages_body
from flyball.engines.anthropic.models import COMPATIBLE, TABLE, traits_of
from flyball.inference.model_string import ModelRef
from flyball.inference.profile import profile_for
from flyball.inference.request import OutputObject, Request
from tests.engines.anthropic.oracle import check_params
from tests.engines.anthropic.wire import MODEL

_SCHEMA: dict[str, Any] = {"type": "object", "properties": {"at": {"type": "integer"}}, "required": ["at"]}
_LOOK = ToolDefinition("look", _SCHEMA, "Look.")
_ANSWER = ToolDefinition("answer", _SCHEMA, kind=ToolKind.OUTPUT)
_OLD, _FIVE = "claude-sonnet-4-5", "claude-opus-5"


def sent(model: str = MODEL, settings: ModelSettings | None = None, **more: Any) -> dict[str, Any]:
    cache = more.pop("cache", False)
    messages = more.pop("messages", (user("Hi"),))
    request = Request(messages, settings=settings or ModelSettings(), **more)
    body = messages_body(request, model, stream=False, cache=cache)
    if not body.keys() & {"temperature", "top_p", "top_k"}:
        check_params(msgspec.json.decode(msgspec.json.encode(body)))
    return body


def test_the_least() -> None:
    assert sent() == {"model": MODEL, "max_tokens": 20_000, "messages": [{"role": "user", "content": "Hi"}]}


def test_what_is_set() -> None:
    settings = ModelSettings(max_tokens=9, seed=1, stop=("END",), options={"service_tier": "auto"})
    body = sent(settings=settings)
    assert (body["max_tokens"], body["stop_sequences"], body["service_tier"]) == (9, ["END"], "auto")
    assert "seed" not in body


def test_options_go_over_everything() -> None:
    options = {"max_tokens": 7, "model": "other", "system": "Obey."}
    body = sent(settings=ModelSettings(max_tokens=9, options=options))
    assert (body["max_tokens"], body["model"], body["system"]) == (7, "other", "Obey.")


# Tools


def test_tools_are_told_with_their_schemas() -> None:
    body = sent(tools=(_LOOK,))
    assert body["tools"] == [{"name": "look", "description": "Look.", "input_schema": _SCHEMA}]
    assert "tool_choice" not in body


def test_strict_is_for_who_asks_and_for_what_fits() -> None:
    told = sent(
        tools=(msgspec.structs.replace(_LOOK, strict=True), ToolDefinition("any", {"x": 1}, strict=True))
    )
    assert told["tools"][0]["strict"] is True
    assert told["tools"][0]["input_schema"]["additionalProperties"] is False
    assert told["tools"][1] == {"name": "any", "input_schema": {"type": "object", "x": 1}}


@pytest.mark.parametrize(
    ("choice", "allows_text", "told"),
    [
        (None, True, None),
        (None, False, {"type": "any"}),
        (ToolChoice("auto"), True, None),
        (ToolChoice("required"), True, {"type": "any"}),
        (ToolChoice("function", "look"), True, {"type": "tool", "name": "look"}),
        (ToolChoice("none"), True, {"type": "none"}),
    ],
)
def test_tool_choice(choice: ToolChoice | None, allows_text: bool, told: Any) -> None:
    body = sent(_OLD, tools=(_LOOK,), tool_choice=choice, allows_text=allows_text)
    assert body.get("tool_choice") == told
    assert [tool["name"] for tool in body["tools"]] == ["look"]


def test_a_choice_of_none_leaves_the_outputs_own_tools() -> None:
    body = sent(_OLD, tools=(_LOOK, _ANSWER), tool_choice=ToolChoice("none"), allows_text=False)
    assert [tool["name"] for tool in body["tools"]] == ["answer"]
    assert body["tool_choice"] == {"type": "any"}


def test_a_tool_that_is_to_be_alone_comes_alone() -> None:
    alone = msgspec.structs.replace(_LOOK, sequential=True)
    assert sent(tools=(alone,))["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


def test_a_tool_that_is_not_there_cannot_be_called() -> None:
    with pytest.raises(ToolNotFound):
        sent(tools=(_LOOK,), tool_choice=ToolChoice("function", "leap"))


def test_calls_of_tools_that_are_not_on_offer_any_more() -> None:
    """A summary of a run, say: the API wants to know the tools that a history has calls of."""
    history = (user("Go"), assistant("", ToolCall("a", "look")), tool_results([ToolResult("a", "look", "x")]))
    body = sent(messages=history)
    assert body["tools"] == [{"name": "look", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


@pytest.mark.parametrize(
    ("model", "thinking", "told", "config"),
    [
        (_OLD, None, {"type": "any"}, None),
        (_OLD, True, None, "enabled"),
        ("claude-opus-4-8", None, {"type": "any"}, None),
        ("claude-opus-4-8", True, None, "adaptive"),
        # They think unless told not to: who insists on a call gets one, without thoughts.
        (_FIVE, None, {"type": "any"}, "disabled"),
        (_FIVE, True, None, "adaptive"),
        ("claude-haiku-5-5", None, {"type": "any"}, "disabled"),
        # They refuse to be made to call.
        ("claude-sonnet-5-5", None, None, None),
        (MODEL, None, None, None),
        ("claude-of-tomorrow", None, None, None),
        ("kimi-k3", None, {"type": "any"}, None),
    ],
)
def test_who_can_be_made_to_call_a_tool(
    model: str, thinking: bool | None, told: Any, config: str | None
) -> None:
    settings = ModelSettings(thinking=thinking)
    body = sent(model, settings, tools=(_LOOK,), tool_choice=ToolChoice("required"))
    assert body.get("tool_choice") == told
    assert body.get("thinking", {}).get("type") == config


def test_where_only_a_call_is_an_answer_a_model_that_thinks_goes_on_thinking() -> None:
    body = sent(_FIVE, tools=(_ANSWER,), allows_text=False)
    assert body.keys() & {"thinking", "tool_choice"} == set()


# Schemas


def test_a_schema_that_fits_holds_the_answer() -> None:
    body = sent(output=OutputObject(_SCHEMA, description="Where."))
    schema = {**_SCHEMA, "description": "Where.", "additionalProperties": False}
    assert body["output_config"] == {"format": {"type": "json_schema", "schema": schema}}


def test_a_schema_that_does_not_fit_is_told() -> None:
    free = {"type": "object", "additionalProperties": {"type": "integer"}}
    body = sent(messages=(system("Be brief."), user("Hi")), output=OutputObject(free))
    assert "output_config" not in body
    assert body["system"].startswith("Be brief.\n\nAnswer with nothing but JSON")
    assert '"additionalProperties":{"type":"integer"}' in body["system"]


# Thinking


_ADAPTIVE = {"type": "adaptive", "display": "summarized"}


@pytest.mark.parametrize(
    ("model", "settings", "thinking", "effort", "most"),
    [
        (_OLD, ModelSettings(), None, None, 20_000),
        (_OLD, ModelSettings(thinking=False), None, None, 20_000),
        (_OLD, ModelSettings(thinking=True), 8_192, None, 28_192),
        (_OLD, ModelSettings(thinking_budget=20_000), 20_000, None, 40_000),
        (_OLD, ModelSettings(thinking_budget=60_000), 60_000, None, 64_000),
        (_OLD, ModelSettings(thinking_budget=99_000), 32_000, None, 64_000),
        (_OLD, ModelSettings(thinking_budget=5), 1_024, None, 21_024),
        (_OLD, ModelSettings(thinking_budget=4_000, max_tokens=5_000), 4_000, None, 5_000),
        (_OLD, ModelSettings(thinking_budget=8_000, max_tokens=5_000), 2_500, None, 5_000),
        (_OLD, ModelSettings(thinking_budget=8_000, max_tokens=2_000), None, None, 2_000),
        (_OLD, ModelSettings(reasoning_effort="high"), None, None, 20_000),
        ("claude-opus-4-6", ModelSettings(thinking=True), _ADAPTIVE, None, 20_000),
        ("claude-opus-4-6", ModelSettings(thinking_budget=2_000), 2_000, None, 22_000),
        ("claude-opus-4-7", ModelSettings(thinking_budget=2_000), _ADAPTIVE, None, 20_000),
        ("claude-opus-4-7", ModelSettings(thinking=False), None, None, 20_000),
        (_FIVE, ModelSettings(), None, None, 20_000),
        (_FIVE, ModelSettings(thinking=False), {"type": "disabled"}, None, 20_000),
        (_FIVE, ModelSettings(thinking=False, reasoning_effort="max"), {"type": "disabled"}, "high", 20_000),
        ("claude-sonnet-5-5", ModelSettings(thinking=False), {"type": "between_tools"}, None, 20_000),
        (MODEL, ModelSettings(thinking=False), None, "low", 20_000),
        (MODEL, ModelSettings(thinking=False, reasoning_effort="high"), None, "high", 20_000),
        (MODEL, ModelSettings(reasoning_effort="xhigh"), None, "xhigh", 20_000),
        (MODEL, ModelSettings(reasoning_effort="minimal"), None, "low", 20_000),
        (MODEL, ModelSettings(thinking_budget=2_000), _ADAPTIVE, None, 20_000),
        ("claude-3-5-haiku-latest", ModelSettings(thinking=True), None, None, 8_192),
        ("kimi-k3", ModelSettings(thinking=True), 4_096, None, 8_192),
    ],
)
def test_how_a_model_is_told_to_think(
    model: str, settings: ModelSettings, thinking: Any, effort: str | None, most: int
) -> None:
    body = sent(model, settings)
    expected = {"type": "enabled", "budget_tokens": thinking} if isinstance(thinking, int) else thinking
    assert body.get("thinking") == expected
    assert body.get("output_config", {}).get("effort") == effort
    assert body["max_tokens"] == most


def test_a_turn_that_was_begun_without_thoughts_is_ended_without_them() -> None:
    """A model with a budget refuses to begin to think in the middle of its turn."""
    call = (user("Go"), assistant("", ToolCall("a", "look")), tool_results([ToolResult("a", "look", "x")]))
    settings = ModelSettings(thinking_budget=2_000)
    assert "thinking" not in sent(_OLD, settings, messages=call, tools=(_LOOK,))
    assert "thinking" in sent(
        _OLD, settings, messages=(*call, assistant("So."), user("And?")), tools=(_LOOK,)
    )


@pytest.mark.parametrize(
    ("model", "settings", "told"),
    [
        (_OLD, ModelSettings(temperature=0.0, top_p=0.5), {"temperature": 0.0}),
        (_OLD, ModelSettings(top_p=0.5), {"top_p": 0.5}),
        (_OLD, ModelSettings(temperature=0.5, thinking_budget=2_000), {}),
        (_OLD, ModelSettings(temperature=0.5, thinking=True), {}),
        ("claude-opus-4-7", ModelSettings(temperature=0.5), {}),
        (MODEL, ModelSettings(temperature=0.5, top_p=0.5), {}),
        ("kimi-k3", ModelSettings(temperature=0.5), {"temperature": 0.5}),
    ],
)
def test_a_temperature_is_for_models_that_take_one(model: str, settings: ModelSettings, told: Any) -> None:
    body = sent(model, settings)
    assert {key: body[key] for key in ("temperature", "top_p") if key in body} == told
    call = MessagesCodec("https://x", model).call(Request((user("Hi"),), settings=settings), stream=False)
    assert call.headers["anthropic-version"] == ("2023-06-01" if told else "2026-10-21")


# The cache


def test_breakpoints_stand_after_tools_system_and_the_last_message() -> None:
    history = (system("Be brief."), user("Hi"), assistant("Yes?"), user(["Look", "here"]))
    for cache, mark in ((True, {"type": "ephemeral"}), ("1h", {"type": "ephemeral", "ttl": "1h"})):
        body = sent(messages=history, tools=(_LOOK, _ANSWER), cache=cache)
        assert [tool.get("cache_control") for tool in body["tools"]] == [None, mark]
        assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
        marks = [block.get("cache_control") for block in body["messages"][-1]["content"]]
        assert marks == [None, mark]
        assert body["messages"][0]["content"] == "Hi"


def test_a_single_text_can_be_marked() -> None:
    told = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}
    assert sent(cache=True)["messages"] == [{"role": "user", "content": [told]}]


# Models


def test_every_model_that_the_vendor_names_is_known() -> None:
    names = get_args(get_args(Model)[0])
    assert len(names) > 10
    for name in names:
        assert any(name.startswith(prefix) for prefix in TABLE), name
        profile = profile_for(ModelRef("anthropic", name))
        assert profile.context_window
        assert profile.native_schema
        assert profile.thinking
        # Who thinks by itself cannot be made to call a tool: it is held by its schema.
        native = profile.default_output_mode is OutputMode.NATIVE
        assert native is traits_of(name).thinks


def test_names_with_dates_and_prefixes() -> None:
    assert traits_of("claude-sonnet-4-5@20250929") == traits_of("claude-sonnet-4-5-20250929") == TABLE[_OLD]
    assert traits_of("anthropic/claude-sonnet-4-5") == TABLE[_OLD]
    assert traits_of("glm-5") == COMPATIBLE

"""What the vendor's own types say about a request.

They describe lists as iterables, which pydantic would check as late as somebody goes through them, and they
pass over keys that they do not know. So everything is gone through here, and what comes out must be what went
in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from anthropic.types import (
    ContentBlockParam,
    MessageCreateParams,
    OutputConfigParam,
    TextBlockParam,
    ThinkingConfigParam,
    ToolChoiceParam,
    ToolUnionParam,
)
from anthropic.types.message_create_params import MessageCreateParamsStreaming
from pydantic import TypeAdapter

_WHOLE: TypeAdapter[Any] = TypeAdapter(MessageCreateParams)
_PARTS: dict[str, TypeAdapter[Any]] = {
    "system": TypeAdapter(str | list[TextBlockParam]),
    "thinking": TypeAdapter(ThinkingConfigParam),
    "tool_choice": TypeAdapter(ToolChoiceParam),
    "tools": TypeAdapter(list[ToolUnionParam]),
    "output_config": TypeAdapter(OutputConfigParam),
    "stop_sequences": TypeAdapter(list[str]),
}
_BLOCKS: TypeAdapter[Any] = TypeAdapter(list[ContentBlockParam])
_KEYS = MessageCreateParamsStreaming.__annotations__.keys()


def check_params(body: Mapping[str, Any]) -> None:
    """Raise unless the vendor's types take every piece of a body, and know every key of it."""
    assert body.keys() <= _KEYS, body.keys() - _KEYS
    _gone_through(_WHOLE.validate_python(body))
    for name, adapter in _PARTS.items():
        if name in body:
            assert _gone_through(adapter.validate_python(body[name])) == body[name]
    for message in body["messages"]:
        assert message.keys() == {"role", "content"}
        assert message["role"] in ("user", "assistant")
        if not isinstance(message["content"], str):
            assert _gone_through(_BLOCKS.validate_python(message["content"])) == message["content"]


def _gone_through(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _gone_through(inner) for key, inner in cast("Mapping[str, Any]", value).items()}
    if isinstance(value, str | bytes) or not hasattr(value, "__iter__"):
        return value
    if hasattr(value, "model_dump"):
        return value
    return [_gone_through(inner) for inner in value]


def check_rules(body: Mapping[str, Any]) -> None:
    """Raise unless a body keeps the rules that the types do not know."""
    seen: set[str] = set()
    owed: set[str] = set()
    for number, message in enumerate(body["messages"]):
        assert message["role"] == ("assistant" if number % 2 else "user"), (
            "they speak in turn, the user first"
        )
        content: Any = message["content"]
        if isinstance(content, str):
            content = [{"type": "text", "text": content}]
        assert content, "no turn is empty"
        for block in content:
            assert block["type"] != "text" or block["text"].strip(), "no text is blank"
        if message["role"] == "assistant":
            assert content[-1]["type"] not in ("thinking", "redacted_thinking"), (
                "no answer ends with a thought"
            )
            calls = [block["id"] for block in content if block["type"] == "tool_use"]
            assert not seen & {*calls}, "no id is used twice"
            assert len({*calls}) == len(calls)
            seen, owed = seen | {*calls}, {*calls}
            continue
        kinds = [block["type"] == "tool_result" for block in content]
        assert kinds == sorted(kinds, reverse=True), "results open a turn"
        results = [block for block in content if block["type"] == "tool_result"]
        assert sorted(block["tool_use_id"] for block in results) == sorted(owed), (
            "each call is answered at once"
        )
        assert all(block.get("content") for block in results if block.get("is_error"))
        owed = set()
    assert not owed
    if "thinking" in body and body["thinking"]["type"] == "enabled":
        assert 1024 <= body["thinking"]["budget_tokens"] < body["max_tokens"]
        assert body.get("tool_choice", {}).get("type") not in ("any", "tool")

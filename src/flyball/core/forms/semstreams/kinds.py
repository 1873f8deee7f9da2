"""What can stand under a key of a payload: how it is read, how it is written, and when it counts as empty."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias

from msgspec import Struct

from flyball.core.forms.fields import Fields, malformed
from flyball.core.forms.semstreams.messages import call_from, messages_from, write_messages, write_tool_call
from flyball.core.forms.semstreams.tools import (
    choice_from,
    definition_from,
    result_from,
    write_tool_choice,
    write_tool_definition,
    write_tool_result,
)
from flyball.core.forms.times import seconds, stamp
from flyball.core.messages import JSON, Message, ToolCall, ToolResult
from flyball.core.tools import ToolChoice, ToolDefinition


class Kind(Struct, frozen=True):
    """How what stands under a key is read and written, and whether there is anything to write."""

    read: Callable[[Fields, str], Any]
    write: Callable[[Any], JSON]
    is_filled: Callable[[Any], bool] = bool


def _same(value: JSON) -> JSON:
    return value


def _is_there(value: object) -> bool:
    return value is not None


SCALARS: Mapping[Any, Kind] = {
    str: Kind(Fields.text, str),
    int: Kind(lambda fields, key: fields.whole(key) or 0, _same),
    float: Kind(lambda fields, key: fields.number(key) or 0.0, _same),
    bool: Kind(lambda fields, key: fields.flag(key) or False, _same),
}
"""The kinds that need no telling; missing is Go's zero value."""


def _read_moment(fields: Fields, key: str) -> float | None:
    text = fields.any(key)
    if text is None:
        return None
    if not isinstance(text, str):
        raise malformed(fields.place(key), "a time as text", text)
    return seconds(text, fields.place(key))


def _read_texts(fields: Fields, key: str) -> tuple[str, ...]:
    texts: list[str] = []
    for value, place in fields.items(key):
        if not isinstance(value, str):
            raise malformed(place, "text", value)
        texts.append(value)
    return tuple(texts)


def _read_labels(fields: Fields, key: str) -> dict[str, str] | None:
    labels = fields.mapping(key)
    for name, value in (labels or {}).items():
        if not isinstance(value, str):
            raise malformed(f"{fields.place(key)}.{name}", "text", value)
    return labels


def _read_choice(fields: Fields, key: str) -> ToolChoice | None:
    choice = fields.any(key)
    return None if choice is None else choice_from(choice, fields.place(key))


def _read_results(fields: Fields, key: str) -> dict[str, ToolResult] | None:
    results = fields.mapping(key) or {}
    return {
        name: result_from(value, f"{fields.place(key)}.{name}") for name, value in results.items()
    } or None


_MOMENT = Kind(_read_moment, stamp, _is_there)
_TEXTS = Kind(_read_texts, list)
_LABELS = Kind(_read_labels, _same)
_OBJECT = Kind(Fields.mapping, _same)
_ANYTHING = Kind(Fields.any, _same, _is_there)
_MESSAGES = Kind(lambda fields, key: messages_from(fields.any(key), fields.place(key)), write_messages)
_CALLS = Kind(
    lambda fields, key: tuple([call_from(*item) for item in fields.items(key)]),
    lambda calls: [write_tool_call(call) for call in calls],
)
_TOOLS = Kind(
    lambda fields, key: tuple([definition_from(*item) for item in fields.items(key)]),
    lambda tools: [write_tool_definition(tool) for tool in tools],
)
_CHOICE = Kind(_read_choice, write_tool_choice, _is_there)
_RESULTS = Kind(
    _read_results, lambda results: {name: write_tool_result(result) for name, result in results.items()}
)

Moment: TypeAlias = Annotated[float | None, _MOMENT]
"""A time in seconds since the epoch; None where nobody set it."""
Texts: TypeAlias = Annotated[tuple[str, ...], _TEXTS]
Labels: TypeAlias = Annotated[dict[str, str] | None, _LABELS]
"""An object whose values are texts."""
Object: TypeAlias = Annotated[dict[str, Any] | None, _OBJECT]
Anything: TypeAlias = Annotated[JSON, _ANYTHING]
"""Any JSON; only null is empty, as in Go."""
Messages: TypeAlias = Annotated[tuple[Message, ...], _MESSAGES]
Calls: TypeAlias = Annotated[tuple[ToolCall, ...], _CALLS]
Tools: TypeAlias = Annotated[tuple[ToolDefinition, ...], _TOOLS]
Choice: TypeAlias = Annotated[ToolChoice | None, _CHOICE]
Results: TypeAlias = Annotated[dict[str, ToolResult] | None, _RESULTS]
"""Tool results by the ids of their calls."""

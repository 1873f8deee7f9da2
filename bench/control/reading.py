"""What a model said, as calls or as a value, and whether that is valid.

Valid means: it can be read without guessing, names only tools that are on offer, and follows their schemas
(or the one schema of the task). It says nothing about being right. An answer that was cut off is never valid.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

from jsonschema_rs import validator_for
from msgspec import ValidationError, convert

from bench.control.tasks import Call, Tool
from flyball.constraint.json_text import repair_json


def read_json(text: str, *, repair: bool) -> Any:
    """The JSON that a text is, or None. With `repair` it may be found in the text and mended."""
    found = repair_json(text) if repair else text.strip()
    if found is None:
        return None
    try:
        return json.loads(found)
    except ValueError:
        return None


def calls_of(answer: Any) -> tuple[Call, ...] | None:
    """The calls in `{"calls": [{"tool": ..., "args": {...}}]}`; None where it has another form."""
    if not isinstance(answer, dict) or list(cast("dict[str, Any]", answer)) != ["calls"]:
        return None
    entries = cast("dict[str, Any]", answer)["calls"]
    if not isinstance(entries, list):
        return None
    calls: list[Call] = []
    for entry in cast("list[Any]", entries):
        try:
            calls.append(convert(entry, Call, strict=True))
        except ValidationError:
            return None
    return tuple(calls)


def valid_calls(tools: Sequence[Tool], calls: Sequence[Call]) -> bool:
    """Whether all calls are to tools on offer, with arguments that follow their schemas."""
    schemas = {tool.name: tool.schema for tool in tools}
    return all(call.tool in schemas and valid_value(schemas[call.tool], call.args) for call in calls)


def valid_value(schema: dict[str, Any], value: Any) -> bool:
    """Whether a value follows a schema."""
    return validator_for(schema).is_valid(value)

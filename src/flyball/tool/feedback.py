"""What the model is told when its arguments (or its answer) are wrong: which part, why, and what it gave.

Compact and capped, since it costs tokens on every try; no addresses, no Python names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from flyball.core.encodable import clean_text
from flyball.tool.errors import ModelRetry

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails, ValidationError

_MAX_FAULTS = 10
_MAX_VALUE = 100
_MAX_TEXT = 2_000

_NOT_JSON = frozenset({"json_invalid", "string_unicode"})
_WITHOUT_VALUE = frozenset({"missing", "extra_forbidden"})


def bad_arguments(error: ValueError) -> ModelRetry:
    """A failed validation as a request to call again."""
    from pydantic_core import ValidationError

    return wrong(describe_errors(error) if isinstance(error, ValidationError) else f"- {error}")


def wrong(faults: str) -> ModelRetry:
    """A request to call again, which says what was wrong."""
    told = capped(clean_text(faults), _MAX_TEXT)
    return ModelRetry(f"The arguments are wrong:\n{told}\nCall again with this put right.")


def describe_errors(error: ValidationError) -> str:
    """What pydantic found wrong, for the model: one line a fault."""
    found = error.errors(include_url=False, include_context=False)
    lines = [f"- {_fault(one)}" for one in found[:_MAX_FAULTS]]
    if len(found) > _MAX_FAULTS:
        lines.append(f"- and {len(found) - _MAX_FAULTS} more")
    return capped(clean_text("\n".join(lines)), _MAX_TEXT)


def not_json(reason: str, text: str) -> str:
    """The fault of text that is no JSON; its end is shown, where it was most likely cut."""
    end = text if len(text) <= _MAX_VALUE else "…" + text[-_MAX_VALUE:]
    return f"no JSON ({reason}), perhaps cut short; it ends with: {end}"


def capped(text: str, limit: int) -> str:
    """The text, cut to the limit with a mark where it was cut."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _fault(found: ErrorDetails) -> str:
    kind, message, given = found["type"], found["msg"], found["input"]
    if kind in _NOT_JSON:
        return not_json(message.removeprefix("Invalid JSON: "), str(given))
    told = message if kind in _WITHOUT_VALUE else f"{message}, got {_shown(given)}"
    place = ".".join([str(step) for step in found["loc"]])
    return f"{place}: {told}" if place else told


def _shown(value: Any) -> str:
    try:
        return capped(msgspec.json.encode(value).decode("utf-8"), _MAX_VALUE)
    except (TypeError, ValueError, RecursionError):
        return f"a {type(value).__name__}"

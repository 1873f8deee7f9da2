"""Answers that are nearly right, put right without asking the model again; each change is told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from flyball.constraint.json_text import decoded, mended_json
from flyball.core.errors import EnumUnrecognized

if TYPE_CHECKING:
    from flyball.constraint.enums import Change

JSON_MENDED = "json"
"""The repair of text that was no JSON."""
_LONGEST = 80

__all__ = ["JSON_MENDED", "decoded", "mended_enums", "mended_json"]


def mended_enums(schema: dict[str, Any] | None, value: Any) -> tuple[Any, tuple[str, ...]]:
    """The value with members of enumerations in the schema's own spelling, and what was changed, in words.

    For values that broke their schema. Where any member cannot be told for sure nothing is changed, because
    the model has to be asked again in any case.
    """
    if schema is None:
        return value, ()
    from flyball.constraint.enums import normalise_enums

    try:
        found = normalise_enums(schema, value)
    except EnumUnrecognized:
        return value, ()
    return found.value, tuple([_told(change) for change in found.changes])


def _told(change: Change) -> str:
    where = f" {change.path}" if change.path else ""
    return f"enum{where}: {_shown(change.before)} is taken for {_shown(change.after)}"


def _shown(value: Any) -> str:
    text = str(msgspec.json.encode(value), "utf-8")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

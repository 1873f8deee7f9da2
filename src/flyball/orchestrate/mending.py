"""Answers that are nearly right, put right without asking the model again; each change is told in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from flyball.core.errors import EnumUnrecognized

if TYPE_CHECKING:
    from flyball.constraint.enums import Change

JSON_MENDED = "json"
"""The repair of text that was no JSON."""
_LONGEST = 80


def mended_json(raw: str) -> str | None:
    """The text as JSON; None where it cannot be made so."""
    from flyball.constraint.json_text import repair_json

    try:
        mended = repair_json(raw)
        return None if mended is None else str(msgspec.json.encode(decoded(mended)), "utf-8")
    except (ValueError, RecursionError):
        return None


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


def decoded(text: str) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is no JSON, or nested too deeply.
    """
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _told(change: Change) -> str:
    where = f" {change.path}" if change.path else ""
    return f"enum{where}: {_shown(change.before)} is taken for {_shown(change.after)}"


def _shown(value: Any) -> str:
    text = str(msgspec.json.encode(value), "utf-8")
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"

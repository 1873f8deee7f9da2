"""What of a gollem document has no place in our types, and is kept in `extra` until it is written again.

Unknown keys stand in `extra` as they stood in the document. All else is in notes, under one key, so that it
cannot be taken for an unknown key by another form; an unknown key of that very name goes into the notes.
"""

from __future__ import annotations

from typing import cast

from flyball.core.forms.fields import written
from flyball.core.messages import JSON

NOTES = "gollem"
"""The key in `extra` under which the notes are."""


def kept(unknown: dict[str, JSON] | None, **notes: JSON) -> dict[str, JSON] | None:
    """An `extra` of unknown keys and of the notes that are not empty; None where that is nothing."""
    extra = dict(unknown or {})
    if NOTES in extra:
        notes["data"] = {NOTES: extra.pop(NOTES)}
    if notes := {key: value for key, value in notes.items() if value}:
        extra[NOTES] = notes
    return extra or None


def notes_of(extra: dict[str, JSON] | None) -> dict[str, JSON]:
    """The notes in an `extra`; none where something else stands there."""
    notes = (extra or {}).get(NOTES)
    return cast("dict[str, JSON]", notes) if isinstance(notes, dict) else {}


def unknown_of(extra: dict[str, JSON] | None) -> dict[str, JSON]:
    """The unknown keys in an `extra`."""
    notes = notes_of(extra)
    unknown = {key: value for key, value in (extra or {}).items() if key != NOTES or not notes}
    return unknown | _object(notes, "data")


def with_note(extra: dict[str, JSON] | None, key: str, value: JSON) -> dict[str, JSON]:
    """The same `extra` with one more note."""
    return {**(extra or {}), NOTES: notes_of(extra) | {key: value}}


def enveloped(
    tag: str, kind: str, data: dict[str, JSON], extra: dict[str, JSON] | None, keys: frozenset[str]
) -> dict[str, JSON]:
    """An envelope: its kind under `tag`, its data, and what was unknown in either."""
    inner = written(data, unknown_of(extra), keys)
    return written({tag: kind, "data": inner}, _object(notes_of(extra), "envelope"), frozenset())


def _object(notes: dict[str, JSON], key: str) -> dict[str, JSON]:
    value = notes.get(key)
    return cast("dict[str, JSON]", value) if isinstance(value, dict) else {}


def noted(extra: dict[str, JSON] | None, key: str) -> str:
    """A text in the notes; empty where there is none."""
    value = notes_of(extra).get(key)
    return value if isinstance(value, str) else ""

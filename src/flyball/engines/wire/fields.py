"""Values out of the JSON of servers, which is not always what its vendor says.

What an answer is made of has to be right: a text that is no text is an `UnexpectedModelBehavior`, and never
reaches a message, which a journal could then not give back. What is only told beside it is read as far as it
goes: an answer is not lost for a count.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from flyball.core.errors import UnexpectedModelBehavior


def text(told: Mapping[str, Any], key: str) -> str:
    """A text; empty where there is none.

    Raises:
        UnexpectedModelBehavior: it is something else.
    """
    value = told.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _unexpected(key, "text", value)
    return value


def objects(told: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of objects; empty where there is none.

    Raises:
        UnexpectedModelBehavior: it is something else.
    """
    value = told.get(key)
    if value is None:
        return []
    found = cast("list[Any]", value)
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in found):
        raise _unexpected(key, "list of objects", value)
    return found


def group(told: Any, key: str | None = None) -> dict[str, Any]:
    """An object of counts, or the one under a key in it; empty where there is none."""
    value = group(told).get(key) if key is not None else told
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def count(told: Mapping[str, Any], key: str) -> int:
    """A number of tokens, also one in words; 0 where there is none."""
    value = told.get(key)
    if type(value) is int:
        return max(value, 0)
    return int(rate(told, key))


def rate(told: Mapping[str, Any], key: str) -> float:
    """A number from 0 on, also one in words; 0.0 where there is none."""
    value = told.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return 0.0
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return 0.0
    return found if 0.0 < found < _MOST else 0.0


_MOST = 1e15
"""More than anybody counts: beyond it, a number is a mistake."""


def _unexpected(key: str, wanted: str, value: Any) -> UnexpectedModelBehavior:
    return UnexpectedModelBehavior(
        f"the server's answer cannot be read: {key!r} is {type(value).__name__}, and no {wanted}",
        body=repr(value)[:500],
    )

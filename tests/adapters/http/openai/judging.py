"""The official client's own types as judges of what we write, strictly: all keys known, none missing."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel, TypeAdapter

OURS = frozenset({"reasoning_content"})
"""Keys that OpenAI does not have, and that clients of other servers know."""


def judged(kind: Any, document: Any) -> Any:
    """The document as the client's type has it.

    Raises:
        ValidationError: the type does not take it.
        AssertionError: it has keys that the type does not know.
    """
    made = _adapter(kind).validate_python(document, strict=True)
    _check_known(made)
    return made


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def _check_known(value: Any) -> None:
    if isinstance(value, BaseModel):
        unknown = set(value.model_extra or {}) - OURS
        assert not unknown, (type(value), unknown)
        for name in type(value).model_fields:
            _check_known(getattr(value, name))
    elif isinstance(value, list):
        for one in value:  # pyright: ignore[reportUnknownVariableType]
            _check_known(one)

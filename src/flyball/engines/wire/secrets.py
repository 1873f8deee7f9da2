"""Keys, kept out of everything that is written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, cast

from flyball.core.errors import FlyballError

HIDDEN = "[hidden]"
_SHORTEST = 6
"""Characters of a key that is worth hiding: a shorter one would blot out words."""


def hidden(text: str, secrets: Iterable[str]) -> str:
    """A text without these secrets in it."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text


def secrets_in(headers: Mapping[str, str]) -> list[str]:
    """What proves who asks, in headers that do."""
    return [value.removeprefix("Bearer ") for value in headers.values()]


class Discreet:
    """`with Discreet(proofs):` no error leaves this block with a proof in it. Servers repeat them.

    Proofs are headers. Of an error all that is written down is looked through: its message, its details and
    what caused it. What goes well costs nothing.
    """

    __slots__ = ("_proofs",)

    def __init__(self, proofs: Mapping[str, str]) -> None:
        self._proofs = proofs

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, FlyballError):
            _silence(error, secrets_in(self._proofs))


def _silence(error: FlyballError, secrets: list[str]) -> None:
    error.message = _cut(error.message, secrets)
    error.args = (error.message, *error.args[1:])
    error.details = _clean(error.details, secrets)
    if error.caused_by is None and error.__cause__ is not None:
        told = str(error.__cause__)
        clean = _cut(told, secrets)
        if clean != told:
            error.caused_by = f"{type(error.__cause__).__name__}: {clean}"


def _clean(value: Any, secrets: list[str]) -> Any:
    if isinstance(value, str):
        return _cut(value, secrets)
    if isinstance(value, dict):
        return {key: _clean(inner, secrets) for key, inner in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_clean(inner, secrets) for inner in cast("list[Any]", value)]
    return value


def _cut(text: str, secrets: list[str]) -> str:
    """A text without these secrets, and without the half of one at its end: bodies are cut to a length."""
    text = hidden(text, secrets)
    for secret in secrets:
        for size in range(len(secret) - 1, _SHORTEST - 1, -1):
            if text.endswith(secret[:size]):
                text = text[:-size] + HIDDEN
                break
    return text

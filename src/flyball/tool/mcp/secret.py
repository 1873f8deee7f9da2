"""What must not be told: values of headers and of the environment, wherever somebody repeats them."""

from __future__ import annotations

from collections.abc import Iterable

_SHORTEST = 6
"""Shorter values are words like `1` or `true`: hiding them would make texts unreadable and hide nothing."""
_HIDDEN = "***"


def hide(text: str, secrets: Iterable[str]) -> str:
    """The text, with each of these values hidden where it stands; also what follows `Bearer` in one."""
    values = {part for secret in secrets for part in (secret, *secret.split()) if len(part) >= _SHORTEST}
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, _HIDDEN)
    return text

"""Keys, kept out of everything that is written down."""

from __future__ import annotations

from collections.abc import Iterable

HIDDEN = "[hidden]"
_SHORTEST = 6
"""Characters of a key that is worth hiding: a shorter one would blot out words."""


def hidden(text: str, secrets: Iterable[str]) -> str:
    """A text without these secrets in it."""
    for secret in secrets:
        if len(secret) >= _SHORTEST:
            text = text.replace(secret, HIDDEN)
    return text

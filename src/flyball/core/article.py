"""The indefinite article, for messages with names in them."""

from __future__ import annotations


def a(name: str) -> str:
    """A name with its article: a user, an assistant."""
    return f"an {name}" if name[:1].lower() in ("a", "e", "i", "o") else f"a {name}"

"""Names that clients and the vendors behind them take: letters, digits, `_` and `-`, and not too many."""

from __future__ import annotations

import re
from collections.abc import Container

_ODD = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 48
"""Vendors take 64, and clients put the server's name before it."""


def fitting(name: str, taken: Container[str]) -> str:
    """A name that fits, as near to the given one as can be, and that nobody else has."""
    fits = _ODD.sub("_", name)[:_LONGEST] or "_"
    number = 1
    while (found := fits if number == 1 else f"{fits[: _LONGEST - 4]}_{number}") in taken:
        number += 1
    return found

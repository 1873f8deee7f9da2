"""What a row's measurement gives: two figures of the same kind, whose ratio is held against the budget."""

from __future__ import annotations

from typing import NamedTuple


class Figures(NamedTuple):
    """The base (mostly the floor's figure), flyball's, and what they count: ns, bytes."""

    base: float
    flyball: float
    unit: str = "ns"

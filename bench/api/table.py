"""What is printed: each figure beside its floor and its budget, and whether that was held."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Figure(NamedTuple):
    """A figure. Without a budget it is only shown; `at_least` is for those that should be high."""

    what: str
    value: float
    unit: str
    budget: float | None = None
    floor: float | None = None
    at_least: bool = False

    @property
    def held(self) -> bool:
        """Whether it is within its budget."""
        if self.budget is None:
            return True
        return self.value >= self.budget if self.at_least else self.value <= self.budget


def printed(title: str, figures: Sequence[Figure]) -> str:
    """The figures of one part, aligned."""
    lines = [f"\n{title}"]
    for one in figures:
        value, floor = _amount(one.value, one.unit), ""
        if one.floor is not None:
            floor = f"floor {_amount(one.floor, one.unit)}"
        verdict = ""
        if one.budget is not None:
            bound = "at least" if one.at_least else "at most"
            verdict = f"{bound} {_amount(one.budget, one.unit)}: {'held ✓' if one.held else 'missed ✗'}"
        lines.append(f"  {one.what:54} {value:>12}  {floor:22} {verdict}".rstrip())
    return "\n".join(lines)


def _amount(value: float, unit: str) -> str:
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f} {unit}"

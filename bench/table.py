"""The table that is printed: one line a row, figures in units that can be read, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

from bench.figures import Figures
from bench.rows import Row

Verdict: TypeAlias = Literal["within", "over", "void", "shown"]

_SIGNS: Mapping[Verdict, str] = {"within": "✓", "over": "✗", "void": "VOID", "shown": ""}
_COLOURS: Mapping[Verdict, str] = {"within": "32", "over": "31", "void": "31;1", "shown": "0"}
_TIMES = "\N{MULTIPLICATION SIGN}"
_HEADINGS = ("row", "what", "base", "flyball", "ratio", "budget", "")
_TO_THE_LEFT = (0, 1, 6)
_UNITS: Mapping[str, tuple[tuple[float, str], ...]] = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")),
    "bytes": ((1e6, "MB"), (1e3, "kB"), (1, "B")),
}


class Outcome(NamedTuple):
    """What came of a row: figures, or the reason why they do not count."""

    row: Row
    figures: Figures | None
    void: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times the base's figure flyball's is."""
        return None if self.figures is None else self.figures.flyball / self.figures.base

    @property
    def verdict(self) -> Verdict:
        """Whether the ratio is within the budget; `shown` where there is none."""
        if self.ratio is None:
            return "void"
        if self.row.budget is None:
            return "shown"
        return "within" if self.ratio <= self.row.budget else "over"


def table(outcomes: Sequence[Outcome], *, colour: bool = False) -> str:
    """All rows, their columns aligned."""
    lines = [_HEADINGS, *[_cells(outcome) for outcome in outcomes]]
    widths = [max(len(line[n]) for line in lines) for n in range(len(_HEADINGS))]
    printed = [_aligned(_HEADINGS, widths)]
    for outcome, cells in zip(outcomes, lines[1:], strict=True):
        line = _aligned(cells, widths)
        sign = _SIGNS[outcome.verdict]
        if colour and sign:
            line = f"{line.removesuffix(sign)}\033[{_COLOURS[outcome.verdict]}m{sign}\033[0m"
        printed.append(line)
    return "\n".join(printed)


def verdict(outcomes: Sequence[Outcome]) -> str:
    """The last lines: what missed its budget, what is void and why, or that all is well."""
    lines = [f"void: {outcome.row.name}: {outcome.void}" for outcome in outcomes if outcome.verdict == "void"]
    over = [
        f"{outcome.row.name} ({_times(outcome.ratio)} of {_budget(outcome.row.budget)})"
        for outcome in outcomes
        if outcome.verdict == "over"
    ]
    if over:
        lines.append(f"over budget: {', '.join(over)}")
    return "\n".join(lines) or "all within budget"


def amount(value: float, unit: str) -> str:
    """A figure with three digits that count, in a unit that suits it."""
    for size, name in _UNITS[unit]:
        if value >= size:
            return f"{_three_digits(value / size)} {name}"
    return f"{_three_digits(value)} {_UNITS[unit][-1][1]}"


def _cells(outcome: Outcome) -> tuple[str, ...]:
    figures, row = outcome.figures, outcome.row
    return (
        row.name,
        row.what,
        "" if figures is None else amount(figures.base, figures.unit),
        "" if figures is None else amount(figures.flyball, figures.unit),
        _times(outcome.ratio),
        _budget(row.budget),
        _SIGNS[outcome.verdict],
    )


def _aligned(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [
        cell.ljust(width) if n in _TO_THE_LEFT else cell.rjust(width)
        for n, (cell, width) in enumerate(zip(cells, widths, strict=True))
    ]
    return "  ".join(padded).rstrip()


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}{_TIMES}"


def _budget(allowed: float | None) -> str:
    return "" if allowed is None else f"{allowed:g}{_TIMES}"


def _three_digits(value: float) -> str:
    return f"{value:.{max(0, 2 - len(str(int(value))) + 1)}f}"

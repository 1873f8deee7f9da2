"""What is printed: a line a row, a column a framework, and by how many times flyball is the fastest."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.table import Table
from rich.text import Text

from bench.peers.frameworks import FLYBALL
from bench.peers.outcomes import Outcome, Verdict
from bench.peers.rows import Kind
from bench.peers.workers import Result

_TIMES = "\N{MULTIPLICATION SIGN}"
_UNITS: Mapping[Kind, tuple[float, str]] = {"time": (1e3, "µs"), "memory": (1e6, "MB"), "import": (1e6, "ms")}
_SIGNS: Mapping[Verdict, tuple[str, str]] = {
    "met": ("✓", "green"),
    "missed": ("✗", "red"),
    "void": ("VOID", "bold red"),
    "shown": ("", ""),
}


def table(outcomes: Sequence[Outcome], names: Sequence[str]) -> Table:
    """The rows, with a column for each framework; the fastest peer of a row is marked by its colour."""
    printed = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    printed.add_column("row", no_wrap=True)
    printed.add_column("what", no_wrap=True)
    for name in names:
        printed.add_column(name, justify="right", no_wrap=True)
    printed.add_column(f"{_TIMES} fastest peer", justify="right", no_wrap=True)
    printed.add_column("target", justify="right", no_wrap=True)
    printed.add_column("", no_wrap=True)
    for outcome in outcomes:
        printed.add_row(
            outcome.row.name,
            outcome.row.what,
            *[_cell(outcome, name) for name in names],
            times(outcome.times),
            times(outcome.row.target),
            Text(*_SIGNS[outcome.verdict]),
        )
    return printed


def verdict(outcomes: Sequence[Outcome], unavailable: Sequence[str]) -> str:
    """The last lines: who could not be measured, what is void and why, and which targets were missed."""
    lines = [f"not measured: {line}" for line in unavailable]
    for outcome in outcomes:
        for name, result in outcome.results.items():
            if result.void:
                lines.append(f"void: {outcome.row.name}, {name}: {result.void}")
    missed = [
        f"{outcome.row.name} ({times(outcome.times)} of {times(outcome.row.target)})"
        for outcome in outcomes
        if outcome.verdict == "missed"
    ]
    if missed:
        lines.append(f"target missed: {', '.join(missed)}")
    return "\n".join(lines) or "all targets met"


def times(many: float | None) -> str:
    """So many times, in a few digits; rounded down, so that a target that was missed never looks met."""
    return "" if many is None else f"{math.floor(many * 10) / 10:.1f}".removesuffix(".0") + _TIMES


def amount(figure: float, kind: Kind) -> str:
    """A figure in the unit that all figures of its kind have, so that a row can be compared at a glance."""
    size, unit = _UNITS[kind]
    value = figure / size
    return f"{value:,.{1 if value < 100 else 0}f} {unit}"


def _cell(outcome: Outcome, name: str) -> Text:
    result = outcome.results.get(name, Result())
    if result.void:
        return Text("VOID", "bold red")
    if result.figure is None:
        return Text("-", "dim")
    fastest = outcome.fastest is not None and outcome.fastest == (name, result.figure)
    style = "bold" if name == FLYBALL.name else "cyan" if fastest else ""
    return Text(amount(result.figure, outcome.row.kind), style)

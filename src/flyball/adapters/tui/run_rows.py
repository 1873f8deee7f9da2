"""Rows of the list of runs: who, how it stands, since when, what it used, what was asked."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from flyball.adapters.tui.lines import Line, Look, stage_look
from flyball.adapters.tui.wrapping import fitted, words
from flyball.orchestrate.projections.shortened import short
from flyball.orchestrate.projections.summary import LoopSummary

_COLUMNS = (("agent", 14), ("stage", 18), ("age", 8), ("turns", 6), ("tokens", 15), ("cost", 13), ("run", 13))
_LEFT_OUT = ("run", "cost", "tokens", "turns")
"""What is left out where room is short, in this order."""
_LEAST = 28
"""Cells that are left for what was asked, as long as something can be left out."""
_NARROW = 56
"""Cells below which there is room for the two most important columns alone, and for the beginning of them."""


def columns(width: int) -> dict[str, int]:
    """The columns that there is room for, with their widths; what was asked has the rest."""
    shown = dict(_COLUMNS)
    if width < _NARROW:
        shown = {"agent": 10, "stage": 12}
    for name in _LEFT_OUT:
        if width - sum(shown.values()) >= _LEAST:
            break
        shown.pop(name, None)
    shown["asked"] = max(width - sum(shown.values()), 8)
    return shown


def heading(width: int) -> str:
    """The names of the columns, as wide as they are."""
    return "".join([fitted(name, wide) for name, wide in columns(width).items()])


class RunRow(Struct, frozen=True):
    """One run."""

    key: str
    run: LoopSummary
    now: float

    @property
    def is_short(self) -> bool:
        """Always a line."""
        return True

    def lines(self, width: int, opened: int) -> Sequence[Line]:
        """The run in a line."""
        del opened
        run = self.run
        looks: dict[str, Look] = {"agent": "strong", "stage": stage_look(run.stage), "asked": "plain"}
        cells = {
            "agent": words(run.agent, 60),
            "stage": words(run.stage or "unreadable", 40),
            "age": age(self.now - run.started_at) if run.started_at else "",
            "turns": str(run.turns),
            "tokens": tokens_of(run),
            "cost": cost_of(run),
            "run": short(run.loop_id),
            "asked": words(run.prompt, 300),
        }
        return [
            tuple(
                [
                    (fitted(words(cells[name], 300), wide - 1) + " ", looks.get(name, "dim"))
                    for name, wide in columns(width).items()
                ]
            )
        ]

    def next(self, opened: int) -> int | None:
        """There is nothing to unfold: it is opened as a whole."""
        del opened


def tokens_of(run: LoopSummary) -> str:
    """What went in and came out."""
    usage = run.usage
    return f"{usage.input_tokens:,} → {usage.output_tokens:,}" if usage.total_tokens else ""


def cost_of(run: LoopSummary) -> str:
    """What it cost, as far as that is known."""
    if run.cost is None:
        return ""
    return "cost unknown" if run.cost.total is None else f"{run.cost:.4f} {run.cost.currency}"


def age(seconds: float) -> str:
    """How long ago, in the shortest way: at most 8 cells."""
    seconds = min(seconds, 999_999 * 86400.0)  # a clock was wrong
    for size, name in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:.0f} {name}"
    return f"{max(seconds, 0):.0f} s"

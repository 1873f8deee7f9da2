"""Rows of a run's course: a line a step, with when it began, how long it took, its tokens, and a bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf

from msgspec import Struct
from rich.cells import cell_len

from flyball.adapters.tui.lines import Line, Look
from flyball.adapters.tui.rows import CallRow, seconds
from flyball.adapters.tui.wrapping import fitted, words
from flyball.core.phases import Phase
from flyball.orchestrate.projections.course import CourseStep, StepKind

_BAR = 20
_WIDE = 70
"""From here on there is room for bars."""
_NARROW = 46
"""From here on there is room for when a step began."""
_MARKS: dict[StepKind, tuple[str, Look]] = {
    StepKind.MODEL_CALL: ("◆", "model"),
    StepKind.TOOL_CALL: ("▸", "tool"),
    StepKind.FLOW_STEP: ("◇", "tool"),
    StepKind.WAIT: ("⧗", "warn"),
    StepKind.NOT_RUN: ("▹", "bad"),
    StepKind.CHECK: ("↺", "warn"),
    StepKind.SIGNAL: ("⚑", "warn"),
    StepKind.CHILD: ("⇣", "dim"),
    StepKind.CHILD_ENDED: ("⇡", "dim"),
    StepKind.RESUMED: ("↻", "warn"),
    StepKind.RETRIED: ("↻", "warn"),
    StepKind.FORKED: ("⑂", "warn"),
    StepKind.END: ("■", "warn"),
}
_CALLS = (StepKind.TOOL_CALL, StepKind.NOT_RUN)
_ENDS: dict[Phase, tuple[str, Look]] = {
    Phase.COMPLETE: ("✔", "good"),
    Phase.ERROR: ("✘", "bad"),
    Phase.CANCELLED: ("■", "warn"),
}


class Frame(Struct, frozen=True):
    """The time that the bars are drawn in: when all began, and how many seconds there are to be seen."""

    began: float
    whole: float
    now: float
    what: int = 18
    """Cells that the names of the steps have."""
    tokens: int = 0
    """Cells that the tokens have."""


class StepRow(Struct, frozen=True):
    """One step. `call` is what is known of a tool call: its arguments and its result."""

    key: str
    step: CourseStep
    frame: Frame
    call: CallRow | None = None

    @property
    def is_short(self) -> bool:
        """A line, until it is unfolded."""
        return True

    def lines(self, width: int, opened: int) -> Sequence[Line]:
        """The step in a line; a tool call unfolded, with all about it."""
        step, (mark, look) = self.step, _mark(self.step)
        took, bar = self._took, self._bar if width >= _WIDE else ()
        begin = f" {fitted(f'+{seconds(step.at - self.frame.began)}', 9)}" if width >= _NARROW else " "
        end = f" {took:>8} {_tokens(step):>{self.frame.tokens}} " if width >= _WIDE else f" {took:>8}"
        what = f"{fitted(words(step.what, 60), min(self.frame.what, 24 if width >= _WIDE else 16))} "
        room = width - 2 - sum([cell_len(text) for text in (begin, what, end, *[text for text, _ in bar])])
        head: Line = (
            (begin, "dim"),
            (f"{mark} ", look),
            (what, "strong" if step.kind.takes_time else look),
            (fitted(words(step.about, max(room, 1)), max(room, 0)), "dim"),
            (end, "plain"),
            *bar,
        )
        return [head] if not opened or self.call is None else [head, *self.call.about(width, opened)]

    def next(self, opened: int) -> int | None:
        """A tool call unfolds; what else there is to a step is elsewhere."""
        return None if self.call is None else self.call.next(opened)

    @property
    def _is_running(self) -> bool:
        return self.step.took is None and self.step.ok is None

    @property
    def _seconds(self) -> float:
        step = self.step
        return max(0.0, self.frame.now - step.at) if self._is_running else step.took or 0.0

    @property
    def _took(self) -> str:
        if not self.step.kind.takes_time or (self.step.took is None and not self._is_running):
            return ""
        return seconds(self._seconds) + ("…" if self._is_running else "")

    @property
    def _bar(self) -> Line:
        """Where in the whole the step lies; that of a step under way grows."""
        step, whole = self.step, self.frame.whole
        if not step.kind.takes_time or not 0 < whole < inf:
            return ((" " * _BAR, "dim"),)
        first = min(round(_share(step.at - self.frame.began, whole) * _BAR), _BAR - 1)
        length = min(max(round(_share(self._seconds, whole) * _BAR), 1), _BAR - first)
        look = _mark(step)[1]
        return (
            ("·" * first, "dim"),
            (("╍" if self._is_running else "━") * length, look),
            ("·" * (_BAR - first - length), "dim"),
        )


def _share(part: float, whole: float) -> float:
    return max(0.0, min(part / whole, 1.0))


def _tokens(step: CourseStep) -> str:
    usage = step.usage
    return f"{usage.input_tokens} → {usage.output_tokens}" if usage and usage.total_tokens else ""


def _cells(what: str) -> int:
    """The cells that the name of a step has, or a few more."""
    return len(what) if what.isascii() else cell_len(words(what, 60))


def _mark(step: CourseStep) -> tuple[str, Look]:
    if step.phase is not None:
        return _ENDS[step.phase]
    mark, look = _MARKS[step.kind]
    return (mark, "bad") if step.kind.takes_time and step.ended and step.ok is False else (mark, look)


def step_rows(
    steps: Sequence[CourseStep], now: float, call: Callable[[str], CallRow | None]
) -> list[StepRow]:
    """The rows of a course. `now` is what the steps under way have lasted until; `call` finds tool calls."""
    if not steps:
        return []
    began = min([step.at for step in steps])
    ends = [step.at + (step.took or 0.0) for step in steps]
    if any(step.took is None and step.ok is None for step in steps):
        ends.append(now)
    what = max([_cells(step.what) for step in steps])
    frame = Frame(began, max(ends) - began, now, what, max([len(_tokens(step)) for step in steps]))
    return [
        StepRow(f"s{number}", step, frame, call(step.call_id) if step.kind in _CALLS else None)
        for number, step in enumerate(steps)
    ]

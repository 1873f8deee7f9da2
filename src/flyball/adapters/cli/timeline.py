"""A run's course, drawn: a line a step, with when it began, how long it took, its tokens, and a bar.

    print_timeline(events)                  on the terminal
    timeline_view(events)                   as something that rich can print anywhere

Both take a loop's events, such as `await result.events()` gives them, and read nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from flyball.adapters.cli.naming import short
from flyball.adapters.cli.origin import agent_and_model
from flyball.adapters.cli.screen import one_line, out, plain
from flyball.core.events import Event, Stage
from flyball.core.phases import Phase
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections.cost import cost_of
from flyball.orchestrate.projections.course import CourseStep, StepKind, course
from flyball.orchestrate.projections.summary import said_first
from flyball.orchestrate.provenance import provenance_of
from flyball.orchestrate.standing import DEFERRED, INTERRUPTED, standing
from flyball.orchestrate.state import State

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
    from rich.text import Text

_BAR = 20
_JUSTIFY: tuple[JustifyMethod, ...] = ("right", "left", "left", "left", "right", "right", "left")
_ABOUT = 3
_LEFT_OUT = (6, 5, 0)
"""What is left out where room is short, in this order: the bar, the tokens, when it began."""
_LEAST = 16
"""How wide the words about a step are at least, as long as something else can be left out."""
_ENDS = {
    Phase.COMPLETE: ("✔", "bold green"),
    Phase.ERROR: ("✘", "bold red"),
    Phase.CANCELLED: ("■", "bold yellow"),
}
_MARKS = {
    StepKind.MODEL_CALL: ("◆", "magenta"),
    StepKind.TOOL_CALL: ("▸", "blue"),
    StepKind.FLOW_STEP: ("⧗", "yellow"),
    StepKind.WAIT: ("⧗", "yellow"),
    StepKind.NOT_RUN: ("▹", "red"),
    StepKind.CHECK: ("↺", "yellow"),
    StepKind.SIGNAL: ("⚑", "yellow"),
    StepKind.CHILD: ("⇣", "yellow"),
    StepKind.CHILD_ENDED: ("⇡", "yellow"),
    StepKind.RESUMED: ("↻", "yellow"),
    StepKind.RETRIED: ("↻", "yellow"),
    StepKind.FORKED: ("⑂", "yellow"),
    StepKind.END: ("■", "bold yellow"),
}
_STAGES: dict[str, str] = {
    DEFERRED: "yellow",
    INTERRUPTED: "yellow",
    Stage.COMPLETE: "green",
    Stage.FAILED: "red",
    Stage.CANCELLED: "yellow",
}


class Step(Struct, frozen=True):
    """One line: what happened, when, for how long (None: it is a moment), and what is to be said about it."""

    at: float
    mark: str
    style: str
    what: str
    about: str = ""
    took: float | None = None
    tokens: str = ""


def print_timeline(events: Sequence[Event], console: Console | None = None) -> None:
    """Draw a run's course.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    (console or out()).print(timeline_view(events))


def timeline_view(events: Sequence[Event]) -> RenderableType:
    """A run's course as something that rich can print.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    state = fold(events)
    return course_view(steps_of(events), state.started_at, lambda whole: _head(events, state, whole))


def course_view(steps: Sequence[Step], started_at: float, head: Callable[[float], Text]) -> RenderableType:
    """Steps as something that rich can print, under a head that is told how many seconds they took in all."""
    from rich.console import Group
    from rich.text import Text

    began = min([started_at, *[step.at for step in steps]])
    whole = max([step.at + (step.took or 0.0) for step in steps], default=began) - began
    rows = [
        (
            Text(f"+{seconds(step.at - began)}", style="dim"),
            Text(step.mark, style=step.style),
            Text(step.what, style=step.style if step.took is None else "bold"),
            Text(step.about, style="dim"),
            Text("" if step.took is None else seconds(step.took)),
            Text(step.tokens, style="cyan"),
            _bar(step, began, whole),
        )
        for step in steps
    ]
    return Group(head(whole), _Rows(rows))


class _Rows:
    """The steps as a table: what is about a step is cut, and in a narrow place whole columns are left out."""

    def __init__(self, rows: Sequence[Sequence[Text]]) -> None:
        self._rows = rows

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        from rich.table import Table

        widths = [
            max([row[column].cell_len for row in self._rows], default=0) for column in range(len(_JUSTIFY))
        ]
        shown = [column for column in range(len(_JUSTIFY)) if widths[column]]
        for column in _LEFT_OUT:
            taken = sum([widths[one] + 1 for one in shown if one != _ABOUT])
            if options.max_width - taken >= _LEAST and column in shown:
                break
            shown = [one for one in shown if one != column]
        table = Table.grid(padding=(0, 1), expand=True)
        for column in shown:
            if column == _ABOUT:
                table.add_column(overflow="ellipsis", no_wrap=True, ratio=1)
            else:
                table.add_column(justify=_JUSTIFY[column], no_wrap=True, width=widths[column])
        for row in self._rows:
            table.add_row(*[row[column] for column in shown])
        yield table


def steps_of(events: Sequence[Event]) -> list[Step]:
    """The steps of a run or of a flow, in the order of their beginning; calls under way are not drawn yet.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    return [drawn(step) for step in course(events) if step.ended or step.kind is StepKind.WAIT]


def drawn(step: CourseStep) -> Step:
    """A step as it is drawn."""
    usage = step.usage
    return Step(
        step.at,
        *_mark(step),
        one_line(step.what),
        one_line(step.about),
        step.took if step.ended and step.kind.takes_time else None,
        f"{usage.input_tokens} → {usage.output_tokens}" if usage is not None and usage.total_tokens else "",
    )


def _mark(step: CourseStep) -> tuple[str, str]:
    """The sign of a step, and its style."""
    if step.phase is not None:
        return _ENDS[step.phase]
    mark, style = _MARKS[step.kind]
    if step.kind is StepKind.FLOW_STEP and step.ended:
        mark, style = ("◆", "magenta") if step.loop_id else ("▸", "blue")
    return mark, "red" if step.kind.takes_time and step.ok is False and step.ended else style


def print_waits(waits: Sequence[str]) -> None:
    """The calls of runs under it that wait for somebody."""
    from rich.text import Text

    for one in waits:
        out().print(Text(f"⧗ {plain(one)}", style="yellow"), soft_wrap=True)


def print_identity(identity: dict[str, Any] | None) -> None:
    """As whom a run acts, and what it may do; nothing where it acts as nobody in particular."""
    if identity is None:
        return
    from rich.text import Text

    from flyball.core.claimed import claimed_capabilities, claimed_did

    may = ", ".join(claimed_capabilities(identity)) or "nothing"
    out().print(Text(plain(f"acts as {claimed_did(identity)}, who may: {may}"), style="dim"))


def _head(events: Sequence[Event], state: State, whole: float) -> Text:
    from rich.text import Text

    stage, usage = standing(events, state, provenance_of(events, state).process), state.usage
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(f"run {short(state.loop_id)}", style="bold cyan")
    head.append(f"  {stage}", style=_STAGES.get(stage, "cyan"))
    head.append(f"  {one_line(agent_and_model(events, state), 300)}", style="dim")
    tokens = f"{usage.input_tokens} → {usage.output_tokens} tokens, " if usage.total_tokens else ""
    speed = f", {usage.tokens_per_second:.0f} tokens/s" if usage.tokens_per_second else ""
    cost = cost_of(events, state)
    paid = "" if cost is None else ", cost unknown" if cost.total is None else f", {cost}"
    head.append(f"  {tokens}{seconds(whole)}{speed}{paid}\n", style="dim")
    head.append("> ", style="bold green")
    head.append(f"{one_line(said_first(state), 300)}\n")
    return head


def _bar(step: Step, began: float, whole: float) -> Text:
    """Where in the whole the step lies."""
    from rich.text import Text

    if step.took is None or whole <= 0:
        return Text("")
    first = min(round((step.at - began) / whole * _BAR), _BAR - 1)
    length = max(round(step.took / whole * _BAR), 1)
    length = min(length, _BAR - first)
    bar = Text("·" * first, style="dim")
    bar.append("━" * length, style=step.style)
    bar.append("·" * (_BAR - first - length), style="dim")
    return bar


def seconds(took: float) -> str:
    """A length of time, in the shortest way that is clear."""
    took = max(took, 0.0)
    if took < 0.0995:
        return f"{took * 1000:.0f} ms"
    return f"{took:.2f} s" if took < 100 else f"{took:.0f} s"

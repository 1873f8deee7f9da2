"""A run's course, drawn: a line a step, with when it began, how long it took, its tokens, and a bar.

    print_timeline(events)                  on the terminal
    timeline_view(events)                   as something that rich can print anywhere

Both take a loop's events, such as `await result.events()` gives them, and read nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, assert_never

from msgspec import Struct

from flyball.adapters.cli.costing import cost_of
from flyball.adapters.cli.naming import short
from flyball.adapters.cli.origin import agent_and_model, origin_of, said_first
from flyball.adapters.cli.screen import one_line, out
from flyball.adapters.cli.standing import DEFERRED, INTERRUPTED, standing
from flyball.core.encodable import as_text
from flyball.core.events import (
    ChildEnded,
    ChildStarted,
    Ended,
    Event,
    Forked,
    Reopened,
    Resumed,
    SignalReceived,
    Stage,
    ToolReturned,
)
from flyball.core.messages import ResultKind
from flyball.orchestrate.lifecycle import Phase
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import (
    InferenceEndEvent,
    InferenceStartEvent,
    LifecycleTransitionEvent,
    TimelineEvent,
    ToolCallRecord,
    ToolEndEvent,
    ToolStartEvent,
    timeline,
    tool_calls_made,
)
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


_Beside: TypeAlias = Resumed | Reopened | Forked | SignalReceived | ChildStarted | ChildEnded
"""What is drawn beside the timeline's own events."""
_Told: TypeAlias = "TimelineEvent | _Beside"


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
    """The steps of a run, in the order of their beginning."""
    records = {(record.turn, record.call_id): record for record in tool_calls_made(events)}
    by_call = {call_id: record for (_, call_id), record in records.items()}
    begun: dict[str, InferenceStartEvent | ToolStartEvent] = {}
    steps: list[Step] = []
    others = [event for event in events if isinstance(event, _Beside)]
    outside = {event.result.call_id for event in events if _is_deferred(event)}
    told: list[_Told] = sorted([*timeline(events), *others], key=lambda event: event.at)
    calls = 0
    for event in told:
        if isinstance(event, InferenceStartEvent | ToolStartEvent):
            begun[event.correlation.span_id] = event
        elif isinstance(event, InferenceEndEvent):
            calls += 1
            start = begun.pop(event.correlation.span_id)
            assert isinstance(start, InferenceStartEvent)
            steps.append(_inference(start, event, calls))
        elif isinstance(event, ToolEndEvent):
            start = begun.pop(event.correlation.span_id)
            took = event.duration_ms / 1000
            if event.tool_call_id in outside:
                took = event.at - start.at
            steps.append(_tool(_since(start, event, took), took, event, by_call.get(event.tool_call_id)))
        elif (moment := _moment(event)) is not None:
            steps.append(moment)
    over = isinstance(events[-1], Ended)
    steps += [
        _deferred(start, by_call.get(start.tool_call_id), over=over)
        for start in begun.values()
        if isinstance(start, ToolStartEvent) and start.tool_call_id in outside
    ]
    return sorted(steps, key=lambda step: step.at + (1e-9 if step.took is None else 0))


def _is_deferred(event: Event) -> TypeGuard[ToolReturned]:
    """Whether an event says that a call's result will come from outside."""
    return isinstance(event, ToolReturned) and event.result.status is ResultKind.DEFERRED


def _since(
    start: InferenceStartEvent | ToolStartEvent, end: InferenceEndEvent | ToolEndEvent, took: float
) -> float:
    """When a call really began: it was owed from its start on, and may have waited to be made."""
    return max(start.at, end.at - took)


def _inference(start: InferenceStartEvent, end: InferenceEndEvent, number: int) -> Step:
    sent = f"{start.message_count} message{'s' if start.message_count != 1 else ''}"
    if start.tool_defs_count:
        sent += f", {start.tool_defs_count} tool{'s' if start.tool_defs_count != 1 else ''}"
    sent += ", schema" if start.schema_present else ""
    sent += ", grammar" if start.grammar_present else ""
    came = {"stop": "answer", "tool": f"{end.tool_call_count} tool call", "error": "failed"}[
        end.finish_reason
    ]
    plural = "s" if end.finish_reason == "tool" and end.tool_call_count != 1 else ""
    style = "red" if end.finish_reason == "error" else "magenta"
    tokens = f"{end.tokens_in} → {end.tokens_out}" if end.tokens_in or end.tokens_out else ""
    took = end.duration_ms / 1000
    return Step(
        _since(start, end, took),
        "◆",
        style,
        f"model call {number}",
        f"{_purpose(start)}{sent} → {came}{plural}",
        took,
        tokens,
    )


def _purpose(start: InferenceStartEvent) -> str:
    """What a model call is made for, if not for a turn: the request's id tells."""
    return "summary: " if start.correlation.model_request_id.split("/")[-2:-1] == ["compact"] else ""


def _tool(at: float, took: float, end: ToolEndEvent, record: ToolCallRecord | None) -> Step:
    about = ""
    if record is not None:
        came = record.error if record.error is not None else as_text(record.result)
        about = f"{one_line(as_text(record.arguments), 60)} → {one_line(came, 60)}"
    style = "blue" if end.success else "red"
    return Step(at, "▸", style, end.tool_name, about, took)


def _deferred(start: ToolStartEvent, record: ToolCallRecord | None, *, over: bool) -> Step:
    """A call that has begun, and whose result has not come."""
    called = "" if record is None else f"{one_line(as_text(record.arguments), 60)} → "
    came = (
        "its result never came" if over else f"waits for its result from outside: call {start.tool_call_id}"
    )
    return Step(start.at, "⧗", "yellow", start.tool_name, f"{called}{came}")


def _moment(event: LifecycleTransitionEvent | _Beside) -> Step | None:
    if isinstance(event, Resumed):
        return Step(event.at, "↻", "yellow", "resumed", "another process went on")
    if isinstance(event, Reopened):
        return Step(event.at, "↻", "yellow", "tried again", event.by and f"by {event.by}")
    if isinstance(event, Forked):
        return Step(event.at, "⑂", "yellow", "forked", f"from {short(event.source)} after turn {event.turn}")
    if isinstance(event, ChildStarted):
        return Step(event.at, "⇣", "yellow", "child", f"{event.agent} as {event.loop_id}")
    if isinstance(event, ChildEnded):
        return Step(event.at, "⇡", "yellow", "child over", f"{event.loop_id}: {event.requests} model calls")
    if isinstance(event, SignalReceived):
        signal = event.signal
        about = " ".join(
            [text for text in (signal.by and f"by {signal.by}", one_line(signal.text, 100)) if text]
        )
        return Step(event.at, "⚑", "yellow", str(signal.type), about)
    if isinstance(event, LifecycleTransitionEvent):  # pyright: ignore[reportUnnecessaryIsInstance] - it closes the union
        if event.to_state in _ENDS:
            mark, style = _ENDS[event.to_state]
            return Step(event.at, mark, style, str(event.to_state), one_line(event.reason, 200))
        if event.reason.startswith("retry"):
            return Step(
                event.at, "↺", "yellow", "asked again", one_line(event.reason.removeprefix("retry: "), 200)
            )
        return None
    assert_never(event)


def _head(events: Sequence[Event], state: State, whole: float) -> Text:
    from rich.text import Text

    stage, usage = standing(events, state, origin_of(events, state).process), state.usage
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

"""A flow's course, drawn and explained: a line a step, and where to look further."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from flyball.adapters.cli.naming import short
from flyball.adapters.cli.screen import one_line, out, plain, write_json
from flyball.adapters.cli.timeline import Step, course_view, seconds
from flyball.core.encodable import as_text
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import Event, Outcome, Reopened, Resumed, SignalReceived, StepEnded
from flyball.core.flow import node_at
from flyball.core.usage import RunUsage
from flyball.orchestrate.contracts.asked import asked_in
from flyball.orchestrate.flow_loops import step_loop
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.machines import stage

if TYPE_CHECKING:
    from rich.text import Text

_ENDS = {
    Outcome.SUCCESS: ("✔", "bold green", "complete"),
    Outcome.FAILED: ("✘", "bold red", "failed"),
    Outcome.CANCELLED: ("■", "bold yellow", "cancelled"),
}


class FlowStep(Struct, frozen=True):
    """A step of a flow, as it is told: one that has ended, or (`open`) one that is owed."""

    path: str
    name: str
    kind: str
    at: float = 0.0
    duration: float = 0.0
    attempt: int = 1
    run: str = ""
    """The run that it was, or is to be."""
    output: Any = None
    error: SystemError | None = None
    usage: RunUsage = RunUsage()
    open: bool = False


class Told(Struct, frozen=True):
    """A flow, as it is told to programs."""

    run: str
    flow: str
    stage: str
    verdict: str
    input: Any
    output: Any
    usage: RunUsage
    steps: tuple[FlowStep, ...]
    error: SystemError | None = None
    next: tuple[str, ...] = ()


def show_flow(events: Sequence[Event], state: FlowState, *, as_json: bool) -> int:
    """Draw a flow's course."""
    if as_json:
        write_json(to_builtins(told(events, state)))
        return 0
    from rich.text import Text

    out().print(course_view(_lines(events, state), state.started_at, lambda whole: _head(state, whole)))
    if state.error is not None:
        out().print(Text(f"\n{state.error.code}: {plain(state.error.message)}", style="red"), soft_wrap=True)
    elif state.outcome is Outcome.SUCCESS:
        out().print(Text(f"\n{plain(as_text(state.output))}"), soft_wrap=True)
    return 0


def why_flow(events: Sequence[Event], state: FlowState, *, as_json: bool) -> int:
    """Explain a flow: how each step ended, and what may be looked at or done next."""
    show_flow(events, state, as_json=as_json)
    if not as_json:
        from rich.text import Text

        explained = told(events, state)
        out().print(Text(f"\n{plain(explained.verdict)}", style="bold"), soft_wrap=True)
        for command in explained.next:
            out().print(Text(f"  {command}", style="cyan"), soft_wrap=True)
    return 0


def told(events: Sequence[Event], state: FlowState) -> Told:
    """A flow in words and numbers."""
    steps = _steps(events, state)
    wanted = [
        step.run for step in steps if step.run in state.children and (step.error is not None or step.open)
    ]
    return Told(
        state.loop_id,
        state.flow.name,
        str(stage(state)),
        _verdict(state),
        state.input,
        state.output,
        state.usage,
        tuple(steps),
        state.error,
        tuple([f"flyball why {loop_id}" for loop_id in wanted or state.children[-1:]]),
    )


def _verdict(state: FlowState) -> str:
    if state.outcome is Outcome.SUCCESS:
        return "It has its output: all of its steps that were to be run have ended."
    if state.error is not None:
        return f"It ended by {state.error.code} ({state.error.category}): {state.error.message}"
    if state.paused:
        return "It is paused: a signal asked for that."
    names = ", ".join([f"{node_at(state.flow, path).name} ({path})" for path in state.ready])
    return f"It is not over: nothing is recorded of {names}. It goes on when the flow is run again by its id."


def _steps(events: Sequence[Event], state: FlowState) -> list[FlowStep]:
    steps: list[FlowStep] = []
    for event in events:
        if isinstance(event, StepEnded):
            node = node_at(state.flow, event.path)
            steps.append(
                FlowStep(
                    event.path,
                    node.name,
                    node.kind,
                    event.at - event.duration,
                    event.duration,
                    event.attempt,
                    event.loop_id,
                    event.output,
                    event.error,
                    event.usage or RunUsage(),
                )
            )
    if state.at == "run":
        for leaf in state.ready.values():
            node, run = node_at(state.flow, leaf.path), step_loop(state.loop_id, leaf.path, leaf.attempt)
            begun = run if run in state.children else ""
            steps.append(
                FlowStep(leaf.path, node.name, node.kind, attempt=leaf.attempt, run=begun, open=True)
            )
    return steps


def _lines(events: Sequence[Event], state: FlowState) -> list[Step]:
    last = events[-1].at
    lines = [_line(step, last) for step in _steps(events, state)]
    for event in events:
        if isinstance(event, Resumed):
            lines.append(Step(event.at, "↻", "yellow", "resumed", "another process went on"))
        elif isinstance(event, Reopened):
            lines.append(Step(event.at, "↻", "yellow", "tried again", event.by and f"by {event.by}"))
        elif isinstance(event, SignalReceived):
            by = f"by {event.signal.by}" if event.signal.by else ""
            lines.append(Step(event.at, "⚑", "yellow", str(event.signal.type), by))
    if state.at == "done" and state.outcome is not None:
        mark, style, word = _ENDS[state.outcome]
        lines.append(Step(last, mark, style, word))
    return sorted(lines, key=lambda line: line.at)


def _line(step: FlowStep, last: float) -> Step:
    what = f"{step.path} {one_line(step.name, 30)}" + (f" #{step.attempt}" if step.attempt > 1 else "")
    if step.open:
        return Step(
            last, "⧗", "yellow", what, f"not over{f', as {one_line(step.run, 80)}' if step.run else ''}"
        )
    usage, error = step.usage, step.error
    came = (
        one_line(as_text(step.output), 80)
        if error is None
        else f"{error.code}: {one_line(error.message, 80)}"
    )
    run = f"  [{one_line(step.run, 80)}]" if step.run else ""
    mark, style = ("◆", "magenta") if step.run else ("▸", "blue")
    tokens = f"{usage.input_tokens} → {usage.output_tokens}" if usage.total_tokens else ""
    return Step(step.at, mark, style if error is None else "red", what, f"{came}{run}", step.duration, tokens)


def _head(state: FlowState, whole: float) -> Text:
    from rich.text import Text

    usage, where = state.usage, str(stage(state))
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(f"flow {short(state.loop_id)}", style="bold cyan")
    head.append(f"  {where}", style="cyan")
    tokens = f"{usage.input_tokens} → {usage.output_tokens} tokens, " if usage.total_tokens else ""
    head.append(f"  {one_line(state.flow.name, 100)}  {tokens}{seconds(whole)}\n", style="dim")
    head.append("> ", style="bold green")
    head.append(f"{one_line(asked_in(state.input), 300)}\n")
    return head

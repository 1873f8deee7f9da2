"""A flow's course, drawn and explained: a line a step, and where to look further."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from flyball.adapters.cli.naming import short
from flyball.adapters.cli.next_commands import commands
from flyball.adapters.cli.screen import one_line, out, plain, write_json
from flyball.adapters.cli.timeline import Step, course_view, drawn, print_identity, print_waits, seconds
from flyball.core.encodable import as_text
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import Event, Stage
from flyball.core.usage import RunUsage
from flyball.orchestrate.flow_machine import fold
from flyball.orchestrate.projections.course import CourseStep, StepKind, course
from flyball.orchestrate.projections.explanation import Explanation, FlowStep, FlowTold
from flyball.orchestrate.projections.summary import said_first

if TYPE_CHECKING:
    from rich.text import Text


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


def show_flow(events: Sequence[Event], told: Explanation, waits: Sequence[str], *, as_json: bool) -> int:
    """Draw a flow's course."""
    flow = told.flow
    assert flow is not None, "it is a flow's explanation"
    if as_json:
        write_json(to_builtins(_document(told, flow)))
        return 0
    from rich.text import Text

    state = fold(events)
    prompt = said_first(state)
    out().print(course_view(_lines(events), events[0].at, lambda whole: _head(told, flow, prompt, whole)))
    print_identity(state.identity)
    print_waits(waits)
    if told.error is not None:
        out().print(Text(f"\n{told.error.code}: {plain(told.error.message)}", style="red"), soft_wrap=True)
    elif told.stage == Stage.COMPLETE:
        out().print(Text(f"\n{plain(as_text(flow.output))}"), soft_wrap=True)
    return 0


def why_flow(events: Sequence[Event], told: Explanation, waits: Sequence[str], *, as_json: bool) -> int:
    """Explain a flow: how each step ended, and what may be looked at or done next."""
    show_flow(events, told, waits, as_json=as_json)
    if not as_json:
        from rich.text import Text

        out().print(Text(f"\n{plain(told.verdict)}", style="bold"), soft_wrap=True)
        for one in commands(told):
            out().print(Text(f"  {one.command}", style="cyan"), soft_wrap=True)
    return 0


def _document(told: Explanation, flow: FlowTold) -> Told:
    return Told(
        told.run,
        told.agent,
        told.stage,
        told.verdict,
        flow.input,
        flow.output,
        flow.usage,
        flow.steps,
        told.error,
        tuple([one.command for one in commands(told)]),
    )


def _lines(events: Sequence[Event]) -> list[Step]:
    """The steps, each with its run; those that are open stand at the end, where they are looked for."""
    last = events[-1].at
    steps = [step for step in course(events) if step.ended or step.took is None]
    lines = [drawn(_with_its_run(step) if step.ended else _open(step, last)) for step in steps]
    return sorted(lines, key=lambda line: line.at)


def _with_its_run(step: CourseStep) -> CourseStep:
    if step.kind is not StepKind.FLOW_STEP or not step.loop_id:
        return step
    return replace(step, about=f"{step.about}  [{one_line(step.loop_id, 80)}]")


def _open(step: CourseStep, last: float) -> CourseStep:
    run = f", as {one_line(step.loop_id, 80)}" if step.loop_id else ""
    return replace(step, at=last, about=f"{step.about}{run}")


def _head(told: Explanation, flow: FlowTold, prompt: str, whole: float) -> Text:
    from rich.text import Text

    usage = flow.usage
    head = Text(no_wrap=True, overflow="ellipsis")
    head.append(f"flow {short(told.run)}", style="bold cyan")
    head.append(f"  {told.stage}", style="cyan")
    tokens = f"{usage.input_tokens} → {usage.output_tokens} tokens, " if usage.total_tokens else ""
    head.append(f"  {one_line(told.agent, 100)}  {tokens}{seconds(whole)}\n", style="dim")
    head.append("> ", style="bold green")
    head.append(f"{one_line(prompt, 300)}\n")
    return head

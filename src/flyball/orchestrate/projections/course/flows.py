"""The course of a flow: its steps, those that are owed too, and what was said to it."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.encodable import as_text
from flyball.core.events import Ended, Event, Outcome, StepEnded
from flyball.observe.events import StepEndedEvent, StepStartedEvent
from flyball.orchestrate.flow_loops import step_loop
from flyball.orchestrate.projections.course.step import ENDS, CourseStep, StepKind, ordered, said_to_it
from flyball.orchestrate.projections.flow_events import FlowNarrator
from flyball.orchestrate.projections.shortened import one_line

_SHOWN = 80


def flow_course(events: Sequence[Event]) -> tuple[CourseStep, ...]:
    """The steps of a flow; see `course`."""
    narrator = FlowNarrator()
    begun: dict[tuple[str, int], StepStartedEvent] = {}
    steps: list[CourseStep] = []
    beside: list[CourseStep] = []
    for before, event in zip((None, *events), events, strict=False):
        for told in narrator.told(event):
            if isinstance(told, StepStartedEvent):
                begun[told.path, told.attempt] = told
            elif isinstance(told, StepEndedEvent) and isinstance(event, StepEnded):
                begun.pop((told.path, told.attempt), None)
                steps.append(_step(told, event))
        state = narrator.state
        assert state is not None, "an event was folded"
        if isinstance(event, Ended):
            steps += [_open(one, state.loop_id, state.children, event.at) for one in begun.values()]
            begun.clear()
            phase = ENDS[event.outcome]
            ok = event.outcome is Outcome.SUCCESS
            beside.append(CourseStep(event.at, StepKind.END, _WORDS[event.outcome], ok=ok, phase=phase))
        elif (step := said_to_it(event, before)) is not None:
            beside.append(step)
    if (state := narrator.state) is not None:
        owed = {(leaf.path, leaf.attempt) for leaf in state.ready.values()} if state.at == "run" else ()
        steps += [
            # What nobody waits for any more has no end; when it was dropped is not recorded either.
            _open(one, state.loop_id, state.children, None if key in owed else events[-1].at)
            for key, one in begun.items()
        ]
    return ordered([*steps, *beside])


_WORDS = {Outcome.SUCCESS: "complete", Outcome.FAILED: "failed", Outcome.CANCELLED: "cancelled"}


def _step(told: StepEndedEvent, event: StepEnded) -> CourseStep:
    error = event.error
    came = (
        one_line(as_text(event.output), _SHOWN)
        if error is None
        else f"{error.code}: {one_line(error.message, _SHOWN)}"
    )
    return CourseStep(
        event.at - event.duration,
        StepKind.FLOW_STEP,
        _what(told),
        came,
        event.duration,
        error is None,
        usage=event.usage,
        path=told.path,
        loop_id=event.loop_id,
    )


def _open(one: StepStartedEvent, loop_id: str, children: Sequence[str], over: float | None) -> CourseStep:
    """A step that is owed, or was when the flow was over."""
    run = step_loop(loop_id, one.path, one.attempt)
    return CourseStep(
        one.at,
        StepKind.FLOW_STEP,
        _what(one),
        "not over" if over is None else "cut off",
        None if over is None else max(over - one.at, 0.0),
        None if over is None else False,
        ended=False,
        path=one.path,
        loop_id=run if run in children else "",
    )


def _what(told: StepStartedEvent | StepEndedEvent) -> str:
    again = f" #{told.attempt}" if told.attempt > 1 else ""
    return f"{told.path} {one_line(told.name, 30)}{again}"

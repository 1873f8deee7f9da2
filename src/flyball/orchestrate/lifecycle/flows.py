"""The course of a flow through the lifecycle, from its journal: plans, votes, answers in two phases.

- `plan` until a planner has given the plan, in whichever mode; one that came with the request is a phase,
  too, and over at once.
- `execute` while steps are run; a step that is tried again goes by `validate`, where it was found wanting.
- `validate` while is voted, or a plan's output is held to a contract, and when the last step has given what
  the flow gives; a chat that is a flow, for the sake of its plan, is checked in its loop, if at all.
A flow that is none of pagantic's patterns executes from its beginning on, until it is over.
What the loops under a flow go through is in their own journals.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from msgspec import ValidationError, convert
from msgspec.structs import replace

from flyball.core.encodable import as_text
from flyball.core.errors import JournalCorrupt
from flyball.core.events import Event, FlowStarted, Outcome, Reopened, StepEnded
from flyball.core.flow import PIPELINE, PLANNED, PLANNER, FlowNode, node_at, replicas_at
from flyball.orchestrate.flow_machine import start, take
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.lifecycle.course import Transition, reopened
from flyball.orchestrate.lifecycle.phases import RETRY, Mode, Phase
from flyball.orchestrate.lifecycle.standing import ENDED
from flyball.rerank.candidate import Candidate


def flow_mode(flow: FlowNode) -> Mode | None:
    """Which of pagantic's modes a flow is, as is written down with it; None for any other flow."""
    mode = (flow.note or {}).get("mode")
    return None if mode is None else Mode(mode)


def pattern_note(mode: Mode, tools: Sequence[str] = ()) -> dict[str, Any]:
    """What is written down with a flow that is one of pagantic's patterns."""
    return {"mode": str(mode), "tools": list(tools)} if tools else {"mode": str(mode)}


def flow_tools(flow: FlowNode) -> tuple[str, ...]:
    """The names of the tools that a flow may use, as far as they are written down with it."""
    return tuple((flow.note or {}).get("tools", ()))


def without_tools(flow: FlowNode) -> FlowNode:
    """A flow as what it is made of: which tools there are does not make it another."""
    steps = tuple([without_tools(step) for step in flow.steps])
    mode = flow_mode(flow)
    return replace(flow, steps=steps, note=flow.note if mode is None else {**(flow.note or {}), "tools": []})


def makes_plan(flow: FlowNode, path: str) -> bool:
    """Whether a step is the one that makes a plan: which is then part of the flow, or what others go by."""
    above, _, part = path.rpartition(".")
    if part == "0" and node_at(flow, above).kind == PLANNED:
        return True
    # In mode plan it is a step like any other, whose type somebody has called so.
    return path == "0" and flow_mode(flow) not in (None, Mode.PLAN) and flow.steps[0].kind == PLANNER


def holds_output(flow: FlowNode, path: str) -> bool:
    """Whether a step is the one that holds what a plan has given to what the request wants."""
    # It stands beside the plan; what stands beside the steps of one is a step itself.
    return path == "1" and flow_mode(flow) is Mode.PLAN and flow.steps[0].kind in (PIPELINE, PLANNED)


class FlowCourse:
    """The way of one flow through its phases, told event by event what happens."""

    __slots__ = ("attempt", "phase")

    def __init__(self) -> None:
        self.phase = Phase.INIT
        self.attempt = 1

    def moves(self, event: Event, state: FlowState) -> list[Transition]:
        """The transitions that an event brings, which led to this state."""
        made: list[Transition] = []
        if isinstance(event, Reopened):
            self.attempt += 1
            made.append(Transition(self.phase, Phase.INIT, event.at, self.attempt, reopened(event)))
            self.phase = Phase.INIT
        for following, reason in _way(self.phase, state, event):
            if (self.phase, following) == RETRY:
                self.attempt += 1
            made.append(Transition(self.phase, following, event.at, self.attempt, reason))
            self.phase = following
        return made


def flow_course(events: Iterable[Event]) -> Iterator[tuple[list[Transition], Event, FlowState]]:
    """Each event with the transitions that it brought, and the state that it led to (see `course`).

    Raises:
        JournalCorrupt: the events are no flow's journal.
    """
    way = FlowCourse()
    state: FlowState | None = None
    for event in events:
        if state is None:
            if not isinstance(event, FlowStarted):
                raise JournalCorrupt(f"journal: begins with {type(event).__name__}, not with FlowStarted")
            state = start(event)
        elif not take(state, event):
            raise JournalCorrupt(f"journal: {type(event).__name__} does not fit at {state.at!r}")
        yield way.moves(event, state), event, state


def _way(phase: Phase, state: FlowState, event: Event) -> list[tuple[Phase, str]]:
    """The phases that an event leads through, and why."""
    now, mode = flow_phase(state), flow_mode(state.flow)
    if now in (Phase.ERROR, Phase.CANCELLED):
        return [] if phase is now else [(now, state.error.message if state.error else str(now))]
    way: list[tuple[Phase, str]] = []
    if phase is Phase.INIT and (mode is Mode.PLAN or now is Phase.PLAN):
        way.append((Phase.PLAN, "a plan is to be made" if now is Phase.PLAN else "the plan was given"))
    if phase in (Phase.INIT, Phase.PLAN) and now is not Phase.PLAN:
        why = "the plan was made" if phase is Phase.PLAN else "started"
        way += [(Phase.PREPARE, why), (Phase.EXECUTE, "prepared")]
    before = way[-1][0] if way else phase
    if mode is None:
        return [*way, *([] if now in (before, Phase.EXECUTE) else [(now, "its steps have ended")])]
    if _tries_again(state, event) and before is Phase.EXECUTE and now is Phase.EXECUTE:
        assert isinstance(event, StepEnded)
        assert event.error is not None
        why = f"step {node_at(state.flow, event.path).name!r}: {event.error.message}"
        return [*way, (Phase.VALIDATE, why), (Phase.EXECUTE, f"retry: {event.error.message}")]
    if now is Phase.VALIDATE and before is not Phase.VALIDATE:
        checked = (
            "the candidates are voted on" if mode is Mode.REDUNDANT else "the output is held to its schema"
        )
        way.append((Phase.VALIDATE, checked))
    if now is Phase.COMPLETE and before is not Phase.COMPLETE:
        if before is not Phase.VALIDATE and mode is not Mode.CHAT:
            way.append((Phase.VALIDATE, "the last step has given its output"))
        way.append((Phase.COMPLETE, "the output was accepted"))
    return way


def flow_phase(state: FlowState) -> Phase:
    """The phase that a flow is in."""
    flow = state.flow
    if state.at != "run":
        return ENDED[state.outcome or Outcome.FAILED][0]
    if any(makes_plan(flow, path) for path in state.ready):
        return Phase.PLAN
    replicas = replicas_at(flow) if flow_mode(flow) is Mode.REDUNDANT else None
    if replicas is not None and f"{replicas + 1}" in state.ready:
        return Phase.VALIDATE
    return Phase.VALIDATE if "1" in state.ready and holds_output(flow, "1") else Phase.EXECUTE


def _tries_again(state: FlowState, event: Event) -> bool:
    return isinstance(event, StepEnded) and event.error is not None and event.path in state.ready


def candidates_in(state: FlowState) -> tuple[Candidate, ...]:
    """What is to be chosen from, as it stands: the answers that are voted on, or what was found last."""
    if (asked := replicas_at(state.flow)) is not None:
        replicas = [(f"{asked}.{at}", node) for at, node in enumerate(state.flow.steps[asked].steps)]
        last = [(node.name, state.ended.get(f"{path}.{len(node.steps) - 1}")) for path, node in replicas]
        return tuple(
            [Candidate(as_text(one.output), source=name) for name, one in last if one and one.error is None]
        )
    for event in reversed(state.ended.values()):
        if event.error is None and (found := _found(event.output)):
            return found
    return ()


def _found(output: Any) -> tuple[Candidate, ...]:
    held: Any = cast("dict[str, Any]", output).get("candidates") if isinstance(output, dict) else output
    try:
        return convert(held, tuple[Candidate, ...]) if isinstance(held, list) and held else ()
    except ValidationError:
        return ()

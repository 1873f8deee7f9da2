"""The lifecycle: pagantic's eight phases of a request and SemStreams' ten stages of a loop, both derived.

Neither is journaled. The phase is a function of the state; the course of phases is that of a journal. Phases
have strict edges, stages are fluid; the terminal ones of both are final and come together:

    init -> [plan] -> prepare -> execute -> [validate] -> complete      phases in brackets may be left out
                                    ^            |
                                    └── retry ───┘                      the one way back: attempt + 1
    any of them -> error | cancelled

Where a loop stands in it:
- `init` until its input is admitted; `prepare` before its first model call; `execute` from there on: further
  turns, their preparation and all tool calls stay inside it;
- `validate` only while an answer is being checked, so not at all where nothing checks it;
- a terminal phase as soon as the outcome is decided: nothing can change it any more;
- only reopening (the signal `retry`, `REOPENING` below) leads out of an end, to another attempt.
A flow (a plan, a vote, an answer in two phases) has a course of its own, beside those of its loops: `flows`.
A loop that is paused or waits for approval does so inside `execute`, unless it had not come so far.
"""

from flyball.orchestrate.lifecycle.course import Transition
from flyball.orchestrate.lifecycle.execution import (
    ExecutionContext,
    ExecutionState,
    execution_context,
    execution_state,
    transitions,
)
from flyball.orchestrate.lifecycle.flows import FlowCourse
from flyball.orchestrate.lifecycle.phases import (
    EDGES,
    NOMINAL_STAGES,
    PATHS,
    REOPENING,
    RETRY,
    Mode,
    Path,
    Phase,
    check_edge,
    check_stage,
)
from flyball.orchestrate.lifecycle.standing import phase_of, stage_of

__all__ = [
    "EDGES",
    "NOMINAL_STAGES",
    "PATHS",
    "REOPENING",
    "RETRY",
    "ExecutionContext",
    "ExecutionState",
    "FlowCourse",
    "Mode",
    "Path",
    "Phase",
    "Transition",
    "check_edge",
    "check_stage",
    "execution_context",
    "execution_state",
    "phase_of",
    "stage_of",
    "transitions",
]

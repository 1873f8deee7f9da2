"""A loop explained: each turn's whole request, what came back, what decided, and what may be done next.

    told                what an explanation is
    explaining          `explain`
    turns               the turns, with their requests
    decisions           what each event decided, in words; `checked` and `middleware` are parts of it
    outlook             what decided how it stands, and what may be done next
    flows               the same of a flow: how each step ended, and where to look further

Rules: pure, and made from the events alone, each time anew. The request is the very one that the engine was
handed: it is worked out from the state before the call, in the way in which the driver did, with what is
recorded of what middleware made of it. Words and ids are data: nothing here knows a command or a screen. What
an engine makes of a request is asked of the engine itself: `orchestrate.rendering`.
"""

from flyball.orchestrate.projections.explanation.explaining import explain
from flyball.orchestrate.projections.explanation.told import (
    Action,
    Explanation,
    FlowStep,
    FlowTold,
    Next,
    Turn,
)

__all__ = ["Action", "Explanation", "FlowStep", "FlowTold", "Next", "Turn", "explain"]

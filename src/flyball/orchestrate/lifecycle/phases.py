"""The phases and their edges, the paths of the modes, the stages: the lifecycle as data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from flyball.core.errors import IllegalTransition
from flyball.core.events import Stage
from flyball.core.phases import Phase


class Mode(StrEnum):
    """The modes of pagantic: which pattern of control a request asks for."""

    CHAT = "chat"
    """A conversation with tools: AgentLoop."""
    STRUCTURED = "structured"
    """One answer that follows a schema: SpecializedLoop."""
    PLAN = "plan"
    """Steps, one after another: PlanExecutor."""
    REDUNDANT = "redundant"
    """The same question several times, and a vote: RedundantLoop."""


_ENDS = frozenset({Phase.ERROR, Phase.CANCELLED})

EDGES: Mapping[Phase, frozenset[Phase]] = {
    Phase.INIT: frozenset({Phase.PLAN, Phase.PREPARE}) | _ENDS,
    Phase.PLAN: frozenset({Phase.PREPARE}) | _ENDS,
    Phase.PREPARE: frozenset({Phase.EXECUTE}) | _ENDS,
    Phase.EXECUTE: frozenset({Phase.VALIDATE, Phase.COMPLETE}) | _ENDS,
    Phase.VALIDATE: frozenset({Phase.COMPLETE, Phase.EXECUTE}) | _ENDS,
    Phase.COMPLETE: frozenset(),
    Phase.ERROR: frozenset(),
    Phase.CANCELLED: frozenset(),
}
"""Which phases may follow which."""

RETRY = (Phase.VALIDATE, Phase.EXECUTE)
"""The edge that leads back; whoever goes it begins another attempt."""

REOPENING = frozenset({(Phase.ERROR, Phase.INIT), (Phase.CANCELLED, Phase.INIT)})
"""How a loop that ended badly is tried again. These are no edges: only the event `Reopened` goes them."""


class Path(Struct, frozen=True):
    """Which phases a mode goes through when all goes well, how it retries, and where it calls tools."""

    phases: tuple[Phase, ...]
    retry: tuple[Phase, ...] = ()
    tool_loop: str = ""
    """The phase that holds a loop of tool calls, or `step` if each step has its own; empty if none does."""


_CHECKED = (Phase.INIT, Phase.PREPARE, Phase.EXECUTE, Phase.VALIDATE, Phase.COMPLETE)
_AGAIN = (Phase.EXECUTE, Phase.VALIDATE, Phase.EXECUTE)

PATHS: Mapping[Mode, Path] = {
    Mode.CHAT: Path((Phase.INIT, Phase.PREPARE, Phase.EXECUTE, Phase.COMPLETE), _AGAIN, Phase.EXECUTE),
    Mode.STRUCTURED: Path(_CHECKED, RETRY),
    Mode.PLAN: Path((Phase.INIT, Phase.PLAN, *_CHECKED[1:]), _AGAIN, "step"),
    Mode.REDUNDANT: Path(_CHECKED),
}
"""The way of each mode. A chat validates where its answers are checked; voting takes the place of retries."""

NOMINAL_STAGES = (
    Stage.EXPLORING,
    Stage.PLANNING,
    Stage.ARCHITECTING,
    Stage.EXECUTING,
    Stage.REVIEWING,
    Stage.COMPLETE,
)
"""The stages in the order in which a loop would go through all of them; it need not."""


def check_edge(before: Phase, after: Phase) -> None:
    """Check that a phase may follow another.

    Raises:
        IllegalTransition: it may not; the message names both, and what may.
    """
    allowed = EDGES[before]
    if after not in allowed:
        names = ", ".join([phase for phase in Phase if phase in allowed]) or "nothing, for it is an end"
        raise IllegalTransition(
            f"the phase {after!s} cannot follow {before!s}: what may follow is {names}",
            before=before,
            after=after,
        )


def check_stage(before: Stage, after: Stage) -> None:
    """Check that a loop may move from one stage to another: anywhere, but not out of an end.

    Raises:
        IllegalTransition: the stage is a terminal one, and the other is not the same.
    """
    if before.is_terminal and after is not before:
        raise IllegalTransition(
            f"the stage {before!s} is an end, and {after!s} cannot follow: the signal retry begins again",
            before=before,
            after=after,
        )

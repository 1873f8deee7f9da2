"""How a run stands: its stage, or that it was interrupted, which no journal can tell of itself."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from flyball.core.events import Event, Forked, Reopened, Resumed, Stage
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.family import waiting_calls
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.lifecycle import stage_of
from flyball.orchestrate.state import State

INTERRUPTED = "interrupted"
"""Stands where a stage does: the run is not over, and nobody drives it."""
DEFERRED = "deferred"
"""Stands where a stage does: the run waits for results from outside."""


def this_process() -> str:
    """A name for this process, by which others on this machine can see whether it still runs."""
    return f"{platform.node()}/{os.getpid()}"


def standing(events: Sequence[Event], state: State, process: str) -> str:
    """How a run stands that was begun by a process: its stage, `deferred`, or `interrupted`.

    A run is interrupted where it should go on by itself and does not: its time is up, or the process that
    began it has ended and no other took over. Where that cannot be told, it has its stage.
    """
    stage = stage_of(state)
    late = state.deadline is not None and time.time() > state.deadline
    if waits_for_results(state):
        return INTERRUPTED if late else DEFERRED
    if stage.is_terminal or stage in (Stage.PAUSED, Stage.AWAITING_APPROVAL):
        return str(stage)
    taken_over = any(isinstance(event, Resumed | Reopened | Forked) for event in events)
    return INTERRUPTED if late or (not taken_over and _has_ended(process)) else str(stage)


async def standing_in_all(
    journal: Journal, events: Sequence[Event], state: State, process: str
) -> tuple[str, tuple[str, ...]]:
    """How a run stands with all that is under it, and which calls under it wait for somebody, each in a line.

    A run whose own calls wait has its own stage; one that waits for a run under it has that one's.
    """
    own = standing(events, state, process)
    if state.at != "execute" or not state.children:
        return own, ()
    waits = [one for one in await waiting_calls(journal, state) if one.loop_id != state.loop_id]
    lines = tuple([str(one) for one in waits])
    if not waits or own in (Stage.PAUSED, Stage.AWAITING_APPROVAL, DEFERRED):
        return own, lines
    approval = any(one.wants == "approval" for one in waits)
    return (str(Stage.AWAITING_APPROVAL) if approval else DEFERRED), lines


def _has_ended(process: str) -> bool:
    """Whether a process has ended; no, where that cannot be told from here."""
    node, _, number = process.rpartition("/")
    if os.name != "posix" or node != platform.node() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
        # It has a number until somebody has asked how it ended.
        return Path(f"/proc/{number}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] in "ZX"
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):
        return False

"""How a loop stands: its stage, or that it was interrupted, which no journal can tell of itself.

    standing            from its own journal, the time, and whether the process that began it still runs
    standing_in_all     with the loops under it, some of which may wait for somebody

Both are of an agent's loop or of a flow. Nothing is written, and what cannot be told is not guessed: then it
is the stage. Since time and processes have a say, a loop that is not over may stand otherwise a moment later.
"""

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
from flyball.orchestrate.machines import AnyState, stage
from flyball.orchestrate.state import State

INTERRUPTED = "interrupted"
"""Stands where a stage does: the loop is not over, and nobody drives it."""
DEFERRED = "deferred"
"""Stands where a stage does: the loop waits for results from outside."""


def this_process() -> str:
    """A name for this process, by which others on this machine can see whether it still runs."""
    return f"{platform.node()}/{os.getpid()}"


def standing(events: Sequence[Event], state: AnyState, process: str) -> str:
    """How a loop stands that was begun by a process: its stage, `deferred`, or `interrupted`.

    It is interrupted where it should go on by itself and does not: its time is up, or the process that began
    it has ended and no other took over. Where that cannot be told, it has its stage.
    """
    own = stage(state)
    late = state.deadline is not None and time.time() > state.deadline
    if isinstance(state, State) and waits_for_results(state):
        return INTERRUPTED if late else DEFERRED
    if own.is_terminal or own in (Stage.PAUSED, Stage.AWAITING_APPROVAL):
        return str(own)
    taken_over = any(isinstance(event, Resumed | Reopened | Forked) for event in events)
    return INTERRUPTED if late or (not taken_over and _has_ended(process)) else str(own)


async def standing_in_all(
    journal: Journal, events: Sequence[Event], state: AnyState, process: str
) -> tuple[str, tuple[str, ...]]:
    """How a loop stands with all that is under it, and which calls under it wait, each in a line.

    One whose own calls wait has its own stage; one that waits for a loop under it has that one's.

    Raises:
        JournalFailure: a loop under it cannot be read.
    """
    own = standing(events, state, process)
    if state.at not in ("execute", "run") or not state.children:
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

"""Which loops stand under a flow: their ids, which are the same each time, and whose they are."""

from __future__ import annotations

from collections.abc import Iterable

from flyball.orchestrate.flow_state import FlowState


def step_loop(loop_id: str, path: str, attempt: int) -> str:
    """The id of the loop that a leaf is run as: the same each time."""
    again = "" if attempt == 1 else f"-t{attempt}"
    return f"{loop_id}-s{path.replace('.', '_')}{again}"


def helper_loop(loop_id: str, number: int) -> str:
    """The id of a loop that a leaf begins beside its own, or without one."""
    return f"{loop_id}-h{number}"


def children_of(state: FlowState, loops: Iterable[str]) -> tuple[str, ...]:
    """Those of a flow's children that were begun for leaves, given by their own loops.

    As these, or beside them (`helper_loop`).
    """
    wanted = frozenset(loops)
    return tuple([name for name in state.children if name in wanted or _beside(name) in wanted])


def _beside(name: str) -> str:
    """The loop that a helper's stands beside."""
    loop_id, mark, number = name.rpartition("-h")
    return loop_id if mark and number.isdigit() else ""

"""What a journal knows of the task that a loop was begun for: the same in its entity and in its events.

The loop's metadata holds what the task said of itself, under the wire's own names (`ABOUT_A_TASK`; see
`TaskMessage.loop_metadata`). Loops that no task began have none of it, and are their own task.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from flyball.core.task import ABOUT_A_TASK, AgentRole
from flyball.orchestrate.state import State

UNLIMITED = (1 << 31) - 1
"""The iterations of a loop that has no limit: the wire has no word for none."""


def task_id_of(state: State) -> str:
    """The id of the loop's task; its own where no task began it."""
    return state.correlation.task_id or state.loop_id


def role_of(state: State) -> str:
    """The role that the loop plays: its task's, its agent's, what that is named after, or general."""
    told = told_of(state, ("role",)).get("role") or state.spec.role
    return told or (state.spec.agent if state.spec.agent in list(AgentRole) else AgentRole.GENERAL.value)


def max_iterations_of(state: State) -> int:
    """How many iterations the loop has, and at least one."""
    most = state.spec.limits.max_iterations
    return UNLIMITED if most is None else max(1, most)


def told_of(state: State, names: Iterable[str]) -> dict[str, Any]:
    """What the task said under these names, as far as it said it; only what is of the right kind counts."""
    given = state.metadata or {}
    wanted = {name: int if name == "max_depth" else str for name in ABOUT_A_TASK if name in names}
    return {name: given[name] for name, kind in wanted.items() if type(given.get(name)) is kind}

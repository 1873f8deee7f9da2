"""Snapshots of a loop: projections of its state, and what a loop that goes on from one begins with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flyball.core.carried import Carried
from flyball.core.errors import UserError
from flyball.core.messages import Message, Role
from flyball.core.snapshot import RunSnapshot, answered, taken
from flyball.orchestrate.recordable import recordable
from flyball.orchestrate.state import State

_UNANSWERED = frozenset({"prepare", "compact", "infer", "review"})
"""Where a loop stands in a turn of which the history holds nothing yet."""


def snapshot_of(state: State, at: float | None) -> RunSnapshot:
    """A loop as it stands, at a time; without an answer that waits for approval, which is none yet."""
    return taken(_said(state), carried_of(state), started_at=state.started_at, at=at)


def carried_of(state: State) -> Carried:
    """What a run that goes on from here would take over, besides the history."""
    began = state.carried or _NOTHING
    whole = state.at not in _UNANSWERED and len(answered(_said(state))) == len(state.history)
    return Carried(
        state.loop_id,
        state.parent_loop_id or began.parent_run_id,
        state.turn if whole else max(state.turn - 1, 0),
        began.prompt if state.prompt is None else state.prompt.text,
        state.usage,
        state.retries,
        dict(state.tool_retries) or None,
        _tool_state(state),
    )


def _said(state: State) -> list[Message]:
    """The history, as far as another run may go on from it."""
    history = state.history
    return history[:-1] if state.at == "approve" and history[-1].role is Role.ASSISTANT else history


def _tool_state(state: State) -> dict[str, Any] | None:
    """What stateful tools had come to when the last whole turn was over: an open one will be had again."""
    before = state.turns_tool_state
    if before is None or before.turn != state.turn or len(answered(_said(state))) == len(state.history):
        return state.tool_state
    return before.tool_state


def carried_by(options: Mapping[str, Any]) -> tuple[tuple[Message, ...], Carried | None]:
    """The history that a run's options give it, and what it takes over from the run that had that history.

    Raises:
        UserError: there are messages beside a snapshot, or it counts what cannot be.
    """
    snapshot: RunSnapshot | None = options.get("snapshot")
    if snapshot is None:
        return tuple(options.get("messages") or ()), None
    if options.get("messages"):
        raise UserError("a snapshot has its own messages: give snapshot= or messages=, not both")
    carried = recordable(snapshot.carried, "the snapshot")
    counts = (carried.step, carried.retries, *(carried.tool_retries or {}).values())
    if min(counts) < 0:
        raise UserError(f"the snapshot counts steps or retries below 0: {carried!r}")
    return snapshot.messages, carried


_NOTHING = Carried()

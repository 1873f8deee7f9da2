"""Noticing that a model goes round in circles: the same calls with the same arguments, again and again.

A circle is one, two or three turns long. Only data is compared, and only the last three turns are kept.
"""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.errors import LoopDetected
from flyball.core.messages import ResultKind, ToolCall, ToolResult
from flyball.orchestrate.state import State

LONGEST = 3


def going_round(state: State, calls: Sequence[ToolCall]) -> LoopDetected | None:
    """Take note of a turn's calls; the failure if the circle has been gone round too often."""
    allowed = state.spec.limits.repeated_calls
    if allowed is None:
        return None
    if len(calls) == 1:
        signature = f"{calls[0].name}({calls[0].args_json})"
    else:
        signature = "; ".join(sorted([f"{call.name}({call.args_json})" for call in calls]))
    recent, rounds = state.recent, state.rounds
    state.recent = (signature, *recent[: LONGEST - 1])
    if signature not in recent:
        if state.rounds:
            state.rounds = ()
        return None
    repeated = [
        (rounds[n] if n < len(rounds) else 0) + 1 if n < len(recent) and recent[n] == signature else 0
        for n in range(LONGEST)
    ]
    state.rounds = tuple(repeated)
    for period, turns in enumerate(repeated, start=1):
        if turns >= period * allowed:
            failed = _last_failure(state, calls)
            told = "" if failed is None else f"; what {failed.name} said last: {failed.text[:500]}"
            return LoopDetected(
                f"the model asks for the same calls again and again: {signature[:200]} "
                f"(the limit repeated_calls is {allowed}){told}",
                calls=signature[:1000],
                times=turns // period + 1,
            )
    return None


def _last_failure(state: State, calls: Sequence[ToolCall]) -> ToolResult | None:
    """What came back the last time, where that was an error or a wish for other arguments."""
    names = {call.name for call in calls}
    for message in reversed(state.history):
        if found := [result for result in message.tool_results if result.name in names]:
            bad = [result for result in found if result.is_error or result.status is ResultKind.RETRY]
            return bad[-1] if bad else None
    return None

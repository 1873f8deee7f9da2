"""A call that waits for a person, as a question to the client's user; and what the answer means."""

from __future__ import annotations

from typing import Any

from mcp_types import ElicitRequest, ElicitRequestFormParams, ElicitResult

from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.family import WaitingCall

_LONGEST = 4_000


def key_of(call: WaitingCall) -> str:
    """What a waiting call is known as, among all of a run."""
    return f"{call.loop_id}/{call.call.id}"


def form(call: WaitingCall) -> dict[str, Any]:
    """What the user fills in."""
    means = "Let the answer count" if call.answer else "Let the call run"
    return {
        "type": "object",
        "properties": {
            "approve": {"type": "boolean", "title": "Approve", "description": means},
            "reason": {"type": "string", "title": "Reason", "description": "What the agent is told, if not"},
        },
        "required": ["approve"],
    }


def question(call: WaitingCall) -> str:
    """What the user is asked."""
    arguments = call.call.args_json
    if len(arguments) > _LONGEST:
        arguments = f"{arguments[:_LONGEST]}… ({len(arguments)} characters)"
    if call.answer:
        return f"The agent {call.agent} would answer {arguments}. Approve it?"
    return f"The agent {call.agent} wants to run {call.call.name} with {arguments}. Approve it?"


def request(call: WaitingCall) -> ElicitRequest:
    """The question, for clients that are asked by an answer."""
    return ElicitRequest(params=ElicitRequestFormParams(message=question(call), requested_schema=form(call)))


def decision(call: WaitingCall, answer: ElicitResult, by: str) -> Signal | None:
    """The signal that an answer stands for; None where the user did not decide."""
    if answer.action == "cancel":
        return None
    given = answer.content or {}
    reason = str(given.get("reason") or "")
    if answer.action == "accept" and given.get("approve") is True:
        return Signal(SignalType.APPROVE, by=by, text=reason, call_id=call.call.id)
    return Signal(SignalType.REJECT, by=by, text=reason or "the user said no", call_id=call.call.id)

"""What of a loop waits for a person's approval: calls of tools, or its answer. Pure.

An answer that waits is told as if it were a call, of `ANSWER`: whoever shows calls and has them approved does
so with answers, too.
"""

from __future__ import annotations

from msgspec import UNSET, DecodeError, json

from flyball.core.encodable import as_text
from flyball.core.events import Outcome
from flyball.core.messages import ToolCall
from flyball.core.spec import OutputMode
from flyball.orchestrate.calls import answer_id
from flyball.orchestrate.commands import call_to_run
from flyball.orchestrate.state import State

ANSWER = "the answer"
"""What an answer that waits is called: no tool can have that name."""


def approvals(state: State) -> tuple[ToolCall, ...]:
    """What waits for approval: calls as they are to run, or the answer, as `{"answer": ...}`.

    Where the answer may be of several types, `type` beside it names which it is.
    """
    if state.at == "approve":
        shown = {"answer": _as_data(state)} | ({"type": state.output_kind} if state.output_kind else {})
        return (ToolCall(answer_id(state), ANSWER, as_text(shown)),)
    if state.at == "execute":
        return tuple([call_to_run(state, index) for index in state.awaiting])
    return ()


def is_withheld(state: State) -> bool:
    """Whether nothing that the loop would answer is its answer: a person approves that, and has not.

    So it is while it goes on, and for ever if it ends otherwise than well.
    """
    return state.spec.output.approval and state.outcome is not Outcome.SUCCESS


def answer_so_far(state: State) -> str:
    """The answer of a loop that has one, as text, without the object that it was wrapped in."""
    if state.output is not UNSET:
        return as_text(state.output)
    answer, outer = state.answer or "", state.spec.output.outer_key
    if outer is None:
        return answer
    try:
        return as_text(json.decode(answer, type=dict[str, object])[outer])
    except (DecodeError, KeyError):
        return answer  # it was repaired before it was read: then as it was written


def _as_data(state: State) -> object:
    """The answer as data where it is data, as text where it is text."""
    if state.output is not UNSET:
        return state.output
    answer = answer_so_far(state)
    if state.spec.output.mode is OutputMode.TEXT:
        return answer
    try:
        return json.decode(answer)
    except DecodeError:
        return answer

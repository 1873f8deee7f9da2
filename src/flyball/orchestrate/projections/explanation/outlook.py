"""What decided how an agent's loop stands, and what may be done with it next."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.deferred import DeferredToolRequest
from flyball.core.events import Outcome
from flyball.orchestrate.approvals import approvals
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.projections.explanation.told import Next
from flyball.orchestrate.projections.shortened import one_line
from flyball.orchestrate.state import State
from flyball.orchestrate.waiting import deferred_requests

_STANDS = {
    "admit": "its beginning",
    "prepare": "its preparation",
    "compact": "the summary of what was said",
    "infer": "the model call",
    "judge": "the approval of its tool calls",
    "execute": "its tool calls",
    "review": "the review of its answer",
    "settle": "the check of its answer",
    "repair": "the repair of its answer",
    "approve": "the approval of its answer",
    "deliver": "its deliveries",
    "end": "its end",
}


def verdict_of(state: State, decided: Sequence[str]) -> str:
    """In a sentence, what decided how the loop stands; `decided` is what was decided in its last turn."""
    if state.at != "done":
        if state.paused or state.pausing:
            return "It is paused: a signal asked for that."
        if waiting := approvals(state):
            return f"It waits for somebody to approve {', '.join([call.name for call in waiting])}."
        if waits_for_results(state):
            calls = ", ".join([f"{one.tool_name} ({one.tool_call_id})" for one in deferred_requests(state)])
            return f"It waits for results from outside: {calls}."
        return f"It is not over: nothing is recorded after turn {state.turn} came to {_STANDS[state.at]}."
    if state.outcome is Outcome.SUCCESS:
        checked = any("accepted" in text for text in decided)
        return "It has its answer: " + ("the check accepted it." if checked else "the model answered.")
    if state.error is None:
        return "It ended without an answer."
    limit = (state.error.details or {}).get("limit")
    by = f"the limit {limit}" if limit else f"{state.error.code} ({state.error.category})"
    return f"It ended by {by}: {state.error.message}"


def next_of(state: State) -> tuple[Next, ...]:
    """What may be done with the loop, the nearest first."""
    if calls := tuple([call.id for call in approvals(state)]):
        answers = state.at == "approve"
        return (
            Next("approve", "let the answer count" if answers else "let the calls run that wait", calls),
            Next("reject", f"refuse {'it' if answers else 'them'}; the model reads the reason", calls),
        )
    if waits_for_results(state):
        waiting = [
            Next("answer", f"give the result of {_called(one)}", (one.tool_call_id,))
            for one in deferred_requests(state)
        ]
        return (*waiting, _fork(state))
    if state.at != "done":
        return (Next("resume", "go on where it stopped"), _fork(state))
    if state.outcome is Outcome.SUCCESS:
        return (
            Next("replay", "give the answer again, without a model"),
            Next("continue", "go on talking"),
            _fork(state),
        )
    retryable = state.error is not None and state.error.retryable
    again = "try it again" + (": this kind of error may pass" if retryable else ", from where it ended")
    return (Next("retry", again), _fork(state))


def _called(one: DeferredToolRequest) -> str:
    return f"{one.tool_name} {one_line(one.args_json, 60)}"


def _fork(state: State) -> Next:
    turn = max(state.turn - 1, 0)
    after = f"after turn {turn}" if turn else "from its beginning"
    return Next("fork", f"go on {after} with another model", turn=turn)

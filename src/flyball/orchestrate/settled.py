"""What follows from the verdict on a turn's answer: the end, a repair, or another try.

Part of the machine, and as pure; see `turn` for where it stands.
"""

from __future__ import annotations

from flyball.core.errors import RunConditionError
from flyball.core.events import TurnSettled
from flyball.core.messages import Message, ResultKind, Retry, ToolResult
from flyball.orchestrate.calls import needs_judging, to_execution
from flyball.orchestrate.moves import (
    SUCCESS,
    ask_again,
    conclude,
    count_retry,
    end,
    fail,
    move,
    next_turn,
    say,
    take_back,
)
from flyball.orchestrate.state import Reflections, State

_RETRY = ResultKind.RETRY


def stopped_by(reason: str) -> RunConditionError:
    """The failure of a run that a condition ended before it had an answer."""
    return RunConditionError(f"the run was stopped before it had an answer: {reason}", reason=reason)


def turn_settled(state: State, event: TurnSettled) -> None:
    """The answer was looked at: it counts, or the model reads why not."""
    if event.accepted and event.error is None:
        _accepted(state, event)
    elif event.unread is not None and _may_be_mended(state):
        state.unread = event
        move(state, "repair")
    elif state.mended is not None and event.unread is not None:
        not_mended(state)
    else:
        state.mended = None
        _not_accepted(state, event)


def _not_accepted(state: State, event: TurnSettled) -> None:
    if event.error is not None and not event.feedback:
        fail(state, event.error)
    elif event.reflected:
        _reflected(state, event.feedback[0])
    elif state.stopping:
        fail(state, stopped_by(state.stopping))
    elif state.answer is not None:
        state.answer = None
        ask_again(state, event.feedback[0], event.error)
    elif state.outputs:
        _refused(state, event)
    else:
        ask_again(state, event.feedback[0], event.error)


def _may_be_mended(state: State) -> bool:
    """Whether a model may be asked to put an answer right: once a turn, and within the limits."""
    return (
        state.unread is None
        and state.spec.output.repairer is not None
        and not state.stopping
        and state.spec.limits.before_request(state.usage, 0) is None
    )


def mended(state: State, message: Message) -> None:
    """A model has put the answer right, as far as it can be told: it is settled in its place."""
    breach = state.spec.limits.after_answer(state.usage, 0)
    reason = message.finish_reason
    if breach is not None:
        fail(state, breach)
    elif not message.text or (reason is not None and reason.cut_short):
        not_mended(state)
    else:
        state.mended = message.text
        move(state, "settle")


def not_mended(state: State) -> None:
    """The repair came to nothing: it goes on as if there had been none."""
    state.mended = None
    assert state.unread is not None, "a repair is of what was unreadable"
    _not_accepted(state, state.unread)


def _accepted(state: State, event: TurnSettled) -> None:
    state.output, state.output_kind = event.output, event.kind
    mended, state.mended = state.mended, None
    if event.reflected or state.reflections is not None:
        state.reflections = Reflections(reflected_before(state), event.reflected)
    if state.answer is not None:
        state.answer = mended or state.answer  # a tool gave it
    elif event.index is None:
        state.answer = mended or state.history[-1].text
    else:
        answer = state.calls[event.index]
        state.answer, state.answer_tool = mended or answer.args_json, answer.name
        for index in state.outputs:
            call = state.calls[index]
            if index == event.index:
                result = ToolResult(call.id, call.name, "Final result processed.")
            else:
                text = "Not used: another final result was taken."
                result = ToolResult(call.id, call.name, text, status=ResultKind.SKIPPED)
            state.results[index] = result
            state.open -= 1
    if state.feedback or state.spec.output.approval:
        conclude(state)
    else:
        end(state, SUCCESS)


def _refused(state: State, event: TurnSettled) -> None:
    """No output call could be taken: each is answered with what is wrong with it; the others still run."""
    _answer_outputs(state, event.feedback)
    failure = count_retry(state, event.feedback[0])
    if failure is not None:
        fail(state, event.error or failure)
    else:
        _to_the_others(state)


def _reflected(state: State, feedback: str) -> None:
    """A valid output is sent back, to be made better. That is no retry: the model got nothing wrong."""
    state.reflections = Reflections(reflected_before(state) + 1)
    state.retries = 0
    if state.outputs and state.answer is None:
        _answer_outputs(state, (feedback,))
        _to_the_others(state)
    else:
        state.answer = None
        say(state, (Retry(feedback),))
        next_turn(state)


def refuse_answer(state: State, why: str) -> None:
    """A person would not have the answer that waits for approval: the model reads why, and gives another.

    That is no retry: the model got nothing wrong.
    """
    if state.stopping:
        fail(state, stopped_by(state.stopping))
        return
    state.retries = 0
    take_back(state, "Not run: the answer was not approved.")
    say(state, (Retry(why),))
    next_turn(state)


def reflected_before(state: State) -> int:
    """How often a reflection has sent a valid output back."""
    return 0 if state.reflections is None else state.reflections.times


def _answer_outputs(state: State, feedback: tuple[str, ...]) -> None:
    """Answer the calls that carry the output with what is wrong with each."""
    for number, index in enumerate(state.outputs):
        call = state.calls[index]
        text = feedback[min(number, len(feedback) - 1)]
        state.results[index] = ToolResult(call.id, call.name, text, status=_RETRY)
        state.open -= 1


def _to_the_others(state: State) -> None:
    """Go on to the turn's calls that do not carry the output."""
    if needs_judging(state):
        move(state, "judge")
    else:
        to_execution(state)

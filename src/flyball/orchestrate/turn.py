"""A turn: from the model's answer over its tool calls to the next turn, or to the end.

Part of the machine, and as pure. The order within a turn:

    ModelAnswered ── [review] ── dropped, or the last one ────────> the next turn, or the end
          │
          ├── no calls ── text that counts ───────────────────────> the end
          │            ├── text that must be checked ─────────────> settle
          │            └── nothing, or not what was asked ────────> asked again
          └── calls ── unknown ones are answered at once
                   ├── an output among them (strategy early) ─────> settle, then what is left
                   ├── there are filters, or some need a judge ───> judge
                   └── execute ... the last returned ─────────────> settle, or the next turn

    TurnSettled ── accepted ──────────────────────────────────────> the end
          ├── it could not be read, and a model may repair it ────> repair, then settle; once a turn
          └── else ───────────────────────────────────────────────> what is left, or asked again
"""

from __future__ import annotations

from collections.abc import Callable

from flyball.core.errors import ContentFilterError, FlyballError, UnexpectedModelBehavior
from flyball.core.events import AnswerReviewed, ModelAnswered, ModelFailed, TurnPrepared
from flyball.core.messages import FinishReason, Message, Text, ToolCall
from flyball.orchestrate import compacted
from flyball.orchestrate.calls import asked, note_calls
from flyball.orchestrate.moves import SUCCESS, ask_again, conclude, end, fail, move, next_turn
from flyball.orchestrate.reaching import reach
from flyball.orchestrate.sending import send
from flyball.orchestrate.settled import mended, not_mended, stopped_by
from flyball.orchestrate.state import State


def turn_prepared(state: State, event: TurnPrepared) -> None:
    """The tools on offer are known, and what is sent. A turn that is skipped counts all the same."""
    if event.error is not None:
        fail(state, event.error)
    elif event.skipped:
        state.iterations += 1
        next_turn(state)
    elif event.compact is not None:
        compacted.planned(state, event.compact, event.edits)
    else:
        state.offered = event.tools
        state.definitions = event.definitions
        send(state, event.edits)
        move(state, "infer")


# The answer


def model_failed(state: State, event: ModelFailed) -> None:
    """The call failed for good: whatever could be tried again was, inside the effect."""
    partial = event.partial
    state.usage = state.usage.add_request(None if partial is None else partial.usage)
    if partial is not None:
        state.called.append(event)
    if event.purpose == "turn" and (event.around is not None or state.reached is not None):
        reach(state, event.around)
    if event.purpose == "repair":
        not_mended(state)
    elif event.purpose == "compact":
        compacted.failed(state)
    else:
        fail(state, event.error)


def model_answered(state: State, event: ModelAnswered) -> None:
    """The model has answered: it is looked at first, if somebody wants to, and then taken."""
    message = event.message
    state.usage = state.usage.add_request(message.usage)
    state.called.append(event)
    if event.purpose != "turn":
        _BESIDE[event.purpose](state, message)
        return
    if event.around is not None or state.reached is not None:
        reach(state, event.around)
    state.iterations += 1
    if state.spec.reviews:
        state.reviewing = message
        move(state, "review")
    else:
        _take_answer(state, message)


_BESIDE: dict[str, Callable[[State, Message], None]] = {"repair": mended, "compact": compacted.answered}
"""What follows from an answer that was asked for something else than the turn."""


def answer_reviewed(state: State, event: AnswerReviewed) -> None:
    """The answer is taken as it is now, or dropped; or it is the last one."""
    message, state.reviewing = event.message or state.reviewing, None
    assert message is not None, "a review is of an answer"
    if event.error is not None:
        fail(state, event.error)
    elif event.dropped:
        next_turn(state)
    elif event.stop:
        _stop_with(state, message, event.stop)
    else:
        _take_answer(state, message)


def _take_answer(state: State, message: Message) -> None:
    """The answer joins the history; then it is an answer, or a wish for tools."""
    parts = message.parts
    only = parts[0] if len(parts) == 1 else None  # the usual answer is one text, or one call
    if type(only) is Text:
        text = only.text
    else:
        calls = (only,) if type(only) is ToolCall else message.tool_calls
        if calls:
            state.history.append(message)
            asked(state, calls)
            return
        text = message.text
    breach = state.spec.limits.after_answer(state.usage, 0)
    if text:
        state.history.append(message)
    if breach is not None:
        fail(state, breach)
    elif text:
        _answered(state, text)
    else:
        _said_nothing(state, message)


def _stop_with(state: State, message: Message, reason: str) -> None:
    """A condition ends the run: with this answer if it can be one, else with the reason. No call runs."""
    output, calls = state.spec.output, message.tool_calls
    if message.text or calls:
        state.history.append(message)
    if calls:
        note_calls(state, calls)
    breach = state.spec.limits.after_answer(state.usage, 0)
    if breach is not None:
        fail(state, breach)
    elif not state.outputs and not (output.allows_text and message.text):
        fail(state, stopped_by(reason))
    elif output.checked:
        state.stopping = reason
        move(state, "settle")
    else:
        state.answer = message.text
        if output.approval:
            state.stopping = reason
            move(state, "approve")
        else:
            end(state, SUCCESS)


def _answered(state: State, text: str) -> None:
    output = state.spec.output
    if not output.allows_text:
        names = " or ".join([definition.name for definition in output.tools])
        ask_again(state, f"Answer by calling {names}; plain text is not an answer here.")
    elif output.checked:
        move(state, "settle")
    else:
        state.answer = text
        if state.feedback or output.approval:
            conclude(state)
        else:
            end(state, SUCCESS)


def _said_nothing(state: State, message: Message) -> None:
    """No text and no calls. It does not join the history: no provider takes an empty message back."""
    if message.finish_reason is FinishReason.LENGTH:
        failure: FlyballError = UnexpectedModelBehavior(
            "the model used up its tokens before it answered: raise max_tokens or shorten the prompt",
            body=message.thinking[-500:],
        )
        fail(state, failure)
    elif message.finish_reason is FinishReason.CONTENT_FILTER:
        fail(state, ContentFilterError("the provider's content filter stopped the answer"))
    else:
        ask_again(state, "The answer was empty. Answer the request.")

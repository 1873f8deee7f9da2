"""What each event of an agent's loop decided, in words."""

from __future__ import annotations

from flyball.core.events import (
    Admitted,
    AnswerReviewed,
    CallsJudged,
    ChildEnded,
    ChildStarted,
    Delivered,
    Ended,
    Event,
    Forked,
    ModelAnswered,
    ModelFailed,
    Reopened,
    Resumed,
    SignalReceived,
    Started,
    TimePassed,
    ToolReturned,
    TurnPrepared,
    TurnSettled,
    Verdict,
)
from flyball.core.messages import Message
from flyball.inference.request import Result
from flyball.orchestrate.projections.course.step import is_taken_over
from flyball.orchestrate.projections.explanation.checked import checked
from flyball.orchestrate.projections.shortened import several, short
from flyball.orchestrate.state import State

REFUSED = "the check refused the answer"
_MADE = {"repair": "repair", "compact": "summary"}
"""What a model call is made for, if not for the turn."""


def decisions(event: Event, state: State, answer: Message | None, before: Event | None) -> list[str]:
    """What an event decided, in words; `before` is the event before."""
    if isinstance(event, ModelAnswered | ModelFailed) and event.purpose != "turn":
        return [_beside_the_turn(event, state)]
    if isinstance(event, ModelAnswered):
        return [
            f"the model: {Result(event.message).finish_reason}",
            *[f"note: {note}" for note in event.notes],
        ]
    if isinstance(event, ModelFailed):
        return [f"the model call failed: {event.error.code}: {event.error.message}"]
    if isinstance(event, TurnSettled):
        return _settled(event)
    if isinstance(event, ToolReturned):
        result = event.result
        came = f"failed: {result.error}" if result.is_error else str(result.status)
        return [f"the tool {result.name}: {came}"]
    if isinstance(event, CallsJudged):
        if event.error is not None:
            return [f"judging the calls ended the run: {event.error.code}: {event.error.message}"]
        names = [] if answer is None else [call.name for call in answer.tool_calls]
        asked = state.spec.tools if state.spec.judges else {}
        return [
            _judged(verdict, name, careful=name in asked and asked[name].approval)
            for verdict in event.verdicts
            for name in [names[verdict.index]]
        ]
    if isinstance(event, SignalReceived):
        signal = event.signal
        by, text = (f" by {signal.by}" if signal.by else ""), (f": {signal.text}" if signal.text else "")
        return [f"the signal {signal.type}{by}{text}"]
    if isinstance(event, TimePassed):
        return [f"the limit timeout ({state.spec.limits.timeout or 0:g} s) passed"]
    return _about_the_loop(event, before)


def _beside_the_turn(event: ModelAnswered | ModelFailed, state: State) -> str:
    """What came of a model call that was made for something else than the turn."""
    if isinstance(event, ModelFailed):
        return (
            f"the model call for a {_MADE[event.purpose]} failed: {event.error.code}: {event.error.message}"
        )
    model = event.message.model or state.spec.served_by(event.purpose)[0]
    return f"{model} was asked for a {_MADE[event.purpose]}: {' '.join(event.message.text.split())}"


def _about_the_loop(event: Event, before: Event | None) -> list[str]:
    if isinstance(event, Resumed):
        return ["somebody went on with it from here"] if is_taken_over(event, before) else []
    if isinstance(event, Reopened):
        return ["it was tried again"]
    if isinstance(event, ChildStarted):
        return [f"a loop of {event.agent} was begun under it: {event.loop_id}"]
    if isinstance(event, ChildEnded):
        return [f"the loop {event.loop_id} was over, with {several(event.requests, 'model call')}"]
    if isinstance(event, Forked):
        return [f"forked from {short(event.source)} after turn {event.turn}"]
    if isinstance(event, Admitted | TurnPrepared | AnswerReviewed):
        return checked(event)
    if isinstance(event, Delivered) and event.error is not None:
        return [f"refused: {event.error.code}: {event.error.message}"]
    if isinstance(event, Ended):
        limit = (event.error.details or {}).get("limit") if event.error is not None else None
        why = f" by the limit {limit}" if limit else ""
        return [f"the run ended: {event.outcome}{why}"]
    if isinstance(event, Started) and event.history:
        return [f"it began with {several(len(event.history), 'message')} of an earlier conversation"]
    return []


def _settled(event: TurnSettled) -> list[str]:
    repairs = [f"the check put the answer right: {repair}" for repair in event.repairs]
    if event.accepted:
        taken = f", though the reflection has against it: {event.reflected}" if event.reflected else ""
        return [*repairs, f"the check accepted the answer{taken}"]
    if event.reflected:
        return [*repairs, f"the reflection sent the answer back: {event.reflected}"]
    if event.error is not None:
        return [*repairs, f"the check ended the run: {event.error.code}: {event.error.message}"]
    return [*repairs, *[f"{REFUSED}: {text}" for text in event.feedback]]


def _judged(verdict: Verdict, name: str, *, careful: bool) -> str:
    """What was decided about a call; `careful`: approval had a say in it, and not only the filters."""
    who = f"the filter {verdict.by}" if verdict.by else "approval" if careful else "filters"
    if verdict.args_json is not None:
        return f"{who}: {name} was let through with other arguments: {verdict.args_json}"
    if verdict.allowed:
        return f"{who}: {name} was let through"
    return f"{who}: {name} was refused" + (f": {verdict.reason}" if verdict.reason else "")

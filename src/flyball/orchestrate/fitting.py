"""Which events fit where a loop stands. What does not is dropped before it is recorded.

Part of the machine, and as pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flyball.core.edits import fits
from flyball.core.events import (
    Admitted,
    AnswerReviewed,
    CallsJudged,
    ChildEnded,
    ChildStarted,
    Delivered,
    Ended,
    FlowStarted,
    Forked,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Reopened,
    Resumed,
    SignalReceived,
    Stage,
    StageMoved,
    Started,
    StepEnded,
    TimePassed,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
    TurnSettled,
)
from flyball.core.messages import Message, ResultKind, Role, ToolCall
from flyball.core.signals import SignalType
from flyball.orchestrate.calls import detachable, needs_judging
from flyball.orchestrate.compacted import can_be_planned, remembered
from flyball.orchestrate.course import FOR_APPROVAL, OVER, decides
from flyball.orchestrate.reaching import BESIDE, can_be
from flyball.orchestrate.sending import base
from flyball.orchestrate.state import State

_ASSISTANT, _DEFERRED = Role.ASSISTANT, ResultKind.DEFERRED


def _answers(position: str) -> Callable[[State, Any], bool]:
    """Fits a position that owes one effect."""
    return lambda state, _: state.at == position


def _accepts_return(state: State, event: ToolReturned) -> bool:
    index, results = event.index, state.results
    return (
        state.at == "execute"
        and event.turn == state.turn
        and 0 <= index < len(results)
        and results[index] is None
        and event.result.call_id == state.calls[index].id
        and index not in state.awaiting
        and index not in state.outputs
        and (event.result.status is not _DEFERRED or index not in state.deferred)
    )


def _accepts_start(state: State, event: ToolStarted) -> bool:
    index = event.index
    return (
        state.at == "execute"
        and event.turn == state.turn
        and 0 <= index < len(state.results)
        and state.results[index] is None
        and index not in state.awaiting
        and index not in state.outputs
        and index not in state.once
        and index not in state.deferred
    )


def _accepts_answer(state: State, event: ModelAnswered) -> bool:
    if _PURPOSES.get(state.at) != event.purpose or event.turn != state.turn:
        return False
    if event.around is not None and not can_be(state, event.around):
        return False
    message = event.message
    parts = message.parts
    if len(parts) == 1:  # the usual answer
        part = parts[0]
        return message.role is _ASSISTANT and (type(part) is not ToolCall or part.id not in state.ids)
    return _can_be_answer(state, message)


def _accepts_failure(state: State, event: ModelFailed) -> bool:
    if _PURPOSES.get(state.at) != event.purpose or event.turn != state.turn:
        return False
    return event.around is None or can_be(state, event.around)


_PURPOSES = {"infer": "turn", **BESIDE}
"""What the model is called for, where it is."""


def _can_be_answer(state: State, message: Message) -> bool:
    """Whether a message can be the model's next one: no call of it has an id that is there already."""
    if message.role is not _ASSISTANT:
        return False
    ids = [call.id for call in message.tool_calls]
    return len(set(ids)) == len(ids) and state.ids.isdisjoint(ids)


def _accepts_preparation(state: State, event: TurnPrepared) -> bool:
    """Edits must be of what they claim to be, and leave something to send."""
    if state.at != "prepare" or event.turn != state.turn:
        return False
    if event.compact is not None:
        screened = fits(event.edits, len(remembered(state)))
        return event.error is None and screened and can_be_planned(state, event.compact)
    return not event.edits or fits(event.edits, len(base(state)))


def _accepts_review(state: State, event: AnswerReviewed) -> bool:
    if state.at != "review" or event.turn != state.turn:
        return False
    return event.message is None or _can_be_answer(state, event.message)


def _accepts_verdicts(state: State, event: CallsJudged) -> bool:
    """Every call that needs it is judged, once; whoever judges cannot let one through by not naming it."""
    if state.at != "judge" or event.turn != state.turn:
        return False
    judged = sorted([verdict.index for verdict in event.verdicts])
    return event.error is not None or judged == list(needs_judging(state))


def _accepts_settling(state: State, event: TurnSettled) -> bool:
    if state.at != "settle" or event.turn != state.turn:
        return False
    carried_by_call = state.outputs and state.answer is None
    if event.unread is not None:
        found = len(state.outputs) if carried_by_call and state.mended is None else 1
        if event.accepted or not 0 <= event.unread < found:
            return False
    if event.error is not None:
        return True
    if not event.accepted:
        return bool(event.feedback) and not (event.reflected and state.stopping)
    return event.index in state.outputs if carried_by_call else event.index is None


def _is_late(state: State, at: float) -> bool:
    return state.deadline is not None and at >= state.deadline


def _accepts_signal(state: State, event: SignalReceived) -> bool:
    signal = event.signal
    if state.at in OVER or (signal.id and signal.id in state.signals):
        return False
    if signal.type is SignalType.RESUME:
        return state.paused or state.pausing
    if signal.type is SignalType.PAUSE:
        return not (state.paused or state.pausing)
    if signal.type in FOR_APPROVAL:
        return decides(state, signal)
    if signal.type is SignalType.FEEDBACK:
        # No provider takes an empty text. Where an answer waits, it is sent back by who means it.
        return bool(signal.text) and (state.at != "approve" or decides(state, signal))
    if signal.type is SignalType.DETACH:
        return any(index not in state.detached for index in detachable(state, signal.call_id))
    return signal.type is not SignalType.RETRY  # a retry is recorded as Reopened


def _accepts_child(state: State, event: ChildStarted) -> bool:
    """Nothing is begun under a loop that was cancelled; under one that ends well, its editor is."""
    return (
        state.at != "done"
        and state.outcome is not Outcome.CANCELLED
        and event.loop_id not in state.children
        and event.loop_id != state.loop_id
    )


def _accepts_childs_end(state: State, event: ChildEnded) -> bool:
    """Each child's once, while the loop may still use something up itself."""
    return (
        state.at not in OVER
        and event.loop_id in state.children
        and not any(type(one) is ChildEnded and one.loop_id == event.loop_id for one in state.called)
    )


def _accepts_retry(state: State, event: Reopened) -> bool:
    return (
        state.at == "done"
        and state.outcome is not Outcome.SUCCESS
        and not (event.id and event.id in state.signals)
    )


ACCEPTS: dict[type[Any], Callable[[State, Any], bool]] = {
    Admitted: _answers("admit"),
    TurnPrepared: _accepts_preparation,
    ModelAnswered: _accepts_answer,
    ModelFailed: _accepts_failure,
    AnswerReviewed: _accepts_review,
    CallsJudged: _accepts_verdicts,
    TurnSettled: _accepts_settling,
    Delivered: _answers("deliver"),
    Ended: lambda state, event: state.at == "end" and event.outcome is state.outcome,
    ToolReturned: _accepts_return,
    ToolStarted: _accepts_start,
    SignalReceived: _accepts_signal,
    ChildStarted: _accepts_child,
    ChildEnded: _accepts_childs_end,
    TimePassed: lambda state, event: state.at not in OVER and _is_late(state, event.at),
    StageMoved: lambda state, event: state.at not in OVER and event.stage in _MOVABLE,
    Resumed: lambda state, event: state.at != "done" and event.epoch == state.epoch + 1,
    Reopened: _accepts_retry,
    Forked: lambda state, _: state.at in _FORKABLE,
    Started: lambda state, event: False,
    FlowStarted: lambda state, event: False,  # of a flow, as the next one
    StepEnded: lambda state, event: False,
}

_MOVABLE = frozenset({Stage.EXPLORING, Stage.PLANNING, Stage.ARCHITECTING, Stage.EXECUTING, Stage.REVIEWING})
"""The stages that somebody may move a loop to: the others follow from what happens."""
_FORKABLE = frozenset({"prepare", "infer"}) | OVER

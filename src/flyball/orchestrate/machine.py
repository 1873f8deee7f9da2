"""The machine of an agent loop: events in, effects owed. Pure: no I/O, no await, no clock, no callback.

The rules
=========
1. `start(Started)` makes a state, `apply(state, event)` folds one more event into it, `owed(state)` lists
   the effects that are owed now. Nothing else is consulted: two machines that saw the same events agree.
2. `accepts(state, event)` tells whether an event fits. What does not fit (a second answer to the same call,
   an answer to a turn that is over, a signal too late) is dropped before it is recorded, so a journal holds
   only events that fitted.
3. An effect is owed until an event answers it, or until the loop has moved on without it. Its id,
   `loop/attempt/turn/kind/index`, is the same each time it is asked for.
4. The machine decides everything that can be decided from data: limits, unknown tools, empty answers,
   retries, loops. What needs code (a parser, a validator, a person) is an effect, and its verdict an event.
5. Decisions about a turn's calls are taken when the last of them is answered, in the order of the calls, so
   the order in which concurrent tools return cannot matter.
6. Whenever the model is called, and at the end, the history is valid for every provider: one leading system
   message at most, every call answered exactly once and at once, no empty message, no speaker twice in a row.

Where a loop stands
===================
    position   owes                          and moves on with
    admit      Admit                         Admitted
    prepare    Prepare                       TurnPrepared
    infer      Infer                         ModelAnswered, ModelFailed
    review     Review                        AnswerReviewed
    judge      Judge                         CallsJudged
    execute    Execute (one a call), Wait    ToolReturned (the last one), SignalReceived
    settle     Settle                        TurnSettled
    repair     Infer, for a repair           ModelAnswered, ModelFailed
    deliver    Deliver                       Delivered
    end        End                           Ended
    done       nothing                       Reopened

    start -> [admit] -> [prepare] -> infer -> [review] -> [judge] -> execute -> [prepare] -> infer ...
                                                       -> settle  -> (infer again, or the end)
                                                       -> settle  -> [repair] -> settle
    anywhere -> [deliver] -> end -> done         by an answer, a failure, a limit, a cancel, the deadline

Steps in brackets are left out where nothing is registered for them: what is not used is never owed.
A call that its tool defers stays open, and its result is waited for; it may come from anybody.
A loop that is paused owes only the wait for a signal; a pause begins where the loop next moves, so that what
runs may finish. A deadline is owed as a Wait until its time, beside whatever else is owed.

Loops under others
==================
A loop that begins another has ChildStarted in its journal, before the child's Started is written. What a
cancelled loop owes at its end names its children: whoever carries that out cancels them first. A loop that
ends well and whose spec names an editor has that one's loop begun first. A loop that stands deeper under
others than its limits allow fails as it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from flyball.core.edits import fits
from flyball.core.effects import (
    Admit,
    Deliver,
    Effect,
    End,
    Execute,
    Infer,
    Judge,
    Prepare,
    Review,
    Settle,
    Wait,
)
from flyball.core.errors import JournalCorrupt
from flyball.core.events import (
    Admitted,
    AnswerReviewed,
    CallsJudged,
    ChildStarted,
    Delivered,
    Ended,
    Event,
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
    TimePassed,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
    TurnSettled,
)
from flyball.core.messages import Message, ResultKind, Role, ToolCall
from flyball.core.signals import SignalType
from flyball.core.tools import Safety
from flyball.orchestrate import course, turn
from flyball.orchestrate.course import OVER
from flyball.orchestrate.reaching import can_be
from flyball.orchestrate.sending import base
from flyball.orchestrate.state import State

# Folding

start: Callable[[Started], State] = course.started
"""The state of a loop that has just begun."""


def apply(state: State, event: Event) -> None:
    """Fold one event, which `accepts` has let through, into the state."""
    _APPLY[type(event)](state, event)


def take(state: State, event: Event) -> bool:
    """Fold an event if it fits; whether it did."""
    kind = type(event)
    if not _ACCEPTS[kind](state, event):
        return False
    _APPLY[kind](state, event)
    return True


_APPLY: dict[type[Any], Callable[[State, Any], None]] = {
    Admitted: course.admitted,
    TurnPrepared: turn.turn_prepared,
    ModelAnswered: turn.model_answered,
    ModelFailed: turn.model_failed,
    AnswerReviewed: turn.answer_reviewed,
    CallsJudged: turn.calls_judged,
    ToolStarted: turn.tool_started,
    ToolReturned: turn.tool_returned,
    TurnSettled: turn.turn_settled,
    SignalReceived: course.signal_received,
    ChildStarted: course.child_started,
    TimePassed: course.time_passed,
    StageMoved: course.stage_moved,
    Resumed: course.resumed,
    Delivered: course.delivered,
    Ended: course.ended,
    Reopened: course.reopened,
    Forked: course.forked,
}


def fold(events: Iterable[Event], place: str = "journal") -> State:
    """The state that a whole journal leads to.

    Raises:
        JournalCorrupt: it is empty, does not begin with Started, or an event does not fit where it stands.
    """
    state: State | None = None
    for number, event in enumerate(events):
        if state is None:
            if not isinstance(event, Started):
                raise JournalCorrupt(f"{place}: begins with {type(event).__name__}, not with Started")
            state = start(event)
        elif not take(state, event):
            raise JournalCorrupt(
                f"{place}: event {number}, {type(event).__name__}, does not fit: "
                f"the loop stands at {state.at!r} in turn {state.turn}",
                number=number,
            )
    if state is None:
        raise JournalCorrupt(f"{place}: no events")
    return state


# What is owed


def owed(state: State) -> list[Effect]:
    """The effects owed now. A function of the state alone."""
    if state.paused:
        effects: list[Effect] = [Wait(effect_id(state, "wait", 0), _WHILE_PAUSED)]
    else:
        effects = _OWED[state.at](state)
    if state.deadline is not None and state.at not in OVER:
        effects.append(Wait(effect_id(state, "wait", 1), until=state.deadline))
    return effects


def inference_owed(state: State) -> Infer | None:
    """The model call that a loop stands at, also while it is paused before it."""
    if state.at == "infer":
        return Infer(effect_id(state, "infer", 0), state.turn)
    return Infer(effect_id(state, "repair", 0), state.turn, "repair") if state.at == "repair" else None


def effect_id(state: State, kind: str, index: int) -> str:
    """The name of an effect: the same each time it is owed."""
    return f"{state.loop_id}/{state.attempt}/{state.turn}/{kind}/{index}"


def asked_to_detach(state: State) -> list[str]:
    """The running calls that were asked to move their work to the background, by the ids of their effects."""
    return [effect_id(state, "execute", index) for index in state.detached]


def _owed_execution(state: State) -> list[Effect]:
    """Calls that may run together, or the next one that must run alone.

    Approvals, and results from outside, are waited for beside.
    """
    tools, calls, number = state.spec.tools, state.calls, state.turn
    start = f"{state.loop_id}/{state.attempt}/{number}/execute/"
    if len(calls) == 1 and not (state.awaiting or state.deferred or state.pausing):  # the usual turn
        return [Execute(f"{start}0", number, 0, tools[calls[0].name].safety is _AT_MOST_ONCE)]
    effects: list[Effect] = [
        Execute(f"{start}{index}", number, index, tools[calls[index].name].safety is _AT_MOST_ONCE)
        for index in turn.runnable(state)
    ]
    if state.awaiting or state.deferred:
        waiting = tuple([calls[index].id for index in state.deferred])
        signals = _FOR_APPROVAL if state.awaiting else ()
        effects.append(Wait(effect_id(state, "wait", 0), signals, calls=waiting))
    return effects


def _owed_end(state: State) -> End:
    """The end. A cancel goes on to the children; an answer goes on to the editor, if there is one."""
    outcome = state.outcome or Outcome.FAILED
    cancels = state.children if outcome is Outcome.CANCELLED else ()
    editor = state.spec.editor if outcome is Outcome.SUCCESS else ""
    return End(effect_id(state, "end", 0), outcome, state.error, cancels, editor)


_AT_MOST_ONCE, _DEFERRED = Safety.AT_MOST_ONCE, ResultKind.DEFERRED
_FOR_APPROVAL = (SignalType.APPROVE, SignalType.REJECT)
_WHILE_PAUSED = (SignalType.RESUME,)

_OWED: dict[str, Callable[[State], list[Effect]]] = {
    "admit": lambda state: [Admit(effect_id(state, "admit", 0))],
    "prepare": lambda state: [Prepare(effect_id(state, "prepare", 0), state.turn)],
    "infer": lambda state: [Infer(f"{state.loop_id}/{state.attempt}/{state.turn}/infer/0", state.turn)],
    "review": lambda state: [Review(effect_id(state, "review", 0), state.turn)],
    "judge": lambda state: [Judge(effect_id(state, "judge", 0), state.turn, turn.needs_judging(state))],
    "execute": _owed_execution,
    "settle": lambda state: [
        Settle(
            f"{state.loop_id}/{state.attempt}/{state.turn}/settle/{0 if state.mended is None else 1}",
            state.turn,
        )
    ],
    "repair": lambda state: [Infer(effect_id(state, "repair", 0), state.turn, "repair")],
    "deliver": lambda state: [Deliver(effect_id(state, "deliver", 0))],
    "end": lambda state: [_owed_end(state)],
    "done": lambda _: [],
}


# What fits


def accepts(state: State, event: Event) -> bool:
    """Whether an event fits here. What does not is dropped before it is recorded."""
    return _ACCEPTS[type(event)](state, event)


def _answers(position: str) -> Callable[[State, Any], bool]:
    """Fits a position that owes one effect."""
    return lambda state, _: state.at == position


def _accepts_return(state: State, event: ToolReturned) -> bool:
    index = event.index
    return (
        state.at == "execute"
        and event.turn == state.turn
        and 0 <= index < len(state.results)
        and state.results[index] is None
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
    return _can_be_answer(state, event.message) and (event.around is None or can_be(state, event.around))


def _accepts_failure(state: State, event: ModelFailed) -> bool:
    if _PURPOSES.get(state.at) != event.purpose or event.turn != state.turn:
        return False
    return event.around is None or can_be(state, event.around)


_PURPOSES = {"infer": "turn", "repair": "repair"}
"""What the model is called for, where it is."""


def _can_be_answer(state: State, message: Message) -> bool:
    """Whether a message can be the model's next one: no call of it has an id that is there already."""
    if message.role is not Role.ASSISTANT:
        return False
    parts = message.parts
    if len(parts) == 1:
        return type(parts[0]) is not ToolCall or parts[0].id not in state.ids
    ids = [call.id for call in message.tool_calls]
    return len(set(ids)) == len(ids) and state.ids.isdisjoint(ids)


def _accepts_preparation(state: State, event: TurnPrepared) -> bool:
    """Edits must be of what they claim to be, and leave something to send."""
    if state.at != "prepare" or event.turn != state.turn:
        return False
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
    return event.error is not None or judged == list(turn.needs_judging(state))


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
    if signal.type in _FOR_APPROVAL:
        return bool(course.meant_by(state, signal))
    if signal.type is SignalType.FEEDBACK:
        return bool(signal.text)  # no provider takes an empty text
    if signal.type is SignalType.DETACH:
        return any(index not in state.detached for index in turn.detachable(state, signal.call_id))
    return signal.type is not SignalType.RETRY  # a retry is recorded as Reopened


def _accepts_child(state: State, event: ChildStarted) -> bool:
    """Nothing is begun under a loop that was cancelled; under one that ends well, its editor is."""
    return (
        state.at != "done"
        and state.outcome is not Outcome.CANCELLED
        and event.loop_id not in state.children
        and event.loop_id != state.loop_id
    )


def _accepts_retry(state: State, event: Reopened) -> bool:
    return (
        state.at == "done"
        and state.outcome is not Outcome.SUCCESS
        and not (event.id and event.id in state.signals)
    )


_ACCEPTS: dict[type[Any], Callable[[State, Any], bool]] = {
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
    TimePassed: lambda state, event: state.at not in OVER and _is_late(state, event.at),
    StageMoved: lambda state, event: state.at not in OVER and event.stage in _MOVABLE,
    Resumed: lambda state, event: state.at != "done" and event.epoch == state.epoch + 1,
    Reopened: _accepts_retry,
    Forked: lambda state, _: state.at in _FORKABLE,
    Started: lambda state, event: False,
}

_MOVABLE = frozenset({Stage.EXPLORING, Stage.PLANNING, Stage.ARCHITECTING, Stage.EXECUTING, Stage.REVIEWING})
"""The stages that somebody may move a loop to: the others follow from what happens."""
_FORKABLE = frozenset({"prepare", "infer"}) | OVER

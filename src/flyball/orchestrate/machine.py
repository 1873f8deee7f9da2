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
    compact    Infer, for a summary          ModelAnswered, ModelFailed
    infer      Infer                         ModelAnswered, ModelFailed
    review     Review                        AnswerReviewed
    judge      Judge                         CallsJudged
    execute    Execute (one a call), Wait    ToolReturned (the last one), SignalReceived
    settle     Settle                        TurnSettled
    repair     Infer, for a repair           ModelAnswered, ModelFailed
    approve    Wait                          SignalReceived
    deliver    Deliver                       Delivered
    end        End                           Ended
    done       nothing                       Reopened

    start -> [admit] -> [prepare] -> infer -> [review] -> [judge] -> execute -> [prepare] -> infer ...
                                                       -> settle  -> (infer again, or the end)
                                                       -> settle  -> [repair] -> settle
    an answer -> [approve] -> (the end, or infer again)
    [prepare] -> [compact] -> prepare -> infer ...
    anywhere -> [deliver] -> end -> done         by an answer, a failure, a limit, a cancel, the deadline

Steps in brackets are left out where nothing is registered for them: what is not used is never owed.
A call that its tool defers stays open, and its result is waited for; it may come from anybody. So does a call
of a tool that is run outside, from the beginning: no Execute is ever owed for it.
A loop that is paused owes only the wait for a signal; a pause begins where the loop next moves, so that what
runs may finish. A deadline is owed as a Wait until its time, beside whatever else is owed.

Loops under others
==================
A loop that begins another has ChildStarted in its journal, before the child's Started is written, and
ChildEnded before the child's Ended is: what the child used counts here from then on, once. What a cancelled
loop owes at its end names its children: whoever carries that out cancels them first. A loop that
ends well and whose spec names an editor has that one's loop begun first. A loop that stands deeper under
others than its limits allow fails as it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

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
    ChildEnded,
    ChildStarted,
    Delivered,
    Ended,
    Event,
    FlowStarted,
    Forked,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Reopened,
    Resumed,
    SignalReceived,
    StageMoved,
    Started,
    TimePassed,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
    TurnSettled,
)
from flyball.core.signals import SignalType
from flyball.core.tools import Safety
from flyball.orchestrate import calls, course, settled, turn
from flyball.orchestrate.calls import needs_judging, runnable
from flyball.orchestrate.compacted import preparations
from flyball.orchestrate.course import FOR_APPROVAL, OVER
from flyball.orchestrate.fitting import ACCEPTS
from flyball.orchestrate.reaching import BESIDE
from flyball.orchestrate.state import State

# Folding

start: Callable[[Started], State] = course.started
"""The state of a loop that has just begun."""


def apply(state: State, event: Event) -> None:
    """Fold one event, which `accepts` has let through, into the state."""
    _APPLY[type(event)](state, event)


def accepts(state: State, event: Event) -> bool:
    """Whether an event fits here. What does not is dropped before it is recorded."""
    return ACCEPTS[type(event)](state, event)


def take(state: State, event: Event) -> bool:
    """Fold an event if it fits; whether it did."""
    fits, fold_in = _TAKE[type(event)]
    if not fits(state, event):
        return False
    fold_in(state, event)
    return True


_APPLY: dict[type[Any], Callable[[State, Any], None]] = {
    Admitted: course.admitted,
    TurnPrepared: turn.turn_prepared,
    ModelAnswered: turn.model_answered,
    ModelFailed: turn.model_failed,
    AnswerReviewed: turn.answer_reviewed,
    CallsJudged: calls.calls_judged,
    ToolStarted: calls.tool_started,
    ToolReturned: calls.tool_returned,
    TurnSettled: settled.turn_settled,
    SignalReceived: course.signal_received,
    ChildStarted: course.child_started,
    ChildEnded: course.child_ended,
    TimePassed: course.time_passed,
    StageMoved: course.stage_moved,
    Resumed: course.resumed,
    Delivered: course.delivered,
    Ended: course.ended,
    Reopened: course.reopened,
    Forked: course.forked,
}


_TAKE = {kind: (fits, _APPLY.get(kind, apply)) for kind, fits in ACCEPTS.items()}
"""Both for each kind of event, so that one look-up is enough. Some never fit: a loop begins once."""


def fold(events: Iterable[Event], place: str = "journal") -> State:
    """The state that a whole journal leads to.

    Raises:
        JournalCorrupt: it is empty, does not begin with Started, or an event does not fit where it stands.
    """
    state: State | None = None
    for number, event in enumerate(events):
        if state is None:
            if not isinstance(event, Started):
                hint = ": it is a flow's, and for its own run()" if isinstance(event, FlowStarted) else ""
                raise JournalCorrupt(f"{place}: begins with {type(event).__name__}, not with Started{hint}")
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
    purpose = BESIDE.get(state.at)
    return None if purpose is None else Infer(effect_id(state, purpose, 0), state.turn, purpose)


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
    tools, asked, number = state.spec.tools, state.calls, state.turn
    if len(asked) == 1 and not (state.awaiting or state.deferred or state.pausing):  # the usual turn
        once = tools[asked[0].name].safety is _AT_MOST_ONCE
        return [Execute(f"{state.loop_id}/{state.attempt}/{number}/execute/0", number, 0, once)]
    effects: list[Effect] = [
        Execute(
            effect_id(state, "execute", index),
            number,
            index,
            tools[asked[index].name].safety is _AT_MOST_ONCE,
        )
        for index in runnable(state)
    ]
    if state.awaiting or state.deferred:
        waiting = tuple([asked[index].id for index in state.deferred])
        signals = FOR_APPROVAL if state.awaiting else ()
        effects.append(Wait(effect_id(state, "wait", 0), signals, calls=waiting))
    return effects


def _owed_end(state: State) -> End:
    """The end. A cancel goes on to the children; an answer goes on to the editor, if there is one."""
    outcome = state.outcome or Outcome.FAILED
    cancels = state.children if outcome is Outcome.CANCELLED else ()
    editor = state.spec.editor if outcome is Outcome.SUCCESS else ""
    return End(effect_id(state, "end", 0), outcome, state.error, cancels, editor)


def settlings(state: State) -> int:
    """A number for each answer of a turn that may be settled: the model's or a tool's, mended or not."""
    return (2 if state.answer is not None else 0) + (0 if state.mended is None else 1)


_AT_MOST_ONCE = Safety.AT_MOST_ONCE
_WHILE_PAUSED = (SignalType.RESUME,)

_OWED: dict[str, Callable[[State], list[Effect]]] = {
    "admit": lambda state: [Admit(effect_id(state, "admit", 0))],
    "prepare": lambda state: [Prepare(effect_id(state, "prepare", preparations(state)), state.turn)],
    "compact": lambda state: [Infer(effect_id(state, "compact", 0), state.turn, "compact")],
    "infer": lambda state: [Infer(f"{state.loop_id}/{state.attempt}/{state.turn}/infer/0", state.turn)],
    "review": lambda state: [Review(effect_id(state, "review", 0), state.turn)],
    "judge": lambda state: [Judge(effect_id(state, "judge", 0), state.turn, needs_judging(state))],
    "execute": _owed_execution,
    "settle": lambda state: [
        Settle(f"{state.loop_id}/{state.attempt}/{state.turn}/settle/{settlings(state)}", state.turn)
    ],
    "repair": lambda state: [Infer(effect_id(state, "repair", 0), state.turn, "repair")],
    "approve": lambda state: [Wait(effect_id(state, "wait", 0), FOR_APPROVAL)],
    "deliver": lambda state: [Deliver(effect_id(state, "deliver", 0))],
    "end": lambda state: [_owed_end(state)],
    "done": lambda _: [],
}

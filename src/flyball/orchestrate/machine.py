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
    judge      Judge                         CallsJudged
    execute    Execute (one a call), Wait    ToolReturned (the last one), SignalReceived
    settle     Settle                        TurnSettled
    deliver    Deliver                       Delivered
    end        End                           Ended
    done       nothing                       Reopened

    start -> [admit] -> [prepare] -> infer -> [judge] -> execute -> [prepare] -> infer ...
                                           -> settle  -> (infer again, or the end)
    anywhere -> [deliver] -> end -> done         by an answer, a failure, a limit, a cancel, the deadline

Steps in brackets are left out where nothing is registered for them: what is not used is never owed.
A loop that is paused owes only the wait for a signal; a pause begins where the loop next moves, so that what
runs may finish. A deadline is owed as a Wait until its time, beside whatever else is owed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from flyball.core.effects import (
    Admit,
    Deliver,
    Effect,
    End,
    Execute,
    Infer,
    Judge,
    Prepare,
    Settle,
    Wait,
)
from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    ContentFilterError,
    FlyballError,
    JournalCorrupt,
    LoopDetected,
    SystemError,  # noqa: A004 - pagantic's name for it
    ToolRetriesExceeded,
    UnexpectedModelBehavior,
)
from flyball.core.events import (
    Admitted,
    CallsJudged,
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
    StageMoved,
    Started,
    TimePassed,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
    TurnSettled,
)
from flyball.core.messages import (
    FinishReason,
    Message,
    Part,
    ResultKind,
    Retry,
    Role,
    Text,
    ToolCall,
    ToolResult,
)
from flyball.core.signals import SignalType
from flyball.core.tools import Safety
from flyball.orchestrate.state import State

_SYSTEM, _USER, _ASSISTANT, _TOOL = Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL
_OVER = frozenset({"deliver", "end", "done"})
"""Positions of a loop whose outcome is decided."""


# Folding


def start(event: Started) -> State:
    """The state of a loop that has just begun."""
    spec = event.spec
    timeout = spec.limits.timeout
    state = State(
        event.loop_id,
        spec,
        list(event.history),
        started_at=event.at,
        deadline=None if timeout is None else event.at + timeout,
        prompt=event.prompt,
        correlation=event.correlation,
        metadata=event.metadata,
        parent_loop_id=event.parent_loop_id,
        depth=event.depth,
        tool_choice=spec.tool_choice,
    )
    if spec.instructions:
        _instruct(state, (spec.instructions,))
    if event.prompt is not None:
        _say(state, event.prompt.parts)
    if spec.admits:
        state.at = "admit"
    else:
        _next_turn(state)
    return state


def apply(state: State, event: Event) -> None:
    """Fold one event, which `accepts` has let through, into the state."""
    _APPLY[type(event)](state, event)


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
        elif accepts(state, event):
            apply(state, event)
        else:
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
    if state.paused and state.at not in _OVER:
        effects: list[Effect] = [Wait(_id(state, "wait", 0), _WHILE_PAUSED)]
    else:
        effects = _OWED[state.at](state)
    if state.deadline is not None and state.at not in _OVER:
        effects.append(Wait(_id(state, "wait", 1), until=state.deadline))
    return effects


def _id(state: State, kind: str, index: int) -> str:
    return f"{state.loop_id}/{state.attempt}/{state.turn}/{kind}/{index}"


def _owed_execution(state: State) -> list[Effect]:
    """Calls that may run together, or the next one that must run alone; approvals are waited for beside."""
    effects: list[Effect] = []
    tools = state.spec.tools
    room = state.spec.limits.max_concurrency
    alone: int | None = None
    for index, result in enumerate(state.results):
        if result is not None or index in state.awaiting or index in state.outputs:
            continue
        if tools[state.calls[index].name].definition.sequential:
            alone = index if alone is None else alone
            continue
        effects.append(_execute(state, index))
        if len(effects) == room:
            break
    if not effects and alone is not None:
        effects.append(_execute(state, alone))
    if state.awaiting:
        effects.append(Wait(_id(state, "wait", 0), _FOR_APPROVAL))
    return effects


def _execute(state: State, index: int) -> Execute:
    once = state.spec.tools[state.calls[index].name].safety is Safety.AT_MOST_ONCE
    return Execute(_id(state, "execute", index), state.turn, index, once)


def _needs_judging(state: State) -> tuple[int, ...]:
    tools = state.spec.tools
    return tuple(
        index
        for index, call in enumerate(state.calls)
        if state.results[index] is None and index not in state.outputs and tools[call.name].approval
    )


_FOR_APPROVAL = (SignalType.APPROVE, SignalType.REJECT)
_WHILE_PAUSED = (SignalType.RESUME,)

_OWED: dict[str, Callable[[State], list[Effect]]] = {
    "admit": lambda state: [Admit(_id(state, "admit", 0))],
    "prepare": lambda state: [Prepare(_id(state, "prepare", 0), state.turn)],
    "infer": lambda state: [Infer(_id(state, "infer", 0), state.turn)],
    "judge": lambda state: [Judge(_id(state, "judge", 0), state.turn, _needs_judging(state))],
    "execute": _owed_execution,
    "settle": lambda state: [Settle(_id(state, "settle", 0), state.turn)],
    "deliver": lambda state: [Deliver(_id(state, "deliver", 0))],
    "end": lambda state: [End(_id(state, "end", 0), state.outcome or Outcome.FAILED, state.error)],
    "done": lambda _: [],
}


# What fits


def accepts(state: State, event: Event) -> bool:
    """Whether an event fits here. What does not is dropped before it is recorded."""
    kind = type(event)
    position = _ANSWERS.get(kind)
    if position is not None:
        return state.at == position and getattr(event, "turn", state.turn) == state.turn
    return _ACCEPTS[kind](state, event)


def _accepts_return(state: State, event: ToolReturned | ToolStarted) -> bool:
    return (
        state.at == "execute"
        and event.turn == state.turn
        and 0 <= event.index < len(state.results)
        and state.results[event.index] is None
        and event.index not in state.awaiting
        and event.index not in state.outputs
        and (type(event) is ToolReturned or event.index not in state.once)
    )


def _accepts_signal(state: State, event: SignalReceived) -> bool:
    signal = event.signal
    if state.at in _OVER or (signal.id and signal.id in state.signals):
        return False
    if signal.type is SignalType.RESUME:
        return state.paused or state.pausing
    if signal.type is SignalType.PAUSE:
        return not (state.paused or state.pausing)
    if signal.type in _FOR_APPROVAL:
        return bool(_meant(state, signal.call_id))
    return signal.type is not SignalType.RETRY


_ANSWERS: dict[type[Any], str] = {
    Admitted: "admit",
    TurnPrepared: "prepare",
    ModelAnswered: "infer",
    ModelFailed: "infer",
    CallsJudged: "judge",
    TurnSettled: "settle",
    Delivered: "deliver",
    Ended: "end",
}
"""Events that answer the one effect which a position owes."""

_ACCEPTS: dict[type[Any], Callable[[State, Any], bool]] = {
    ToolReturned: _accepts_return,
    ToolStarted: _accepts_return,
    SignalReceived: _accepts_signal,
    TimePassed: lambda state, _: state.deadline is not None and state.at not in _OVER,
    StageMoved: lambda state, event: state.at not in _OVER and not event.stage.is_terminal,
    Resumed: lambda state, event: state.at != "done" and event.epoch == state.epoch + 1,
    Reopened: lambda state, _: state.at == "done" and state.outcome is not Outcome.SUCCESS,
    Forked: lambda state, event: state.at in ("prepare", "infer", "deliver", "end", "done"),
    Started: lambda *_: False,
}


# What each event does


def _admitted(state: State, event: Admitted) -> None:
    if event.error is not None:
        _fail(state, event.error)
        return
    if event.instructions:
        _instruct(state, event.instructions)
    if event.prompt is not None and state.prompt is not None:
        _replace_prompt(state, event.prompt)
    _next_turn(state)


def _turn_prepared(state: State, event: TurnPrepared) -> None:
    if event.error is not None:
        _fail(state, event.error)
        return
    state.offered = event.tools
    state.at = "infer"


def _model_failed(state: State, event: ModelFailed) -> None:
    state.usage = state.usage.add_request(event.partial.usage if event.partial is not None else None)
    _fail(state, event.error)


def _model_answered(state: State, event: ModelAnswered) -> None:
    message = event.message
    calls = message.tool_calls
    state.usage = state.usage.add_request(message.usage)
    state.iterations += 1
    if message.parts:
        state.history.append(message)
    if calls:
        _asked(state, calls)
    else:
        _answered(state, message)


def _answered(state: State, message: Message) -> None:
    """The model called nothing: that is its answer, if it may answer in text and has."""
    breach = state.spec.limits.after_answer(state.usage, 0)
    text = message.text
    output = state.spec.output
    if breach is not None:
        _fail(state, breach)
    elif not text:
        _empty(state, message)
    elif not output.allows_text:
        names = " or ".join(definition.name for definition in output.tools)
        _ask_again(state, f"Answer by calling {names}; plain text is not an answer here.")
    elif output.checked:
        _move(state, "settle")
    else:
        state.answer = text
        _end(state, Outcome.SUCCESS)


def _empty(state: State, message: Message) -> None:
    if message.parts and state.history[-1] is message:
        # Thinking alone is no message that every provider takes back.
        state.history.pop()
    if message.finish_reason is FinishReason.LENGTH:
        _fail(
            state,
            UnexpectedModelBehavior(
                "the model used up its tokens before it answered: raise max_tokens or shorten the prompt",
                body=message.thinking[-500:],
            ),
        )
    elif message.finish_reason is FinishReason.CONTENT_FILTER:
        _fail(state, ContentFilterError("the provider's content filter stopped the answer"))
    else:
        _ask_again(state, "The answer was empty. Answer the request.")


def _asked(state: State, calls: tuple[ToolCall, ...]) -> None:
    """The model called tools: sort the calls, refuse what cannot run, and go on to what comes first."""
    spec = state.spec
    outputs = {definition.name for definition in spec.output.tools} if spec.output.tools else ()
    state.calls = calls
    state.results = results = [None] * len(calls)  # pyright: ignore[reportAttributeAccessIssue]
    state.outputs = tuple([i for i, call in enumerate(calls) if call.name in outputs]) if outputs else ()
    state.awaiting = state.once = ()
    state.arguments = None
    state.open = len(calls)
    if state.tool_choice is not None and state.tool_choice.auto_reset:
        state.tool_choice = None
    functions = len(calls) - len(state.outputs)
    breach = spec.limits.after_answer(state.usage, functions) or _going_round(state)
    if breach is not None:
        _fail(state, breach)
        return
    judged = False
    for index, call in enumerate(calls):
        tool = spec.tools.get(call.name)
        if tool is None or (state.offered is not None and call.name not in state.offered):
            if index not in state.outputs:
                results[index] = _unknown(state, call)  # pyright: ignore[reportArgumentType]
                state.open -= 1
        elif tool.approval:
            judged = True
            if not spec.judges:
                state.awaiting = (*state.awaiting, index)
    if state.outputs and spec.end_strategy == "early":
        _move(state, "settle")
    elif judged and spec.judges:
        _move(state, "judge")
    else:
        _to_execution(state)


def _unknown(state: State, call: ToolCall) -> ToolResult:
    names = state.offered if state.offered is not None else tuple(state.spec.tools)
    known = ", ".join((*names, *(definition.name for definition in state.spec.output.tools)))
    return ToolResult(
        call.id,
        call.name,
        f"There is no tool {call.name!r}. {f'The tools are: {known}.' if known else 'There are no tools.'}",
        status=ResultKind.RETRY,
        metadata={"code": "TOOL_NOT_FOUND"},
    )


def _going_round(state: State) -> FlyballError | None:
    """Whether the model goes round in a circle of one, two or three turns; counts the rounds."""
    allowed = state.spec.limits.repeated_calls
    if allowed is None:
        return None
    calls = state.calls
    if len(calls) == 1:
        signature = f"{calls[0].name}({calls[0].args_json})"
    else:
        signature = "; ".join(sorted([f"{call.name}({call.args_json})" for call in calls]))
    recent, rounds = state.recent, state.rounds
    state.recent = (signature, *recent[:2])
    if signature not in recent:
        if any(rounds):
            state.rounds = (0, 0, 0)
        return None
    state.rounds = rounds = tuple(
        [rounds[n] + 1 if n < len(recent) and recent[n] == signature else 0 for n in range(3)]
    )
    for period, repeated in enumerate(rounds, start=1):
        if repeated >= period * allowed:
            return LoopDetected(
                f"the model asks for the same calls again and again: {signature[:200]} "
                f"(the limit repeated_calls is {allowed})",
                calls=signature[:1000],
                times=repeated // period + 1,
            )
    return None


def _calls_judged(state: State, event: CallsJudged) -> None:
    if event.error is not None:
        _fail(state, event.error)
        return
    for verdict in event.verdicts:
        if not verdict.allowed:
            _deny(state, verdict.index, verdict.reason)
        elif verdict.args_json is not None:
            state.arguments = {**(state.arguments or {}), verdict.index: verdict.args_json}
    _to_execution(state)


def _to_execution(state: State) -> None:
    """Go to the calls that are still to run, or past them if there are none."""
    if state.open > _open_outputs(state):
        _move(state, "execute")
    else:
        _called(state)


def _open_outputs(state: State) -> int:
    if not state.outputs:
        return 0
    return sum(1 for index in state.outputs if state.results[index] is None)


def _tool_started(state: State, event: ToolStarted) -> None:
    state.once = (*state.once, event.index)


def _tool_returned(state: State, event: ToolReturned) -> None:
    state.results[event.index] = event.result
    state.open -= 1
    if state.open == 0 or state.open == _open_outputs(state):
        _called(state)
    elif state.pausing and all(isinstance(effect, Wait) or _is_alone(state, effect) for effect in owed(state)):
        state.paused = True


def _is_alone(state: State, effect: Effect) -> bool:
    return (
        isinstance(effect, Execute)
        and state.spec.tools[state.calls[effect.index].name].definition.sequential
    )


def _called(state: State) -> None:
    """All function calls of the turn are answered: settle an output that waits, or close the turn."""
    if state.open:
        _move(state, "settle")
        return
    stop = _close_calls(state)
    failure = _count_retries(state)
    if failure is not None:
        _fail(state, failure)
    elif stop is not None:
        state.answer = stop.text
        _end(state, Outcome.SUCCESS)
    else:
        _next_turn(state)


def _close_calls(state: State) -> ToolResult | None:
    """Move the turn's results into the history; gives the result that stops the loop, if one does."""
    results = tuple(state.results)
    state.history.append(Message(_TOOL, results))  # pyright: ignore[reportArgumentType]
    ran = 0
    stop: ToolResult | None = None
    for index, result in enumerate(results):
        assert result is not None
        if index not in state.outputs and result.status in _RAN:
            ran += 1
            if result.stop_loop and stop is None:
                stop = result
    if ran:
        state.usage = state.usage.add_tool_calls(ran)
    return stop


_RAN = frozenset({ResultKind.RETURN, ResultKind.INTERRUPTED, ResultKind.DEFERRED})


def _count_retries(state: State) -> FlyballError | None:
    """Count what the model must do again; the failure if that is once too often."""
    spec = state.spec
    unknown: ToolResult | None = None
    for index, result in enumerate(state.results):
        assert result is not None
        if index in state.outputs:
            continue
        name = result.name
        if result.status is not ResultKind.RETRY:
            state.tool_retries.pop(name, None)
            continue
        tool = spec.tools.get(name)
        if tool is None:
            unknown = result
            continue
        count = state.tool_retries[name] = state.tool_retries.get(name, 0) + 1
        allowed = spec.retries if tool.retries is None else tool.retries
        if count > allowed:
            return ToolRetriesExceeded(
                f"the tool {name!r} was called wrongly {count} times in a row; {allowed} retries are allowed. "
                f"The last answer to the model was: {result.text[:500]}",
                tool=name,
                allowed=allowed,
            )
    if unknown is not None:
        return _count_retry(state, unknown.text)
    if not state.outputs:
        state.retries = 0
    return None


def _count_retry(state: State, feedback: str) -> FlyballError | None:
    state.retries += 1
    if state.retries <= state.spec.retries:
        return None
    return UnexpectedModelBehavior(
        f"no acceptable answer after {state.spec.retries} retries. The last feedback was: {feedback[:500]}",
        allowed=state.spec.retries,
        feedback=feedback[:2000],
    )


def _turn_settled(state: State, event: TurnSettled) -> None:
    if event.error is not None:
        _fail(state, event.error)
    elif event.accepted:
        _accepted(state, event)
    elif state.outputs:
        for number, index in enumerate(state.outputs):
            call = state.calls[index]
            feedback = event.feedback[number] if number < len(event.feedback) else event.feedback[-1]
            state.results[index] = ToolResult(call.id, call.name, feedback, status=ResultKind.RETRY)
            state.open -= 1
        failure = _count_retry(state, event.feedback[0])
        if failure is not None:
            _fail(state, failure)
        elif state.spec.judges and _needs_judging(state):
            _move(state, "judge")
        else:
            _to_execution(state)
    else:
        _ask_again(state, event.feedback[0])


def _accepted(state: State, event: TurnSettled) -> None:
    state.output = event.output
    if event.index is None:
        state.answer = state.history[-1].text
    else:
        call = state.calls[event.index]
        state.answer, state.answer_tool = call.args_json, call.name
        for index in state.outputs:
            call = state.calls[index]
            used = index == event.index
            text = "Final result processed." if used else "Not used: another final result was taken."
            state.results[index] = ToolResult(
                call.id, call.name, text, status=ResultKind.RETURN if used else ResultKind.SKIPPED
            )
            state.open -= 1
    _end(state, Outcome.SUCCESS)


def _signal_received(state: State, event: SignalReceived) -> None:
    signal = event.signal
    if signal.id:
        state.signals = (*state.signals, signal.id)
    match signal.type:
        case SignalType.CANCEL:
            who = f" by {signal.by}" if signal.by else ""
            why = f": {signal.text}" if signal.text else ""
            state.error = CancelledSignal(
                f"cancelled{who}{why}", by=signal.by, reason=signal.text
            ).record()
            _end(state, Outcome.CANCELLED)
        case SignalType.PAUSE:
            state.pausing = True
        case SignalType.RESUME:
            state.pausing = state.paused = False
        case SignalType.FEEDBACK:
            state.feedback = (*state.feedback, signal.text)
        case SignalType.APPROVE:
            meant = _meant(state, signal.call_id)
            state.awaiting = tuple([index for index in state.awaiting if index not in meant])
        case SignalType.REJECT:
            for index in _meant(state, signal.call_id):
                _deny(state, index, signal.text)
            if state.at == "execute" and state.open == _open_outputs(state):
                _called(state)
        case SignalType.RETRY:
            pass  # never accepted: a retry is recorded as Reopened


def _meant(state: State, call_id: str | None) -> tuple[int, ...]:
    """Which of the waiting calls a signal is about."""
    if call_id is None:
        return state.awaiting
    return tuple([index for index in state.awaiting if state.calls[index].id == call_id])


def _deny(state: State, index: int, reason: str) -> None:
    call = state.calls[index]
    text = f"The call was not allowed: {reason}" if reason else "The call was not allowed."
    state.results[index] = ToolResult(call.id, call.name, error=text, status=ResultKind.DENIED)
    state.awaiting = tuple([waiting for waiting in state.awaiting if waiting != index])
    state.open -= 1


def _time_passed(state: State, event: TimePassed) -> None:
    timeout = state.spec.limits.timeout
    state.error = CancelledTimeout(
        f"the run's time-out of {timeout:g} s passed", timeout=timeout, limit="timeout"
    ).record()
    _end(state, Outcome.CANCELLED)


def _resumed(state: State, event: Resumed) -> None:
    state.epoch = event.epoch
    if state.at != "execute":
        return
    for index in state.once:
        if state.results[index] is None:
            state.results[index] = _interrupted(state.calls[index])
            state.open -= 1
    if state.open == _open_outputs(state):
        _called(state)


def _interrupted(call: ToolCall) -> ToolResult:
    return ToolResult(
        call.id,
        call.name,
        error="interrupted: it had started when the run was stopped, and may or may not have had its effect",
        status=ResultKind.INTERRUPTED,
    )


def _stage_moved(state: State, event: StageMoved) -> None:
    state.stage = event.stage


def _delivered(state: State, event: Delivered) -> None:
    state.at = "end"


def _ended(state: State, event: Ended) -> None:
    state.outcome = event.outcome
    state.error = event.error
    state.at = "done"


def _reopened(state: State, event: Reopened) -> None:
    state.attempt += 1
    error = state.error
    _reopen(state, event.at)
    if state.history and state.history[-1].role is _ASSISTANT:
        reason = f" ({error.message[:500]})" if error is not None else ""
        _say(state, (Retry(f"That did not work{reason}. Try again."),))
    _next_turn(state)


def _forked(state: State, event: Forked) -> None:
    state.loop_id = event.loop_id
    state.spec = event.spec
    state.epoch = 0
    state.attempt = 1
    state.started_at = event.at
    over = state.at in _OVER
    _reopen(state, event.at)
    if event.spec.instructions:
        _instruct(state, (event.spec.instructions,))
    if event.prompt is not None:
        if state.turn == 1 and not over:
            _replace_prompt(state, event.prompt)
        else:
            _say(state, event.prompt.parts)
        state.prompt = event.prompt
    if over:
        _next_turn(state)
    else:
        state.at = "prepare" if event.spec.prepares else "infer"


def _reopen(state: State, at: float) -> None:
    """Forget the end, and whatever was counted on the way to it; the time begins anew."""
    state.outcome = state.error = state.answer = state.answer_tool = None
    state.output = UNSET
    state.iterations = state.retries = 0
    state.tool_retries = {}
    state.recent, state.rounds = (), (0, 0, 0)
    state.pausing = state.paused = False
    timeout = state.spec.limits.timeout
    state.deadline = None if timeout is None else at + timeout


_APPLY: dict[type[Any], Callable[[State, Any], None]] = {
    Admitted: _admitted,
    TurnPrepared: _turn_prepared,
    ModelAnswered: _model_answered,
    ModelFailed: _model_failed,
    CallsJudged: _calls_judged,
    ToolStarted: _tool_started,
    ToolReturned: _tool_returned,
    TurnSettled: _turn_settled,
    SignalReceived: _signal_received,
    TimePassed: _time_passed,
    StageMoved: _stage_moved,
    Resumed: _resumed,
    Delivered: _delivered,
    Ended: _ended,
    Reopened: _reopened,
    Forked: _forked,
}


# The moves


def _move(state: State, position: Any) -> None:
    """Go to a position within the turn. Here a pause that was asked for begins."""
    state.at = position
    if state.pausing:
        state.paused = True


def _next_turn(state: State) -> None:
    """Begin the next turn, if the limits allow one more model call."""
    state.calls, state.results, state.open = (), [], 0
    state.outputs = state.awaiting = state.once = ()
    state.offered = None
    if state.feedback:
        _say(state, tuple([Text(text) for text in state.feedback]))
        state.feedback = ()
    breach = state.spec.limits.before_request(state.usage, state.iterations)
    if breach is not None:
        _fail(state, breach)
        return
    state.turn += 1
    _move(state, "prepare" if state.spec.prepares else "infer")


def _ask_again(state: State, feedback: str) -> None:
    """The answer could not be taken: say why, and have another turn if there are retries left."""
    failure = _count_retry(state, feedback)
    if failure is not None:
        _fail(state, failure)
        return
    _say(state, (Retry(feedback),))
    _next_turn(state)


def _fail(state: State, error: FlyballError | SystemError) -> None:
    state.error = error.record() if isinstance(error, FlyballError) else error
    _end(state, Outcome.FAILED)


def _end(state: State, outcome: Outcome) -> None:
    """Decide the outcome. Calls that are still open are answered, so that the history stays valid."""
    state.outcome = outcome
    if state.open:
        for index, result in enumerate(state.results):
            if result is None:
                state.results[index] = _unfinished(state, index)
        state.open = 0
    if state.calls and state.history[-1].role is _ASSISTANT:
        _close_calls(state)
    state.awaiting = ()
    state.pausing = state.paused = False
    state.at = "deliver" if state.spec.delivers else "end"


def _unfinished(state: State, index: int) -> ToolResult:
    call = state.calls[index]
    if index in state.once:
        return _interrupted(call)
    if state.outcome is Outcome.SUCCESS:
        text = "Not run: the final result was already there."
    else:
        text = f"Not finished: {state.error.message if state.error is not None else 'the run ended'}"
    return ToolResult(call.id, call.name, error=text, status=ResultKind.SKIPPED)


# The history


def _instruct(state: State, instructions: tuple[str, ...]) -> None:
    """Set the leading system message, or add to it what prompt functions said."""
    parts = tuple([Text(text) for text in instructions if text])
    history = state.history
    if history and history[0].role is _SYSTEM:
        if state.at == "admit" and state.spec.instructions:
            parts = (*history[0].parts, *parts)
        history[0] = Message(_SYSTEM, parts)
    else:
        history.insert(0, Message(_SYSTEM, parts))


def _say(state: State, parts: tuple[Part, ...]) -> None:
    """Add to what the user says; nobody speaks twice in a row."""
    history = state.history
    if history and history[-1].role is _USER:
        history[-1] = replace(history[-1], parts=(*history[-1].parts, *parts))
    else:
        history.append(Message(_USER, parts))


def _replace_prompt(state: State, prompt: Message) -> None:
    """Put another prompt in the place of the one that the loop began with."""
    last = state.history[-1]
    before = len(last.parts) - (len(state.prompt.parts) if state.prompt is not None else 0)
    state.history[-1] = replace(last, parts=(*last.parts[:before], *prompt.parts))
    state.prompt = prompt

"""A loop's course beyond its turns: how it begins, what comes from outside, how it ends and begins again.

Part of the machine, and as pure.
"""

from __future__ import annotations

from functools import lru_cache

from msgspec import UNSET

from flyball.core.carried import Carried
from flyball.core.errors import CancelledSignal, CancelledTimeout
from flyball.core.events import (
    Admitted,
    ChildEnded,
    ChildStarted,
    Delivered,
    Ended,
    Forked,
    Outcome,
    Reopened,
    Resumed,
    SignalReceived,
    StageMoved,
    Started,
    TimePassed,
)
from flyball.core.messages import Message, Retry, Role, Text, ToolCall
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.calls import answer_id, detachable, pause, results_came, unfinished_once
from flyball.orchestrate.moves import (
    deny,
    end,
    fail,
    instruct,
    interrupted,
    may_go_on,
    next_turn,
    replace_prompt,
    say,
)
from flyball.orchestrate.settled import refuse_answer
from flyball.orchestrate.state import State, turns_before

_SYSTEM, _USER = Role.SYSTEM, Role.USER
OVER = frozenset({"deliver", "end", "done"})
"""The positions of a loop whose outcome is decided."""
FOR_APPROVAL = (SignalType.APPROVE, SignalType.REJECT)
"""The signals that decide about calls, and about the answer."""


# The beginning


def started(event: Started) -> State:
    """The state of a loop that has just begun."""
    spec = event.spec
    timeout = spec.limits.timeout
    prompt = event.prompt
    history = list(event.history)
    state = State(
        event.loop_id,
        spec,
        history,
        "infer",
        event.at,
        None if timeout is None else event.at + timeout,
        prompt,
        event.correlation,
        event.metadata,
        event.parent_loop_id,
        event.depth,
    )
    if event.deadline is not None and (state.deadline is None or event.deadline < state.deadline):
        state.deadline = event.deadline
    if spec.tool_choice is not None:
        state.tool_choice = spec.tool_choice
    if event.tool_state is not None:
        state.tool_state = event.tool_state
    if event.carried is not None:
        _take_over(state, event.carried)
    if event.identity is not None:
        state.identity = event.identity
    if history:
        state.ids = {part.id for message in history for part in message.parts if type(part) is ToolCall}
    if spec.instructions:
        if history:
            instruct(state, (spec.instructions,))
        else:
            history.append(_instructions(spec.instructions))
    if prompt is not None:
        if history and history[-1].role is _USER:
            say(state, prompt.parts)
        else:
            history.append(prompt)
    if event.depth and (breach := spec.limits.at_depth(event.depth)) is not None:
        fail(state, breach)
    elif spec.admits:
        state.at = "admit"
    else:
        next_turn(state)
    if event.paused and state.at not in OVER:
        state.pausing = state.paused = True
    return state


@lru_cache(maxsize=64)
def _instructions(text: str) -> Message:
    """The leading message, made once for all runs of an agent."""
    return Message(_SYSTEM, (Text(text),))


def _take_over(state: State, carried: Carried) -> None:
    """Count on from where a run before this one had come to."""
    state.carried = carried
    state.turn = carried.step
    state.usage = carried.usage
    state.retries = carried.retries
    state.tool_retries = dict(carried.tool_retries or {})
    if state.tool_state is None:
        state.tool_state = carried.tool_state


def admitted(state: State, event: Admitted) -> None:
    """The prompt functions have spoken, or the input was refused."""
    if event.error is not None:
        fail(state, event.error)
        return
    if event.instructions:
        instruct(state, event.instructions, more=bool(state.spec.instructions))
    if event.prompt is not None and state.history[-1].role is _USER:
        if state.prompt is None:  # it was the last message of the history that was looked at
            state.history[-1] = event.prompt
        else:
            state.asked = state.prompt
            replace_prompt(state, event.prompt)
    next_turn(state)


# From outside


def signal_received(state: State, event: SignalReceived) -> None:
    """Somebody said something to the loop."""
    signal = event.signal
    if signal.id:
        state.signals = (*state.signals, signal.id)
    if signal.type is SignalType.CANCEL:
        _cancelled(state, signal)
    elif signal.type is SignalType.PAUSE:
        pause(state)
    elif signal.type is SignalType.RESUME:
        state.pausing = state.paused = False
        state.finishing = ()
    elif signal.type is SignalType.FEEDBACK:
        if state.paused and state.at in ("prepare", "compact", "infer"):
            say(state, (Text(signal.text),))  # the request has not been made yet
            if state.at == "infer" and state.spec.prepares:
                # It was prepared without that: it is as if the turn had not been, and the next one is.
                state.turn += 1
                state.offered, state.definitions = None, ()
                state.at = "prepare"
        elif state.at == "approve" and not state.stopping and may_go_on(state):
            refuse_answer(state, signal.text)
        else:
            state.feedback = (*state.feedback, signal.text)
    elif signal.type in FOR_APPROVAL and state.at == "approve":
        _answer_judged(state, signal)
    elif signal.type is SignalType.APPROVE:
        meant = meant_by(state, signal)
        state.awaiting = tuple([index for index in state.awaiting if index not in meant])
    elif signal.type is SignalType.REJECT:
        for index in meant_by(state, signal):
            deny(state, index, signal.text)
        if state.at == "execute":
            results_came(state)
    elif signal.type is SignalType.DETACH:
        asked = detachable(state, signal.call_id)
        state.detached = (*state.detached, *[index for index in asked if index not in state.detached])


def _answer_judged(state: State, signal: Signal) -> None:
    """Somebody has decided whether the answer that waits is the last one."""
    if signal.type is SignalType.APPROVE:
        end(state, Outcome.SUCCESS)
    else:
        why = f": {signal.text}" if signal.text else ". Give another one."
        refuse_answer(state, f"The answer was not approved{why}")


def _cancelled(state: State, signal: Signal) -> None:
    who = f" by {signal.by}" if signal.by else ""
    why = f": {signal.text}" if signal.text else ""
    state.error = CancelledSignal(f"cancelled{who}{why}", by=signal.by, reason=signal.text).record()
    end(state, Outcome.CANCELLED)


def decides(state: State, signal: Signal) -> bool:
    """Whether a signal decides about something that waits here: calls, or the answer."""
    if state.at == "approve":
        return signal.call_id is None or signal.call_id == answer_id(state)
    return bool(meant_by(state, signal))


def meant_by(state: State, signal: Signal) -> tuple[int, ...]:
    """Which of the waiting calls a signal is about."""
    if signal.call_id is None:
        return state.awaiting
    return tuple([index for index in state.awaiting if state.calls[index].id == signal.call_id])


def child_started(state: State, event: ChildStarted) -> None:
    """A loop is begun under this one."""
    state.children = (*state.children, event.loop_id)


def child_ended(state: State, event: ChildEnded) -> None:
    """A loop under this one is over: what it used, this one has used."""
    state.usage = state.usage.add_below([call.usage for call in event.spent], event.requests)
    state.called.append(event)


def time_passed(state: State, event: TimePassed) -> None:
    """The deadline is there: the run's own, or that of the run which it was begun from."""
    timeout = state.spec.limits.timeout
    if timeout is None or (state.attempt == 1 and event.at < state.started_at + timeout):
        error = CancelledTimeout("the time of the run that it was begun from passed", limit="timeout")
    else:
        error = CancelledTimeout(
            f"the run's time-out of {timeout:g} s passed", timeout=timeout, limit="timeout"
        )
    state.error = error.record()
    end(state, Outcome.CANCELLED)


def stage_moved(state: State, event: StageMoved) -> None:
    """Somebody moved the stage by hand."""
    state.stage = event.stage


def resumed(state: State, event: Resumed) -> None:
    """Another driver took over: calls that may not start twice, and had started, are interrupted."""
    state.epoch = event.epoch
    if state.at != "execute":
        return
    for index in unfinished_once(state):
        state.results[index] = interrupted(state.calls[index])
        state.open -= 1
    results_came(state)


# The end, and beginning again


def delivered(state: State, _: Delivered) -> None:
    """What had to happen at the end has."""
    state.at = "end"


def ended(state: State, _: Ended) -> None:
    """The loop is over. How it ended was decided before; the event says it to whoever reads the journal."""
    state.at = "done"


def reopened(state: State, event: Reopened) -> None:
    """Another attempt, from where the last one failed."""
    state.attempt += 1
    if event.id:
        state.signals = (*state.signals, event.id)
    error = state.error
    _begin_anew(state, event.at)
    if state.history and state.history[-1].role is Role.ASSISTANT:
        reason = f" ({error.message[:500]})" if error is not None else ""
        say(state, (Retry(f"That did not work{reason}. Try again."),))
    if (breach := state.spec.limits.at_depth(state.depth)) is not None:
        fail(state, breach)
    else:
        next_turn(state)


def forked(state: State, event: Forked) -> None:
    """Another loop, which goes on from this history under its own spec, and perhaps another prompt."""
    over = state.at in OVER
    if event.spec.compactor != state.spec.compactor:
        state.compaction = None
    state.loop_id = event.loop_id
    if event.prompt is not None or event.spec.tool_choice != state.spec.tool_choice:
        state.tool_choice = event.spec.tool_choice  # else it may have been met in the turns that they share
    state.spec = event.spec
    state.epoch, state.attempt = 0, 1
    state.parent_loop_id, state.depth, state.children = "", 0, ()  # a fork stands by itself
    state.identity = event.identity
    if event.metadata is not None:
        state.metadata = event.metadata
    state.started_at = event.at
    reflections = (
        None if over else state.reflections
    )  # those of the turns that it shares, on the same question
    _begin_anew(state, event.at)
    state.reflections = reflections
    instruct(state, (event.spec.instructions,) if event.spec.instructions else ())
    turns = state.turn - turns_before(state)
    at_the_beginning = turns == 0 or (turns == 1 and not over)
    prompt = event.prompt or (state.asked if at_the_beginning else None)
    if prompt is not None:
        if at_the_beginning:
            replace_prompt(state, prompt)
        else:
            say(state, prompt.parts)
            state.prompt = prompt
        state.asked = None
    if event.spec.admits:
        # The new agent's prompt functions are asked too; then the turn begins.
        state.at = "admit"
        state.turn -= not over
    elif over:
        next_turn(state)
    else:
        state.at = "prepare" if event.spec.prepares else "infer"


def _begin_anew(state: State, at: float) -> None:
    """Forget the end and whatever was counted on the way to it; the time begins anew."""
    state.outcome = state.error = state.answer = state.answer_tool = None
    state.output, state.output_kind = UNSET, ""
    state.iterations = state.retries = 0
    state.tool_retries = {}
    state.reflections = None
    state.recent = state.rounds = ()
    state.pausing = state.paused = False
    state.finishing = ()
    state.stage = None
    state.sent = state.reviewing = state.offered = state.unread = state.mended = None
    state.definitions, state.stopping = (), ""
    timeout = state.spec.limits.timeout
    state.deadline = None if timeout is None else at + timeout

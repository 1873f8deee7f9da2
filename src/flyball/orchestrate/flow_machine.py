"""The machine of a flow: pipelines, plans, votes. Events in, effects owed. As pure as an agent's.

The rules are those of `machine`: two machines that saw the same events agree; what does not fit is dropped
before it is recorded; an effect is owed until an event answers it, and has the same id each time.

    position   owes                                        and moves on with
    run        RunStep (one a leaf that has its input)     StepEnded
               SignalChild, Wait                           SignalReceived, TimePassed
    end        End                                         Ended
    done       nothing                                     Reopened

A flow is a tree of nodes (`FlowNode`). Leaves are run; what the others come to follows from what their leaves
gave (`flow_nodes`), and nothing of it is journaled. Each event moves only what it concerns: a long pipeline
costs no more for each of its steps than a short one.

With its output a leaf passes on a conversation: that of the loop it was run as, or else the one that it was
given. So a step may go on with what an agent before it said, and nothing of that is kept twice.

A node may be planned: then its structure is what its first step gave, which is in the journal as that step's
output. So a flow that was planned is gone on with by the plan that was made, and nobody plans again.

A leaf that fails for good ends the flow, which then has the leaf's error, with the step named; unless a
redundant node is above it. A retry of the flow runs the leaves that had not ended anew, and no others; where
nothing could be made of what redundant steps gave, those of them that had failed, too (`flow_retry`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast
from zlib import crc32

from msgspec.structs import replace

from flyball.core.effects import End, FlowEffect, RunStep, SignalChild, Wait
from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    FailureCategory,
    JournalCorrupt,
    StepFailed,
    SystemError,  # noqa: A004 - pagantic's name for it
)
from flyball.core.events import (
    ChildStarted,
    Ended,
    Event,
    FlowStarted,
    Outcome,
    Reopened,
    Resumed,
    SignalReceived,
    StepEnded,
    TimePassed,
)
from flyball.core.flow import FlowNode, node_at
from flyball.core.limits import Limits
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.flow_loops import children_of, step_loop
from flyball.orchestrate.flow_nodes import again, begin, gave, no_plan, outlived
from flyball.orchestrate.flow_retry import reask
from flyball.orchestrate.flow_state import FlowState, Ready

# Folding


def start(event: FlowStarted) -> FlowState:
    """The state of a flow that has just begun."""
    state = FlowState(
        event.loop_id,
        event.flow,
        event.input,
        "run",
        event.at,
        event.timeout,
        None if event.timeout is None else event.at + event.timeout,
        event.correlation,
        event.metadata,
        event.parent_loop_id,
        event.depth,
        event.max_depth,
        event.identity,
    )
    if event.deadline is not None and (state.deadline is None or event.deadline < state.deadline):
        state.deadline = event.deadline
    begin(state, event.flow, "", event.input, "")
    _check_depth(state)
    return state


def accepts(state: FlowState, event: Event) -> bool:
    """Whether an event fits here. What does not is dropped before it is recorded."""
    fits = _ACCEPTS.get(type(event))
    return fits is not None and fits(state, event)


def take(state: FlowState, event: Event) -> bool:
    """Fold an event if it fits; whether it did."""
    if not accepts(state, event):
        return False
    _APPLY[type(event)](state, event)
    return True


def fold(events: Iterable[Event], place: str = "journal") -> FlowState:
    """The state that a flow's whole journal leads to.

    Raises:
        JournalCorrupt: it is empty, does not begin with FlowStarted, or an event does not fit.
    """
    state: FlowState | None = None
    for number, event in enumerate(events):
        if state is None:
            if not isinstance(event, FlowStarted):
                raise JournalCorrupt(f"{place}: begins with {type(event).__name__}, not with FlowStarted")
            state = start(event)
        elif not take(state, event):
            raise JournalCorrupt(
                f"{place}: event {number}, {type(event).__name__}, does not fit: "
                f"the flow stands at {state.at!r}",
                number=number,
            )
    if state is None:
        raise JournalCorrupt(f"{place}: no events")
    return state


# What is owed


def owed(state: FlowState) -> list[FlowEffect]:
    """The effects owed now. A function of the state alone."""
    if state.at != "run":
        return [] if state.at == "done" else [_owed_end(state)]
    effects: list[FlowEffect] = [
        RunStep(
            step_effect(state, leaf.path, leaf.attempt),
            leaf.path,
            leaf.input,
            leaf.attempt,
            step_loop(state.loop_id, leaf.path, leaf.attempt),
            leaf.history,
            leaf.after,
        )
        for leaf in state.ready.values()
        if not state.paused or leaf.path in state.finishing
    ]
    if (signal := state.passed_on) is not None:
        effects += [SignalChild(f"{signal.id}/{name}", name, signal) for name in _children_of_ready(state)]
    if state.dropped:
        cancel = Signal(SignalType.CANCEL, f"{state.loop_id}/{state.attempt}/dropped", "parent", "not needed")
        effects += [
            SignalChild(f"{cancel.id}/{name}", name, cancel) for name in children_of(state, state.dropped)
        ]
    if state.paused:
        effects.append(Wait(_wait_id(state, 0), (SignalType.RESUME,)))
    if state.deadline is not None:
        effects.append(Wait(_wait_id(state, 1), until=state.deadline))
    return effects


def step_effect(state: FlowState, path: str, attempt: int) -> str:
    """The name of the effect by which a leaf is run: the same each time it is owed."""
    return f"{state.loop_id}/{state.attempt}/{path}/step/{attempt}"


def _owed_end(state: FlowState) -> End:
    """The end. Whatever still runs under a flow that is over is told so first."""
    cancels = (*_children_of_ready(state), *children_of(state, state.dropped))
    return End(f"{state.loop_id}/{state.attempt}/end", state.outcome or Outcome.FAILED, state.error, cancels)


def _wait_id(state: FlowState, index: int) -> str:
    return f"{state.loop_id}/{state.attempt}/wait/{index}"


def _children_of_ready(state: FlowState) -> tuple[str, ...]:
    loops = [step_loop(state.loop_id, leaf.path, leaf.attempt) for leaf in state.ready.values()]
    return children_of(state, loops)


# Events


def _step_ended(state: FlowState, event: StepEnded) -> None:
    leaf = state.ready[event.path]
    state.ended[event.path] = event
    if event.usage is not None:
        state.usage += event.usage
    error = event.error or no_plan(state, event.path, event.output)
    if error is None:
        del state.ready[event.path]
        gave(state, event.path, event.output, event.loop_id or leaf.history)
    elif error.code == CancelledTimeout.code and state.deadline is not None and event.at >= state.deadline:
        _time_passed(state, TimePassed(event.at))  # what ended the step was the flow's own deadline
    elif _may_be_tried(node := node_at(state.flow, event.path), leaf, error, event.again):
        if error.code == CancelledTimeout.code:  # what it had begun may still be at it
            state.dropped = (*state.dropped, step_loop(state.loop_id, leaf.path, leaf.attempt))
        again(state, leaf, leaf.tries + 1, _time_of_retry(state, node, leaf, event.at))
    elif not outlived(state, event.path, error):
        state.error, state.outcome, state.at = _named(state, event, error), Outcome.FAILED, "end"


def _may_be_tried(node: FlowNode, leaf: Ready, error: SystemError, judged: bool) -> bool:
    """Whether a leaf that has failed is tried again. What is set up wrongly, or cancelled, is not."""
    if leaf.tries >= node.retries or (error.code != CancelledTimeout.code and error.category in _FINAL):
        return False
    if node.judged:
        return judged
    if node.retried is None:
        return True
    if not node.retried:
        return error.retryable or error.code == StepFailed.code  # what no error of ours is says nothing of it
    return error.retryable and error.category in node.retried


def _time_of_retry(state: FlowState, node: FlowNode, leaf: Ready, now: float) -> float:
    """When a leaf is tried again. Chance is by the name of what is to be done: the same for who folds it."""
    if node.backoff is None:
        return 0.0
    chance = crc32(step_effect(state, leaf.path, leaf.attempt).encode()) / 2**32
    return now + node.backoff.wait(leaf.tries + 1, chance)


def _named(state: FlowState, event: StepEnded, error: SystemError) -> SystemError:
    """A step's error as the flow's own: it says which step it was."""
    name = node_at(state.flow, event.path).name
    details = {**(error.details or {}), "step": name, "path": event.path}
    if event.loop_id:
        details["loop_id"] = event.loop_id
    named = replace(error, message=f"step {name!r} ({event.path}): {error.message}", details=details)
    # Where it was raised, if that was here; see `FlyballError.record`.
    cast("dict[str, Any]", named.__dict__).update(error.__dict__)
    return named


def _signal_received(state: FlowState, event: SignalReceived) -> None:
    signal = event.signal
    if signal.id:
        state.signals = (*state.signals, signal.id)
    if signal.type is SignalType.CANCEL:
        who = f" by {signal.by}" if signal.by else ""
        why = f": {signal.text}" if signal.text else ""
        state.error = CancelledSignal(f"cancelled{who}{why}", by=signal.by, reason=signal.text).record()
        state.outcome, state.at = Outcome.CANCELLED, "end"
        return
    state.paused = signal.type is SignalType.PAUSE
    state.pauses += state.paused
    runs = [path for path, leaf in state.ready.items() if leaf.after <= event.at]
    state.finishing = tuple(runs) if state.paused else ()
    name = f"{state.loop_id}/{state.attempt}/{signal.type}/{state.pauses}"
    state.passed_on = Signal(signal.type, name, "parent", signal.text)


def _time_passed(state: FlowState, event: TimePassed) -> None:
    """The deadline is there: the flow's own, or that of the run which it was begun from."""
    timeout = state.timeout
    if timeout is None or (state.attempt == 1 and event.at < state.started_at + timeout):
        error = CancelledTimeout("the time of the run that it was begun from passed", limit="timeout")
    else:
        error = CancelledTimeout(
            f"the flow's time-out of {timeout:g} s passed", timeout=timeout, limit="timeout"
        )
    state.error = error.record()
    state.outcome, state.at = Outcome.CANCELLED, "end"


def _child_started(state: FlowState, event: ChildStarted) -> None:
    state.children = (*state.children, event.loop_id)


def _resumed(state: FlowState, event: Resumed) -> None:
    state.epoch = event.epoch
    state.finishing = ()  # what ran did so in the former driver: while it is paused, nothing begins


def _ended(state: FlowState, _: Ended) -> None:
    state.at = "done"


def _reopened(state: FlowState, event: Reopened) -> None:
    """Another attempt: what had no output is run anew, in loops of its own; the time begins anew, too."""
    state.attempt += 1
    if event.id:
        state.signals = (*state.signals, event.id)
    state.outcome = state.error = state.passed_on = None
    state.paused, state.finishing = False, ()
    state.at = "run"
    state.deadline = None if state.timeout is None else event.at + state.timeout
    stood = tuple(state.ready.values())
    reask(state)
    for leaf in stood:
        if state.ready.get(leaf.path) is leaf:
            again(state, leaf, 0)
    _check_depth(state)


def _check_depth(state: FlowState) -> None:
    if state.depth and (breach := Limits(max_depth=state.max_depth).at_depth(state.depth)) is not None:
        state.error, state.outcome, state.at = breach.record(), Outcome.FAILED, "end"


# What fits


def _accepts_end(state: FlowState, event: StepEnded) -> bool:
    leaf = state.ready.get(event.path)
    return state.at == "run" and leaf is not None and leaf.attempt == event.attempt


def _accepts_signal(state: FlowState, event: SignalReceived) -> bool:
    signal = event.signal
    if state.at != "run" or (signal.id and signal.id in state.signals):
        return False
    if signal.type is SignalType.PAUSE:
        return not state.paused
    if signal.type is SignalType.RESUME:
        return state.paused
    return signal.type is SignalType.CANCEL  # the others are for the loops under it


def _accepts_child(state: FlowState, event: ChildStarted) -> bool:
    """Nothing is begun under a flow that is over."""
    return state.at == "run" and event.loop_id not in state.children and event.loop_id != state.loop_id


def _accepts_retry(state: FlowState, event: Reopened) -> bool:
    again = event.id and event.id in state.signals
    return state.at == "done" and state.outcome is not Outcome.SUCCESS and not again


_FINAL = frozenset({FailureCategory.CONFIGURATION, FailureCategory.CANCELLATION})
"""The failures that trying again does not mend; a time-out is a cancellation that it may."""

_ACCEPTS: dict[type[Any], Callable[[FlowState, Any], bool]] = {
    StepEnded: _accepts_end,
    ChildStarted: _accepts_child,
    SignalReceived: _accepts_signal,
    TimePassed: lambda state, event: (
        state.at == "run" and state.deadline is not None and event.at >= state.deadline
    ),
    Resumed: lambda state, event: state.at != "done" and event.epoch == state.epoch + 1,
    Ended: lambda state, event: state.at == "end" and event.outcome is state.outcome,
    Reopened: _accepts_retry,
}

_APPLY: dict[type[Any], Callable[[FlowState, Any], None]] = {
    StepEnded: _step_ended,
    ChildStarted: _child_started,
    SignalReceived: _signal_received,
    TimePassed: _time_passed,
    Resumed: _resumed,
    Ended: _ended,
    Reopened: _reopened,
}

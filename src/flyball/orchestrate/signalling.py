"""Signals to a loop: as events, which of them fit where it stands, and the error where one does not."""

from __future__ import annotations

from collections.abc import Iterable

from flyball.core.errors import SignalRefused
from flyball.core.events import Event, Reopened, SignalReceived, Stage
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.approvals import approvals
from flyball.orchestrate.calls import detachable
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.machines import AnyState, accepts
from flyball.orchestrate.machines import stage as stage_of


def as_signal(
    signal: Signal | SignalType | str, text: str = "", call_id: str | None = None, by: str = ""
) -> Signal:
    """A signal that was given whole, or by its word; what else is given here is for the latter.

    Raises:
        UserError: there is no such signal.
    """
    if isinstance(signal, Signal):
        return signal
    return Signal(signal, text=text, call_id=call_id, by=by)  # pyright: ignore[reportArgumentType] - it looks


def signal_event(signal: Signal, at: float) -> SignalReceived | Reopened:
    """The event of a signal."""
    if signal.type is SignalType.RETRY:
        return Reopened(at, signal.by, signal.id)
    return SignalReceived(at, signal)


def fitting(state: AnyState) -> tuple[SignalType, ...]:
    """Which signals fit where a loop stands, to whatever call they are, if they say something."""
    return tuple([kind for kind in SignalType if accepts(state, signal_event(Signal(kind, text="…"), 0.0))])


def stage_if_taken(state: AnyState, signal: Signal | None = None) -> Stage:
    """The stage that a loop is in. `signal` is one that did not fit: it must have been taken before.

    Raises:
        SignalRefused: it was not.
    """
    stage = stage_of(state)
    if signal is None or (signal.id and signal.id in state.signals):
        return stage
    if (
        signal.type is SignalType.DETACH
        and not isinstance(state, FlowState)
        and detachable(state, signal.call_id)
    ):
        return stage  # all that run have been asked before, and asking again is the same
    fits = fitting(state)
    raise SignalRefused(
        f"loop {state.loop_id!r} is {stage} and takes no {signal.type}: {_why(state, signal, fits)}",
        loop_id=state.loop_id,
        signal=str(signal.type),
        stage=str(stage),
        fits=[str(kind) for kind in fits],
    )


def see_that_it_is_the_same(events: Iterable[Event], signal: Signal) -> None:
    """See that what a loop has recorded under a signal's id is that signal, and not another's or another.

    Raises:
        SignalRefused: it is not: this one was never taken.
    """
    if not signal.id:
        return
    for event in events:
        if isinstance(event, Reopened):
            known = Signal(SignalType.RETRY, event.id, event.by)
        elif isinstance(event, SignalReceived):
            known = event.signal
        else:
            continue
        if known.id == signal.id and (known.type, known.by) != (signal.type, signal.by):
            raise SignalRefused(
                f"the id {signal.id[:100]!r} is that of the {known.type} by {known.by or 'nobody'}: "
                f"this {signal.type} was not taken, give it an id of its own",
                signal=str(signal.type),
                id=signal.id,
            )


def _why(state: AnyState, signal: Signal, fits: tuple[SignalType, ...]) -> str:
    if signal.type not in fits:
        return f"what fits now is {', '.join(fits)}" if fits else "nothing fits any more"
    if signal.type is SignalType.FEEDBACK and not signal.text:
        return "it has no text, and says nothing"
    if signal.type is SignalType.DETACH:
        return f"no call {signal.call_id!r} runs"
    assert not isinstance(state, FlowState), "a flow takes no signals about calls"
    waiting = ", ".join([call.id for call in approvals(state)])
    return f"no call {signal.call_id!r} waits for that, but {waiting}"

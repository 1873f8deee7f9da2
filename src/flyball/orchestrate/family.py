"""A loop and all that stand under it: which of them wait, and whom a signal or a result is for.

A person talks to the loop that he began. What is meant for one under it reaches that one: a pause and what
ends it reach all, an approval those that wait for one, a result from outside the call that waits for it. It
is recorded there, in the journal of the loop that it is for, and so survives whatever happens to the others.
A cancel goes another way: each loop tells its own children as it ends (`children`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import AnswerRefused, SignalRefused
from flyball.core.events import Stage
from flyball.core.ids import new_id
from flyball.core.messages import ToolCall
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.approvals import approvals
from flyball.orchestrate.calls import awaits_approval
from flyball.orchestrate.commands import call_to_run
from flyball.orchestrate.course import FOR_APPROVAL, OVER, decides
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.lifecycle import stage_of
from flyball.orchestrate.machines import AnyState, fold
from flyball.orchestrate.state import State

Offer: TypeAlias = Callable[[str, Signal], Awaitable[bool]]
"""Says something to a loop: it is recorded when this returns. False if it does not fit there."""
_FOR_ALL = (SignalType.PAUSE, SignalType.RESUME)


class WaitingCall(Struct, frozen=True):
    """A tool call that waits for somebody: for an approval, or for its result from outside.

    `loop_id` is the loop that has asked for it: the one that was looked at, or one under it. With `answer` it
    is no call, but the loop's answer, which waits for approval: `call` has what it is, under `answer`.
    """

    loop_id: str
    agent: str
    call: ToolCall
    wants: Literal["approval", "result"]
    answer: bool = False

    def __str__(self) -> str:
        what = "to be approved" if self.wants == "approval" else "for its result"
        return f"{self.call.name} ({self.call.id}) of {self.agent}, loop {self.loop_id}, waits {what}"


async def loops_below(journal: Journal, state: AnyState) -> list[AnyState]:
    """The loops under one, to any depth, as they are recorded now; each before those under it."""
    found: list[AnyState] = []
    seen, waiting = {state.loop_id}, [state]
    while waiting:
        above = waiting.pop()
        for child in above.children:
            events = [] if child in seen else await journal.read(child)
            seen.add(child)
            if events and (below := fold(events, f"loop {child}")).parent_loop_id == above.loop_id:
                found.append(below)
                waiting.append(below)
    return found


async def waiting_calls(journal: Journal, state: AnyState) -> tuple[WaitingCall, ...]:
    """The calls of a loop, and of those under it, that wait for somebody."""
    found: list[WaitingCall] = []
    for one in (state, *await loops_below(journal, state)):
        if isinstance(one, State):
            found += [_waiting(one, call, "approval") for call in approvals(one)]
        if isinstance(one, State) and one.at == "execute":
            found += [_waiting(one, call_to_run(one, index), "result") for index in sorted(one.deferred)]
    return tuple(found)


async def family_stage(journal: Journal, state: State) -> Stage:
    """The stage that a loop is in for who looks at all of it: one under it may wait for an approval."""
    stage = stage_of(state)
    if state.at != "execute" or not state.children or stage is Stage.PAUSED:
        return stage
    waits = await waiting_calls(journal, state)
    return Stage.AWAITING_APPROVAL if any(one.wants == "approval" for one in waits) else stage


def _waiting(state: State, call: ToolCall, wants: Literal["approval", "result"]) -> WaitingCall:
    return WaitingCall(state.loop_id, state.spec.agent, call, wants, state.at == "approve")


# Signals


async def pass_on(journal: Journal, state: AnyState, signal: Signal, taken: bool, offer: Offer) -> bool:
    """Say a signal that came to a loop to those under it which it concerns; whether it was for one of them.

    `state` is the loop's, `taken` whether it has taken it itself. What is said again is taken once.

    Raises:
        SignalRefused: a call is named that waits in more than one of them.
    """
    if not state.children or (state.at in OVER and signal.type not in FOR_APPROVAL):
        return False  # an architect is over while what its editor would do waits
    again = bool(signal.id) and signal.id in state.signals
    if not signal.id:
        signal = replace(signal, id=new_id())  # so that it is taken once, wherever it gets on several ways
    if signal.type in _FOR_ALL and (taken or again):
        for below in await loops_below(journal, state):
            if below.at not in OVER:
                await offer(below.loop_id, signal)
        return True
    named = signal.call_id is not None
    if signal.type not in FOR_APPROVAL or (named and (taken or again)):
        return False
    below = await loops_below(journal, state)
    known = bool(signal.id) and any(signal.id in one.signals for one in below)
    if named and known:
        return True
    waiting = [
        one.loop_id
        for one in below
        if isinstance(one, State) and awaits_approval(one) and decides(one, signal)
    ]
    if named and len(waiting) > 1:
        raise SignalRefused(
            f"call {signal.call_id!r} waits in more than one loop under {state.loop_id!r}: send the signal "
            f"to one of {', '.join(waiting)}",
            loop_id=state.loop_id,
            signal=str(signal.type),
            waiting=waiting,
        )
    said = [await offer(loop_id, signal) for loop_id in waiting]
    return any(said) or known


# Results from outside


async def loops_of_calls(journal: Journal, state: State, calls: list[str]) -> dict[str, str]:
    """The loop that each of these calls belongs to, by their ids: the one whose call waits for a result.

    That is the loop itself, where no loop under it has such a call.

    Raises:
        AnswerRefused: a call waits in more than one of them.
    """
    waiting = [state.calls[index].id for index in state.deferred]
    if not state.children or all(call in waiting for call in calls):
        return dict.fromkeys(calls, state.loop_id)
    below = [one for one in await loops_below(journal, state) if isinstance(one, State)]
    family = (state, *below)
    return {call: _loop_of(family, call) for call in calls}


def _loop_of(family: tuple[State, ...], call: str) -> str:
    waiting = [one.loop_id for one in family if any(one.calls[index].id == call for index in one.deferred)]
    if len(waiting) > 1:
        raise AnswerRefused(
            f"call {call!r} waits in more than one loop: answer one of {', '.join(waiting)} itself",
            call_id=call,
            waiting=waiting,
        )
    # One that was answered before, and goes on or is over, knows the call still.
    known = [one.loop_id for one in family[1:] if call in one.ids and call not in family[0].ids]
    return (*waiting, *known, family[0].loop_id)[0]

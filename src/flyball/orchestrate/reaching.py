"""What really reached the model, where middleware changed what the loop sent. As pure as the machine.

The base of middleware's edits is what reached the model last, with what is sent since, as `sending.base` is
that of an interceptor's.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from flyball.core.around import Around
from flyball.core.edits import edited, edits_between, fits
from flyball.core.effects import Infer
from flyball.core.events import Event, ModelAnswered, ModelFailed
from flyball.core.messages import Message
from flyball.core.spec import Purpose
from flyball.orchestrate.requests import request_for
from flyball.orchestrate.sending import outgoing
from flyball.orchestrate.state import State
from flyball.orchestrate.version import brought_up, version_of

BESIDE: dict[str, Purpose] = {"repair": "repair", "compact": "compact"}
"""The positions of model calls that are made for something else than the turn, and what for."""


def base(state: State) -> Sequence[Message]:
    """What the edits of middleware are against: what reached the model last, with what is sent since."""
    return _asked(state) if state.at in BESIDE else brought_up(state.reached, outgoing(state))


def _asked(state: State) -> Sequence[Message]:
    """The messages of the request that is owed."""
    purpose = BESIDE.get(state.at)
    return outgoing(state) if purpose is None else request_for(state, Infer("", state.turn, purpose)).messages


def can_be(state: State, around: Around) -> bool:
    """Whether this can have been done around the call that is owed, and is as it is recorded."""
    if around.fresh:
        return False
    length = len(base(state))
    return all(fits(sent.edits, length) for sent in around.sent)


def reach(state: State, around: Around | None) -> None:
    """A turn's call has ended: take what reached the model, where that is not just what the loop sent."""
    if around is not None and not around.sent:
        return  # the model was not called: what reached it last is what it was
    if around is None:
        state.reached = None
    else:
        state.reached = version_of(outgoing(state), edited(base(state), around.sent[-1].edits))


def as_recorded(event: Event, state: State) -> Event:
    """The event of a call as it is recorded; any other as it is."""
    if type(event) is not ModelAnswered and type(event) is not ModelFailed:
        return event
    around = event.around
    if around is None or not around.fresh or not (state.at == "infer" or state.at in BESIDE):
        return event
    messages, there = _asked(state), base(state)
    if not all(fits(sent.edits, len(messages)) for sent in around.sent):
        return event  # it is of another request, and fits nowhere
    sent = [
        replace(one, edits=edits_between(there, edited(messages, one.edits)))
        if state.reached is not None
        else one
        for one in around.sent
    ]
    return replace(event, around=replace(around, sent=tuple(sent), fresh=False))

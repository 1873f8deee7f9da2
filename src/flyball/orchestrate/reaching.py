"""What really reached the model, where middleware changed what the loop sent. As pure as the machine.

Middleware begins from the loop's request each time and comes to much the same; so what is recorded is only
in what it differs from what reached the model last, with what is new since. That is the base of its edits,
as `sending.base` is that of an interceptor's.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from flyball.core.around import Around
from flyball.core.edits import edited, edits_between, fits
from flyball.core.effects import Infer
from flyball.core.events import Event, ModelAnswered, ModelFailed
from flyball.core.messages import Message
from flyball.orchestrate.repair_request import repair_request
from flyball.orchestrate.state import State


def base(state: State) -> Sequence[Message]:
    """What the edits of middleware are against: what reached the model last, with what is sent since."""
    messages = _asked(state)
    if state.reached is None or state.at == "repair":
        return messages
    return [*state.reached, *messages[state.reached_from :]]


def _asked(state: State) -> Sequence[Message]:
    """The messages of the request that is owed."""
    if state.at == "repair":
        return repair_request(state, Infer("", state.turn, "repair")).messages
    return state.history if state.sent is None else state.sent


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
    messages = state.history if state.sent is None else state.sent
    reached = messages if around is None else edited(base(state), around.sent[-1].edits)
    state.reached, state.reached_from = (None, 0) if reached == messages else (list(reached), len(messages))


def as_recorded(event: Event, state: State) -> Event:
    """The event of a call as it is recorded; any other as it is."""
    if type(event) is not ModelAnswered and type(event) is not ModelFailed:
        return event
    around = event.around
    if around is None or not around.fresh or state.at not in ("infer", "repair"):
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

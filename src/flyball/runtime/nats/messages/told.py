"""What a loop is told: that it is wanted, what came of its calls, signals, and that its time has come."""

from __future__ import annotations

import time

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import FlyballError, InvalidMessage
from flyball.core.events import (
    ChildEnded,
    Event,
    ModelAnswered,
    ModelFailed,
    SignalReceived,
    Started,
    TimePassed,
    ToolReturned,
)
from flyball.core.forms.semstreams import (
    SEVEN,
    AgentResponse,
    Envelope,
    SignalMessage,
    TaskMessage,
    UserSignal,
)
from flyball.core.messages import ToolResult
from flyball.core.signals import Signal
from flyball.core.spec import Purpose
from flyball.inference.request import Result
from flyball.orchestrate.commands import Report
from flyball.orchestrate.machine import start
from flyball.orchestrate.performers import model_answered, model_failed
from flyball.orchestrate.reaching import BESIDE
from flyball.orchestrate.signalling import signal_event
from flyball.orchestrate.task_facts import role_of
from flyball.orchestrate.task_loops import task_of
from flyball.runtime.nats.messages.frame import not_for, own, read_exact, read_payload, write

_FROM_OUTSIDE = (Started, ModelAnswered, ModelFailed, ToolReturned, SignalReceived, TimePassed, ChildEnded)
_ON: dict[str, tuple[type[Event], ...]] = {
    "agent.response.": (ModelAnswered, ModelFailed),
    "tool.result.": (ToolReturned, ChildEnded),
}
NOBODY = "flyball"
"""Who a signal is from, where nobody said: it must be from somebody."""


class Returned(Struct, frozen=True):
    """A tool's result from somebody else, who does not know where in the turn the call stands."""

    loop_id: str
    at: float
    result: ToolResult


_PURPOSES: dict[str, Purpose] = {"infer": "turn", **BESIDE}
"""What a model is called for, by the kind of the effect."""

Told = Report | TaskMessage | Returned
"""What comes to a loop worker."""


class NotOurs(Exception):  # noqa: N818 - what is the case, and no error of anybody's
    """It answers what no loop of flyball's has asked: another loop component shares the wire."""


def write_task(started: Started) -> bytes:
    """That a loop is wanted, as a message."""
    return write(
        task_of(started, role_of(start(started))), f"{started.loop_id}/task", Report(started.loop_id, started)
    )


def as_read(signal: Signal) -> Signal:
    """A signal as whoever reads its message has it: SemStreams' have somebody who sends them."""
    return replace(signal, by=NOBODY) if signal.type in SEVEN and not signal.by else signal


def write_signal(loop_id: str, signal: Signal, at: float) -> bytes:
    """A signal as a message: the payload says all of it, where SemStreams has one for it."""
    if signal.type not in SEVEN:
        return own("signal", signal.id, Report(loop_id, SignalReceived(at, signal)))
    payload = UserSignal.of(signal, loop_id, at=at)
    if not signal.by:
        payload = UserSignal(
            signal_id=payload.signal_id,
            type=payload.type,
            loop_id=loop_id,
            user_id=NOBODY,
            payload=payload.payload,
            timestamp=at,
        )
    return write(payload, signal.id)


def write_time(loop_id: str, effect: str, at: float) -> bytes:
    """That a time has come, as a message."""
    return own("time", f"{effect}/timer", Report(loop_id, TimePassed(at)))


def write_ended(loop_id: str, child: ChildEnded) -> bytes:
    """That a loop under another is over, as a message to that one; what it used is recorded there by now."""
    said = replace(child, spent=(), requests=0)
    return own("ended", f"{child.loop_id}/ended", Report(loop_id, said))


def read_told(data: bytes, place: str) -> Told:
    """What a message says to a loop: nothing that a loop decides by itself.

    Raises:
        InvalidMessage: it says nothing to one.
        NotOurs: it answers somebody else's loop.
    """
    exact = read_exact(data, Report, place)
    if exact is None:
        return _from_others(read_payload(data, place), place)
    if not isinstance(exact.event, _said_on(place)):
        kind = type(exact.event).__name__
        raise InvalidMessage(f"{kind} is not for others to say on {place}", subject=place)
    return exact


def _said_on(place: str) -> tuple[type[Event], ...]:
    """What may be said on a subject: who may answer for tools need not be one who may answer for models."""
    return next((kinds for start, kinds in _ON.items() if place.startswith(start)), _FROM_OUTSIDE)


def _from_others(envelope: Envelope, place: str) -> Told:
    payload, at = envelope.payload, envelope.created_at or time.time()
    if (place.startswith("tool.result.") and not isinstance(payload, ToolResult)) or (
        place.startswith("agent.response.") and not isinstance(payload, AgentResponse)
    ):
        raise not_for(place, payload, "a tool result" if place.startswith("tool.") else "a response")
    if isinstance(payload, TaskMessage):
        return payload
    if isinstance(payload, UserSignal | SignalMessage):
        return Report(payload.loop_id, signal_event(payload.signal, payload.timestamp or at))
    if isinstance(payload, AgentResponse):
        return _answered(payload, at)
    if isinstance(payload, ToolResult):
        return _returned(payload, at)
    raise not_for(place, payload, "a task, a signal, a response or a tool result")


def _returned(result: ToolResult, at: float) -> Report | Returned:
    """A result in our words: its call's id names the loop, the turn and the call."""
    named = _effect(result.call_id, "execute")
    if named is not None:
        loop_id, turn, index = named
        return Report(loop_id, ToolReturned(at, turn, index, result))
    if not result.loop_id:
        raise NotOurs(f"the result of call {result.call_id!r}, which is none of flyball's")
    return Returned(result.loop_id, at, result)


def _answered(response: AgentResponse, at: float) -> Report:
    """An answer in our words: its request's id names the loop and the turn."""
    asked: list[tuple[Purpose, tuple[str, int, int]]] = [
        (purpose, named)
        for kind, purpose in _PURPOSES.items()
        if (named := _effect(response.request_id, kind)) is not None
    ]
    if not asked:
        raise NotOurs(f"the answer to request {response.request_id!r}, which is none of flyball's")
    ((purpose, (loop_id, turn, _)),) = asked
    try:
        return Report(loop_id, model_answered(Result(response.answer()), turn, at, at, purpose))
    except FlyballError as error:
        return Report(loop_id, model_failed(error, turn, at, at, purpose=purpose))


def _effect(name: str, kind: str) -> tuple[str, int, int] | None:
    """The loop, the turn and the index of an effect of ours, by its id; None of anything else."""
    words = name.rsplit("/", 4)
    if len(words) != 5 or words[3] != kind or not (words[2].isdecimal() and words[4].isdecimal()):
        return None
    return words[0], int(words[2]), int(words[4])

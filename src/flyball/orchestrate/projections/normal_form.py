"""Normal form: what two journals of the same run have in common, whoever drove it and whenever.

- The results of tools that ran side by side stand in the order of their calls, not of their returning; the
  loops that these began stand before them, by the names of their agents, and then the ends of these.
- Steps of a flow that ended side by side stand in the order of their paths.
- `ToolStarted` and `Resumed` are left out: they say how a loop was driven, not how it went.
- Times, durations, speeds, and the ids that are made anew for each run are masked.

A normal form is its own normal form. It serves to compare journals; it is none that could be resumed.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from msgspec.structs import replace

from flyball.core.around import Around, Sent
from flyball.core.carried import Carried
from flyball.core.correlation import Correlation
from flyball.core.edits import Edit
from flyball.core.events import (
    Admitted,
    AnswerReviewed,
    ChildEnded,
    ChildStarted,
    Event,
    FlowStarted,
    Forked,
    ModelAnswered,
    ModelFailed,
    Resumed,
    SignalReceived,
    Started,
    StepEnded,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
)
from flyball.core.messages import Message, Part, ResultKind, ToolCall, ToolResult
from flyball.core.usage import CallUsage


def normal_form(events: Iterable[Event]) -> list[Event]:
    """The events in normal form."""
    kept = [_masked(event) for event in events if not isinstance(event, ToolStarted | Resumed)]
    normal: list[Event] = []
    for side_by_side, group in groupby(kept, key=_of_calls):
        normal += sorted(group, key=_place if side_by_side else _as_it_came)
    return normal


def _as_it_came(_: Event) -> tuple[int, int, str]:
    return 0, 0, ""


def _of_calls(event: Event) -> bool:
    """Whether an event comes of calls that may run side by side."""
    return isinstance(event, ToolReturned | ChildStarted | ChildEnded | StepEnded)


def _place(event: Event) -> tuple[int, int, str]:
    if isinstance(event, ToolReturned):
        return event.turn, event.index, "" if event.result.status is ResultKind.DEFERRED else "then"
    if isinstance(event, StepEnded):
        return 0, event.attempt, event.path
    if isinstance(event, ChildEnded):
        return -1, 1, f"{event.call_id} {event.spent}"
    return -1, 0, event.agent if isinstance(event, ChildStarted) else ""


def _masked(event: Event) -> Event:
    event = replace(event, at=0.0)
    if isinstance(event, Started):
        return replace(
            event,
            loop_id="",
            parent_loop_id="",
            correlation=Correlation(),
            prompt=_said(event.prompt),
            history=tuple([_message(message) for message in event.history]),
            carried=_carried(event.carried),
            deadline=None,
        )
    if isinstance(event, Forked):
        return replace(event, loop_id="", source="", prompt=_said(event.prompt))
    if isinstance(event, Admitted):
        return replace(event, prompt=_said(event.prompt))
    if isinstance(event, ModelAnswered):
        around = _around(event.around)
        return replace(event, message=_message(event.message), duration=0.0, request_id=None, around=around)
    if isinstance(event, AnswerReviewed):
        return replace(event, message=_said(event.message))
    if isinstance(event, TurnPrepared):
        return replace(event, edits=tuple([_edit(edit) for edit in event.edits]))
    if isinstance(event, ModelFailed):
        return replace(event, partial=_said(event.partial), duration=0.0, around=_around(event.around))
    if isinstance(event, ToolReturned):
        return replace(event, result=_part(event.result), duration=0.0)
    if isinstance(event, ChildStarted):
        return replace(event, loop_id="")
    if isinstance(event, FlowStarted):
        return replace(event, loop_id="", parent_loop_id="", correlation=Correlation())
    if isinstance(event, StepEnded):
        usage = None if event.usage is None else replace(event.usage, tokens_per_second=0.0)
        return replace(event, loop_id="", usage=usage, duration=0.0)
    if isinstance(event, ChildEnded):
        return replace(event, loop_id="", spent=tuple([_call(call) for call in event.spent]))
    if isinstance(event, SignalReceived):
        return replace(event, signal=replace(event.signal, id=""))
    return event


def _call(call: CallUsage) -> CallUsage:
    usage = call.usage
    return replace(call, at=0.0, usage=None if usage is None else replace(usage, tokens_per_second=0.0))


def _carried(carried: Carried | None) -> Carried | None:
    if carried is None:
        return None
    usage = replace(carried.usage, tokens_per_second=0.0)
    return replace(carried, run_id="", parent_run_id="", usage=usage)


def _around(around: Around | None) -> Around | None:
    if around is None:
        return None
    return replace(around, sent=tuple([_sent(one) for one in around.sent]))


def _sent(sent: Sent) -> Sent:
    rest = sent.rest
    if rest is not None and "id" in rest:
        rest = rest | {"id": ""}
    return replace(sent, edits=tuple([_edit(edit) for edit in sent.edits]), rest=rest)


def _edit(edit: Edit) -> Edit:
    return replace(edit, messages=tuple([_message(message) for message in edit.messages]))


def _said(message: Message | None) -> Message | None:
    return None if message is None else _message(message)


def _message(message: Message) -> Message:
    usage = message.usage
    return replace(
        message,
        parts=tuple([_part(part) for part in message.parts]),
        timestamp=None,
        usage=None if usage is None else replace(usage, tokens_per_second=0.0),
    )


def _part(part: Part) -> Any:
    """A part without the ids of the loop and the trace that it came through."""
    return replace(part, loop_id=None, trace_id=None) if isinstance(part, ToolCall | ToolResult) else part

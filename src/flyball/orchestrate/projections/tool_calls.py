"""The tools that a loop has run: pagantic's ToolCallsMade."""

from __future__ import annotations

from collections.abc import Iterable

from flyball.core.events import AnswerReviewed, CallsJudged, Event, ModelAnswered, ToolReturned, ToolStarted
from flyball.core.messages import ToolCall
from flyball.observe.tool_outcome import arguments_of, code_of
from flyball.orchestrate.moves import interrupted
from flyball.orchestrate.tool_record import ToolCallRecord


def tool_calls_made(events: Iterable[Event]) -> list[ToolCallRecord]:
    """The tools that were run, turn by turn, in the order in which the model asked for them.

    Calls that never ran (unknown, denied, no longer needed) are not among them.
    """
    calls: tuple[ToolCall, ...] = ()
    made: dict[tuple[int, int], ToolCallRecord] = {}
    for event in events:
        if isinstance(event, ModelAnswered | AnswerReviewed | CallsJudged):
            calls = calls_to_run(event, calls)
        elif isinstance(event, ToolStarted | ToolReturned):
            made[event.turn, event.index] = _record(event, calls[event.index])
    return [made[key] for key in sorted(made)]


def calls_to_run(
    event: ModelAnswered | AnswerReviewed | CallsJudged, calls: tuple[ToolCall, ...]
) -> tuple[ToolCall, ...]:
    """The turn's calls as they are run: as the model asked, or an interceptor, with a judge's arguments."""
    if isinstance(event, ModelAnswered):
        return event.message.tool_calls if event.purpose == "turn" else calls
    if isinstance(event, AnswerReviewed):
        return calls if event.message is None else event.message.tool_calls
    changed = {verdict.index: verdict.args_json for verdict in event.verdicts}
    return tuple(
        [
            call if (args := changed.get(index)) is None else ToolCall(call.id, call.name, args)
            for index, call in enumerate(calls)
        ]
    )


def _record(event: ToolStarted | ToolReturned, call: ToolCall) -> ToolCallRecord:
    returned = isinstance(event, ToolReturned)
    result = event.result if returned else interrupted(call)
    return ToolCallRecord(
        call.name,
        arguments_of(call),
        result.content,
        result.error,
        event.duration if returned else None,
        call.id,
        event.turn,
        result.status,
        code_of(result),
    )

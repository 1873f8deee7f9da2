"""Tool-call filters: who decides about all of a turn's calls before any of them runs.

They are asked in their order, each about what the one before let through, with the arguments that it gave.
What the last of them let through is what runs: no call runs with arguments that a filter has not seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.encodable import clean_text
from flyball.core.errors import IncompleteToolCall, InvalidMessage, UserError
from flyball.core.events import Verdict
from flyball.core.forms.semstreams import ToolCallFilterResult
from flyball.core.messages import ToolCall
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.bindings import ToolFilter


async def filtered(
    filters: Sequence[ToolFilter], context: RunContext[Any], calls: Mapping[int, ToolCall]
) -> list[Verdict]:
    """What the filters decide about calls, by their index, in the order of the calls.

    Each call carries the task's metadata and the loop's ids, for filters that are told nothing else.

    Raises:
        InvalidMessage: a filter decided about another call, or gave arguments that are no JSON object.
        UserError: a filter gave something else than a ToolCallFilterResult.
        Exception: whatever a filter raised.
    """
    facts = context.facts
    metadata, trace_id = facts.metadata, facts.correlation.trace_id or None
    verdicts: dict[int, Verdict] = {}
    left = {
        index: replace(call, metadata=call.metadata or metadata, loop_id=facts.loop_id, trace_id=trace_id)
        for index, call in calls.items()
    }
    if not filters:
        return [Verdict(index, allowed=False, reason="no tool filter is bound") for index in calls]
    changed_by: dict[int, str] = {}
    for one in filters:
        if not left:
            break
        name = _name(one)
        indices, asked = tuple(left), tuple(left.values())
        for index, verdict in zip(indices, (await _ask(one, context, asked)).verdicts(asked), strict=True):
            if not verdict.allowed:
                del left[index]
                verdicts[index] = Verdict(index, allowed=False, reason=_reason(verdict.reason, name), by=name)
            elif verdict.args_json is not None:
                left[index] = _checked(replace(left[index], args_json=verdict.args_json), name)
                changed_by[index] = name
    for index, call in left.items():
        if call.args_json == calls[index].args_json:
            verdicts[index] = Verdict(index, allowed=True)
        else:
            verdicts[index] = Verdict(index, allowed=True, args_json=call.args_json, by=changed_by[index])
    return [verdicts[index] for index in calls]


async def _ask(
    one: ToolFilter, context: RunContext[Any], calls: tuple[ToolCall, ...]
) -> ToolCallFilterResult:
    method = getattr(one, "filter_tool_calls", None)
    if method is None:
        found = await answer_of(cast("Any", one), context, calls)
    else:
        found = await answer_of(method, context.run_id, calls)
    if not isinstance(found, ToolCallFilterResult):
        raise UserError(
            f"the tool filter {_name(one)!r} gave a {type(found).__name__}: it must give a "
            "ToolCallFilterResult(approved=…, rejected=…)"
        )
    return found


def _checked(call: ToolCall, name: str) -> ToolCall:
    try:
        _ = call.arguments
    except IncompleteToolCall as error:
        raise InvalidMessage(
            f"the tool filter {name!r} gave arguments that cannot be: {error.message}", call_id=call.id
        ) from error
    return call


def _reason(given: Any, name: str) -> str:
    if not isinstance(given, str):
        raise UserError(f"the tool filter {name!r} gave {given!r} as a reason: it must be text")
    return clean_text(given)


def _name(one: ToolFilter) -> str:
    return getattr(one, "__name__", type(one).__name__)

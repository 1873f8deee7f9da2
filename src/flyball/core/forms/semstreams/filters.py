"""ToolCallFilter: who decides about tool calls before they run, in SemStreams' words, and in ours."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Protocol

from msgspec import Struct

from flyball.core.errors import InvalidMessage
from flyball.core.events import Verdict
from flyball.core.messages import ToolCall


class ToolCallRejection(Struct, frozen=True):
    """A call that may not run, and why."""

    call: ToolCall
    reason: str


class ToolCallFilterResult(Struct, frozen=True):
    """What a filter decided. A call that is in neither list was not let through."""

    approved: tuple[ToolCall, ...] = ()
    rejected: tuple[ToolCallRejection, ...] = ()

    def verdicts(
        self, calls: Sequence[ToolCall], indices: Sequence[int] | None = None
    ) -> tuple[Verdict, ...]:
        """The same as our verdicts about the turn's calls (or about those of them that were asked about).

        Raises:
            InvalidMessage: it decides twice about a call, about one that nobody asked about, or has approved
                another tool in a call's place; arguments alone may be changed.
        """
        asked = range(len(calls)) if indices is None else indices
        by_id = {calls[index].id: index for index in asked}
        verdicts: dict[int, Verdict] = {}
        for call, reason in [(call, None) for call in self.approved] + [
            (rejection.call, rejection.reason) for rejection in self.rejected
        ]:
            index = by_id.get(call.id)
            if index is None or index in verdicts:
                wrong = "it is none of the calls" if index is None else "it was decided about before"
                raise InvalidMessage(
                    f"the filter decided about the call {call.id!r}, but {wrong}", call_id=call.id
                )
            verdicts[index] = _verdict(index, calls[index], call, reason)
        silent = "the filter said nothing about it"
        return tuple([verdicts.get(index) or Verdict(index, allowed=False, reason=silent) for index in asked])


class ToolCallFilter(Protocol):
    """Decides about a loop's calls before they run: approves, rejects or changes them."""

    def filter_tool_calls(
        self, loop_id: str, calls: Sequence[ToolCall]
    ) -> ToolCallFilterResult | Awaitable[ToolCallFilterResult]:
        """What may run, and what may not, and why."""
        ...


def _verdict(index: int, asked: ToolCall, decided: ToolCall, reason: str | None) -> Verdict:
    if reason is not None:
        return Verdict(index, allowed=False, reason=reason)
    if decided.name != asked.name:
        raise InvalidMessage(
            f"the filter made a call to {decided.name!r} of the call {asked.id!r} to {asked.name!r}: "
            "a filter may change arguments, not tools",
            call_id=asked.id,
        )
    changed = decided.args_json if decided.args_json != asked.args_json else None
    return Verdict(index, allowed=True, args_json=changed)

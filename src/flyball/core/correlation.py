"""The ids that tie together all that belongs to one piece of work: derived for each event, journaled once."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

_HEX: Final = frozenset("0123456789abcdef")


class Correlation(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Who asked, in which trace, for which loop, at which step: pagantic's `CorrelationContext`.

    - `request_id` is the same on all that is done for one request, and always there on what is told.
    - `session_id` groups the requests of a conversation, where there is one.
    - `trace_id`, `span_id` and `parent_span_id` are W3C's (32 and 16 hex digits): they rebuild the tree of
      what ran under what, over loops that were begun under others, and over processes.
    - `caused_by` names the tool call or the step that led here; `step_name` is the step of the flow that it
      is part of, `tool_call_id` the tool call that it is about.
    - A run id is the loop id. One system request may cause many model requests: `model_request_id`.
    """

    request_id: str = ""
    session_id: str = ""
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    caused_by: str = ""
    loop_id: str = ""
    parent_loop_id: str = ""
    task_id: str = ""
    model_request_id: str = ""
    step_name: str = ""
    tool_call_id: str = ""

    @property
    def run_id(self) -> str:
        """The name that gollem has for the loop id."""
        return self.loop_id

    @property
    def traceparent(self) -> str:
        """W3C's header for whoever is called from here; empty where the ids are not of W3C's form."""
        if not (is_hex(self.trace_id, 32) and is_hex(self.span_id, 16)):
            return ""
        return f"00-{self.trace_id}-{self.span_id}-01"

    @classmethod
    def from_traceparent(
        cls, header: str, *, request_id: str = "", session_id: str = "", task_id: str = ""
    ) -> Correlation:
        """The ids of a caller who sent this header: what is begun with them is under the caller's span.

        A header that is none is left aside, as W3C has it: then the trace begins here.
        """
        version, _, rest = header.strip().partition("-")
        trace_id, span_id, *flags = rest.split("-")[:3] if rest.count("-") > 1 else ("", "")
        known = is_hex(version, 2) and version != "ff" and bool(flags) and is_hex(flags[0], 2)
        if version == "00" and header.count("-") != 3:
            known = False
        if not (known and is_hex(trace_id, 32) and is_hex(span_id, 16)):
            trace_id = span_id = ""
        if not (trace_id.strip("0") and span_id.strip("0")):
            trace_id = span_id = ""
        return cls(request_id, session_id, trace_id, span_id, task_id=task_id)


CorrelationContext = Correlation
"""pagantic's name for it."""


def is_hex(text: str, length: int) -> bool:
    """Whether a text is that many lower-case hex digits."""
    return len(text) == length and _HEX.issuperset(text)

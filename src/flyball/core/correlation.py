"""The ids that tie together all that belongs to one piece of work: derived for each event, journaled once."""

from __future__ import annotations

from msgspec import Struct


class Correlation(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Who asked, in which trace, for which loop, at which step.

    A run id is the loop id. One system request may cause many model requests: those are
    `model_request_id`. `caused_by` names the tool call or the step that led here.
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
    step: str = ""
    tool_call_id: str = ""

    @property
    def run_id(self) -> str:
        """The name that gollem has for the loop id."""
        return self.loop_id

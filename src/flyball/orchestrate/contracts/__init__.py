"""The contracts at the system's boundary: what an adapter hands in, and what it gets back. Pagantic's forms.

    request         SystemRequest, with its hints and its output contract
    conversation    a request's messages: as JSON, and as the history and the prompt of a run
    tools           tools that the caller runs, and the choice among all tools
    response        SystemResponse, with what was validated
    usage           token usage and errors as JSON

Rules: frozen data; `check()` says what is wrong with a request, by the name of the field; JSON keys are the
snake_case of pagantic's names, and a key that nobody knows is kept in `extra`, at the level where it stood.
"""

from flyball.core.errors import FailureCategory, SystemError  # noqa: A004 - pagantic's name for it
from flyball.orchestrate.contracts.request import ExecutionHints, OutputContract, SystemRequest
from flyball.orchestrate.contracts.response import SystemResponse, ValidationReport, ValidationResult
from flyball.orchestrate.lifecycle import Mode
from flyball.orchestrate.tool_record import ToolCallRecord

__all__ = [
    "ExecutionHints",
    "FailureCategory",
    "Mode",
    "OutputContract",
    "SystemError",
    "SystemRequest",
    "SystemResponse",
    "ToolCallRecord",
    "ValidationReport",
    "ValidationResult",
]

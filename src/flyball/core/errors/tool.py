"""What goes wrong with tools."""

# ruff: noqa: N818 - the categories and many of the errors bear pagantic's and gollem's names

from __future__ import annotations

from flyball.core.errors.root import FailureCategory, FlyballError


class ToolFailure(FlyballError):
    """A tool failed; retryable only where the tool is idempotent."""

    code = "TOOL_EXECUTION_FAILED"
    category = FailureCategory.TOOL


class ToolNotFound(ToolFailure):
    """The model asked for a tool that is not registered."""

    code = "TOOL_NOT_FOUND"


class ToolExecutionFailed(ToolFailure):
    """The tool raised, or gave back what cannot be taken: details `tool` and the error."""


class ToolRetriesExceeded(ToolExecutionFailed):
    """The model called a tool wrongly more often than its retries allow."""


class ToolTimeout(ToolFailure):
    """The tool took longer than its time-out and was cancelled."""

    code = "TOOL_TIMEOUT"


class ToolUnavailable(ToolFailure):
    """The tool is there but cannot work now, or is not bound in this process."""

    code = "TOOL_UNAVAILABLE"

"""Token usage and errors as JSON."""

from __future__ import annotations

from typing import Any

from msgspec.structs import asdict

from flyball.core.errors import FailureCategory, SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.forms.fields import Fields, filled, written
from flyball.core.forms.pagantic import read_usage, write_usage
from flyball.core.messages import JSON
from flyball.core.usage import RunUsage
from flyball.orchestrate.contracts.reading import one_of, typed

_COUNTS = ("requests", "tool_calls", "cache_read_tokens", "cache_write_tokens")
_DERIVED = ("completion_tokens", "total_tokens")
_ERROR = frozenset(SystemError.__struct_fields__)


def write_run_usage(usage: RunUsage) -> dict[str, JSON]:
    """Pagantic's TokenUsage, with the totals that its contract promises, and what else a run counts."""
    known = write_usage(usage)
    known |= {name: getattr(usage, name) for name in (*_DERIVED, *_COUNTS)}
    return known | filled(details=usage.details)


def read_run_usage(fields: Fields) -> RunUsage:
    """From JSON."""
    counts = {name: fields.whole(name) or 0 for name in _COUNTS}
    for name in _DERIVED:
        fields.any(name)
    details = fields.mapping("details")
    read: dict[str, Any] = asdict(read_usage(fields.rest() or {})) | counts
    read["details"] = None if details is None else typed(details, dict[str, int], fields.place("details"))
    return RunUsage(**read)


def write_error(error: SystemError) -> dict[str, JSON]:
    """SystemError, with all its keys: programs decide by them."""
    known: dict[str, JSON] = {
        "code": error.code,
        "category": str(error.category),
        "retryable": error.retryable,
        "message": error.message,
        "details": error.details,
        "caused_by": error.caused_by,
    }
    return written(known | filled(kind=error.kind), None, _ERROR)


def read_error(fields: Fields) -> SystemError:
    """From JSON."""
    category = one_of(fields, "category", FailureCategory, FailureCategory, FailureCategory.ORCHESTRATION)
    return SystemError(
        code=fields.text("code"),
        category=category,
        message=fields.text("message"),
        retryable=fields.flag("retryable") is True,
        details=fields.mapping("details"),
        caused_by=fields.text("caused_by") or None,
        kind=fields.text("kind"),
    )

"""ToolCallRecord: one run of a tool, as it is told: pagantic's record of it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from flyball.core.messages import JSON, ResultKind


class ToolCallRecord(Struct, frozen=True, omit_defaults=True):
    """One tool invocation: what was called with which arguments, and what came of it.

    `arguments` are those that the tool was run with, as an object; the raw text where they are none. `code`
    is the taxonomy's code of a failed call. A call that had started and never returned has no duration, and
    the status `interrupted`. `extra` holds what a foreign record said besides.
    """

    name: str
    arguments: JSON
    result: JSON = None
    error: str | None = None
    duration: float | None = None
    call_id: str = ""
    turn: int = 0
    status: ResultKind = ResultKind.RETURN
    code: str | None = None
    extra: dict[str, Any] | None = None

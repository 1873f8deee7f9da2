"""ContextEvent: a loop's context was made smaller, or is about to be."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from flyball.core.forms.semstreams.keyed import Always, Payload
from flyball.core.forms.semstreams.types import Category


class ContextEventType(StrEnum):
    """What happens to a context."""

    COMPACTION_STARTING = "compaction_starting"
    COMPACTION_COMPLETE = "compaction_complete"
    GC_COMPLETE = "gc_complete"
    """Old tool results were dropped."""


class ContextEvent(Payload, frozen=True, kw_only=True):
    """What happened to a loop's context; `utilization` is how full it was, from 0 to 1."""

    NAME: ClassVar[str] = Category.CONTEXT_EVENT

    type: Always[str] = ""
    loop_id: Always[str] = ""
    iteration: Always[int] = 0
    utilization: float = 0.0
    tokens_saved: int = 0
    summary: str = ""

    def validate(self) -> None:
        """Check that it has a type and names the loop; raises InvalidMessage."""
        self.require_one_of("type", tuple(ContextEventType))
        self.require("loop_id")

"""What names SemStreams' payloads, and the roles that its agents have."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from flyball.core.messages import ToolCall, ToolResult


class Category(StrEnum):
    """What kinds of payloads there are."""

    TASK = "task"
    USER_MESSAGE = "user_message"
    SIGNAL = "signal"
    USER_RESPONSE = "user_response"
    REQUEST = "request"
    RESPONSE = "response"
    TOOL_CALL = "tool_call"
    TOOL_RESULT = "tool_result"
    LOOP_CREATED = "loop_created"
    LOOP_COMPLETED = "loop_completed"
    LOOP_FAILED = "loop_failed"
    LOOP_CANCELLED = "loop_cancelled"
    CONTEXT_EVENT = "context_event"
    SIGNAL_MESSAGE = "signal_message"


class PayloadType(Struct, frozen=True):
    """What SemStreams' Schema() gives: the type of a payload, which is no JSON Schema."""

    category: Category
    domain: str = "agentic"
    version: str = "v1"


class Typed(Protocol):
    """A payload that knows its type."""

    @property
    def schema(self) -> PayloadType:
        """The payload's type."""
        ...


def payload_type(payload: ToolCall | ToolResult | Typed) -> PayloadType:
    """The type of a payload; ours know none themselves, the others have `schema`."""
    if isinstance(payload, ToolCall | ToolResult):
        return PayloadType(Category.TOOL_CALL if isinstance(payload, ToolCall) else Category.TOOL_RESULT)
    return payload.schema

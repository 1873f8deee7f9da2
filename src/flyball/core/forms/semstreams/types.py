"""What names SemStreams' payloads, and the roles that its agents have."""

from __future__ import annotations

from enum import StrEnum

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


class AgentRole(StrEnum):
    """What an agent is there for; not to be taken for a message's role."""

    ARCHITECT = "architect"
    EDITOR = "editor"
    GENERAL = "general"
    QUALIFIER = "qualifier"
    DEVELOPER = "developer"
    REVIEWER = "reviewer"


class PayloadType(Struct, frozen=True):
    """What SemStreams' Schema() gives: the type of a payload, which is no JSON Schema."""

    category: Category
    domain: str = "agentic"
    version: str = "v1"


def payload_type(payload: ToolCall | ToolResult) -> PayloadType:
    """The type of a payload that is ours and knows none itself; the others have `schema`."""
    return PayloadType(Category.TOOL_CALL if isinstance(payload, ToolCall) else Category.TOOL_RESULT)

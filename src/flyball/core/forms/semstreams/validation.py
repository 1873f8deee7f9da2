"""SemStreams' Validate(): what a payload must have before it is sent or taken.

Reading is lenient where Go is: a missing key is its zero value. These functions then say what is missing,
in SemStreams' words; `field` in the error's details names it.
"""

from __future__ import annotations

from flyball.core.errors import InvalidMessage, InvalidRequest
from flyball.core.forms.semstreams.messages import write_messages
from flyball.core.messages import Message, ToolCall, ToolResult
from flyball.core.tools import ToolChoice, ToolDefinition


def validate_message(message: Message) -> None:
    """Check that a message says anything: content, reasoning or tool calls.

    Raises:
        InvalidMessage: it does not, or it has content that the form cannot hold.
    """
    documents = write_messages([message])
    if not documents or not all(
        document.keys() & {"content", "reasoning_content", "tool_calls"} for document in documents
    ):
        raise InvalidMessage(
            f"either content, reasoning_content, or tool_calls must be present in a {message.role} message",
            field="content",
        )


def validate_tool_call(call: ToolCall) -> None:
    """Check that a call has an id and names a tool.

    Raises:
        InvalidMessage: it does not.
    """
    _required("id", call.id, "tool call id required")
    _required("name", call.name, "tool call function name required")


def validate_tool_result(result: ToolResult) -> None:
    """Check that a result says which call it answers.

    Raises:
        InvalidMessage: it does not.
    """
    _required("call_id", result.call_id, "tool result call_id required")


def validate_tool_definition(tool: ToolDefinition) -> None:
    """Check that a definition has a name and parameters.

    Raises:
        InvalidRequest: it does not.
    """
    if not tool.name:
        raise InvalidRequest("tool name required", field="name")
    if not tool.parameters:
        raise InvalidRequest(f"tool parameters required, for {tool.name!r}", field="parameters")


def validate_tool_choice(choice: ToolChoice) -> None:
    """Check that the mode function comes with a name; other modes need none.

    Raises:
        InvalidRequest: it does not.
    """
    if choice.mode == "function" and not choice.tool_name:
        raise InvalidRequest(
            'function_name required when tool_choice mode is "function"', field="function_name"
        )


def _required(field: str, value: str, message: str) -> None:
    if not value:
        raise InvalidMessage(message, field=field)

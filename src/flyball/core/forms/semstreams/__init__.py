"""SemStreams' agentic payloads as JSON: chat messages, tools, and the model's request and response.

Normalised: a known key that is null is left out, and so is an empty one that Go leaves out when empty; the
others are written with their zero value where they were missing. `reasoning` is written as
`reasoning_content`, which wins where both are there. A text that is empty beside thinking or tool calls is no
part; thinking comes first, then the text, then the calls. Arguments are kept as an object, not as the text
that the model wrote. A `function_name` beside the mode auto means nothing and is dropped. The empty message
that Go writes into an error response is none.
"""

from flyball.core.forms.semstreams.messages import (
    read_message,
    read_messages,
    read_tool_call,
    write_messages,
    write_tool_call,
)
from flyball.core.forms.semstreams.request import AgentRequest, ModelConfig
from flyball.core.forms.semstreams.response import AgentResponse
from flyball.core.forms.semstreams.tools import (
    read_tool_choice,
    read_tool_definition,
    read_tool_result,
    read_usage,
    write_tool_choice,
    write_tool_definition,
    write_tool_result,
    write_usage,
)
from flyball.core.forms.semstreams.types import AgentRole, Category, PayloadType, payload_type
from flyball.core.forms.semstreams.validation import (
    validate_message,
    validate_tool_call,
    validate_tool_choice,
    validate_tool_definition,
    validate_tool_result,
)

__all__ = [
    "AgentRequest",
    "AgentResponse",
    "AgentRole",
    "Category",
    "ModelConfig",
    "PayloadType",
    "payload_type",
    "read_message",
    "read_messages",
    "read_tool_call",
    "read_tool_choice",
    "read_tool_definition",
    "read_tool_result",
    "read_usage",
    "validate_message",
    "validate_tool_call",
    "validate_tool_choice",
    "validate_tool_definition",
    "validate_tool_result",
    "write_messages",
    "write_tool_call",
    "write_tool_choice",
    "write_tool_definition",
    "write_tool_result",
    "write_usage",
]

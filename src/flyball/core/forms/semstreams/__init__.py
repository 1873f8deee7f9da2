"""SemStreams' agentic payloads as JSON, and the envelope that they travel in.

    messages tools types validation     what flyball has words for itself: chat messages, tools, usage
    request response                    what a loop asks of a model, and what it is answered
    task signals context                what a loop is asked to do, and what it is told meanwhile
    loop_entity trajectory              a loop and its way, as they are kept
    loop_events context_event           what is told of a loop
    user_message user_response          what people say and are answered
    portable                            messages without what the wire cannot hold
    filters                             who decides about tool calls, in SemStreams' words
    envelope                            how all of them travel
    keyed kinds                         how the larger ones are read and written

Normalised: a known key that is null is left out, and so is an empty one that Go leaves out when empty; the
others are written with their zero value where they were missing. A time that nobody set is left out where Go
has omitempty, though Go writes its zero time there: it reads either as unset. `reasoning` is written as
`reasoning_content`, which wins where both are there. A text that is empty beside thinking or tool calls is no
part; thinking comes first, then the text, then the calls. Arguments are kept as an object, not as the text
that the model wrote. A `function_name` beside the mode auto means nothing and is dropped. The empty message
that Go writes into an error response is none.
"""

from flyball.core.forms.semstreams.context import (
    ConstructedContext,
    ContextSource,
    GraphContextSpec,
    SourceType,
)
from flyball.core.forms.semstreams.context_event import ContextEvent, ContextEventType
from flyball.core.forms.semstreams.envelope import (
    AnyPayload,
    Envelope,
    Refusal,
    read_envelope,
    write_envelope,
)
from flyball.core.forms.semstreams.filters import ToolCallFilter, ToolCallFilterResult, ToolCallRejection
from flyball.core.forms.semstreams.loop_entity import LoopEntity
from flyball.core.forms.semstreams.loop_events import (
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopFailedEvent,
)
from flyball.core.forms.semstreams.messages import (
    read_message,
    read_messages,
    read_tool_call,
    write_messages,
    write_tool_call,
)
from flyball.core.forms.semstreams.portable import portable_message, portable_result
from flyball.core.forms.semstreams.request import AgentRequest, ModelConfig
from flyball.core.forms.semstreams.response import AgentResponse
from flyball.core.forms.semstreams.signals import SEVEN, SignalMessage, UserSignal
from flyball.core.forms.semstreams.task import TaskMessage
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
from flyball.core.forms.semstreams.trajectory import StepType, Trajectory, TrajectoryStep
from flyball.core.forms.semstreams.types import Category, PayloadType, payload_type
from flyball.core.forms.semstreams.user_message import Attachment, AttachmentType, UserMessage
from flyball.core.forms.semstreams.user_response import (
    BlockType,
    ResponseAction,
    ResponseBlock,
    ResponseType,
    UserResponse,
)
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
    "AnyPayload",
    "Attachment",
    "AttachmentType",
    "BlockType",
    "Category",
    "ConstructedContext",
    "ContextEvent",
    "ContextEventType",
    "ContextSource",
    "Envelope",
    "GraphContextSpec",
    "LoopCancelledEvent",
    "LoopCompletedEvent",
    "LoopCreatedEvent",
    "LoopEntity",
    "LoopFailedEvent",
    "ModelConfig",
    "SEVEN",
    "PayloadType",
    "Refusal",
    "ResponseAction",
    "ResponseBlock",
    "ResponseType",
    "SignalMessage",
    "SourceType",
    "StepType",
    "TaskMessage",
    "ToolCallFilter",
    "ToolCallFilterResult",
    "ToolCallRejection",
    "Trajectory",
    "TrajectoryStep",
    "UserMessage",
    "UserResponse",
    "UserSignal",
    "payload_type",
    "portable_message",
    "portable_result",
    "read_envelope",
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
    "write_envelope",
    "write_messages",
    "write_tool_call",
    "write_tool_choice",
    "write_tool_definition",
    "write_tool_result",
    "write_usage",
]

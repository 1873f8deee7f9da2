"""flyball: language-model agents with deterministic control around probabilistic inference.

What most programs need is here; the rest is in its layer (see ARCHITECTURE.md). What not every program needs
is loaded when it is first asked for, so that importing flyball stays cheap.
"""

from typing import TYPE_CHECKING, Any

from flyball.core import errors, events
from flyball.core.context import RunContext
from flyball.core.deferred import DeferredToolRequest, DeferredToolResult
from flyball.core.errors import Deferred, FlyballError
from flyball.core.events import Outcome
from flyball.core.limits import Limits, UsageLimits, UsageQuota
from flyball.core.messages import (
    Audio,
    Document,
    FinishReason,
    Image,
    Message,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    system,
    user,
)
from flyball.core.settings import ModelSettings
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import OutputMode
from flyball.core.tools import Safety, ToolChoice, ToolDefinition
from flyball.core.usage import RunUsage, Usage
from flyball.inference.engine import Engine
from flyball.inference.request import ModelInfo, Request, Result
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.answering import send_results
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.recorded import pending_approvals, send_signal, snapshot_at
from flyball.orchestrate.result import RunResult
from flyball.tool.decorator import tool
from flyball.tool.errors import CallDeferred, ModelRetry
from flyball.tool.toolset import Toolset

if TYPE_CHECKING:
    from flyball.core.forms.semstreams import ToolCallFilterResult, ToolCallRejection
    from flyball.core.snapshot import RunSnapshot
    from flyball.inference.middleware.kinds import (
        ChangeRequest,
        DualMiddleware,
        Middleware,
        RequestMiddleware,
        StreamMiddleware,
    )
    from flyball.inference.middleware.logs import Logging
    from flyball.inference.middleware.max_tokens import MaxTokens
    from flyball.inference.middleware.timing import Timing
    from flyball.observe.cost import CostTracker, estimate_run_cost
    from flyball.observe.pricing import ModelPricing
    from flyball.observe.run_cost import RunCost
    from flyball.orchestrate.agent_features import AgentFeatures
    from flyball.orchestrate.budget import MaxCost
    from flyball.orchestrate.contracts import (
        ExecutionHints,
        Mode,
        OutputContract,
        SystemRequest,
        SystemResponse,
    )
    from flyball.orchestrate.followed import Recorded
    from flyball.orchestrate.local import LocalRuntime
    from flyball.orchestrate.output_types import (
        GrammarOutput,
        NativeOutput,
        PromptedOutput,
        TextOutput,
        ToolOutput,
    )
    from flyball.orchestrate.reflect import ReflectResult, reflect
    from flyball.orchestrate.runtime import Runtime
    from flyball.orchestrate.system import System
    from flyball.runtime.sqlite import SQLiteJournal
    from flyball.tool.ambient import AmbientContext, current_context
    from flyball.tool.preparing import ToolsPrepare
    from flyball.tool.stateful_tool import stateful
    from flyball.tool.timing import DefaultToolTimeout
    from flyball.tool.truncation import ToolOutputTruncation, truncate_tool_output
    from flyball.tool.validating import ToolResultValidator
    from flyball.validate.conditions import (
        And,
        MaxRunDuration,
        Or,
        ResponseContains,
        RunCondition,
        TextContains,
        ToolCallCount,
    )
    from flyball.validate.guardrails import (
        ContentFilter,
        InputGuardrail,
        MaxPromptLength,
        MaxTurns,
        TurnGuardrail,
    )
    from flyball.validate.interceptors import (
        AuditLog,
        InterceptResult,
        MessageInterceptor,
        RedactPII,
        ResponseInterceptor,
    )
    from flyball.validate.reflection import Reflection
    from flyball.validate.repair import ModelRepair, OutputRepair

_LATER = {
    "AgentFeatures": "flyball.orchestrate.agent_features",
    "AmbientContext": "flyball.tool.ambient",
    "And": "flyball.validate.conditions",
    "AuditLog": "flyball.validate.interceptors",
    "ChangeRequest": "flyball.inference.middleware.kinds",
    "ContentFilter": "flyball.validate.guardrails",
    "CostTracker": "flyball.observe.cost",
    "DefaultToolTimeout": "flyball.tool.timing",
    "DualMiddleware": "flyball.inference.middleware.kinds",
    "ExecutionHints": "flyball.orchestrate.contracts",
    "GrammarOutput": "flyball.orchestrate.output_types",
    "InputGuardrail": "flyball.validate.guardrails",
    "InterceptResult": "flyball.validate.interceptors",
    "LocalRuntime": "flyball.orchestrate.local",
    "Logging": "flyball.inference.middleware.logs",
    "MaxCost": "flyball.orchestrate.budget",
    "MaxPromptLength": "flyball.validate.guardrails",
    "MaxRunDuration": "flyball.validate.conditions",
    "MaxTokens": "flyball.inference.middleware.max_tokens",
    "MaxTurns": "flyball.validate.guardrails",
    "MessageInterceptor": "flyball.validate.interceptors",
    "Middleware": "flyball.inference.middleware.kinds",
    "Mode": "flyball.orchestrate.contracts",
    "ModelPricing": "flyball.observe.pricing",
    "ModelRepair": "flyball.validate.repair",
    "NativeOutput": "flyball.orchestrate.output_types",
    "Or": "flyball.validate.conditions",
    "OutputContract": "flyball.orchestrate.contracts",
    "OutputRepair": "flyball.validate.repair",
    "PromptedOutput": "flyball.orchestrate.output_types",
    "Recorded": "flyball.orchestrate.followed",
    "RedactPII": "flyball.validate.interceptors",
    "ReflectResult": "flyball.orchestrate.reflect",
    "Reflection": "flyball.validate.reflection",
    "RequestMiddleware": "flyball.inference.middleware.kinds",
    "ResponseContains": "flyball.validate.conditions",
    "ResponseInterceptor": "flyball.validate.interceptors",
    "RunCondition": "flyball.validate.conditions",
    "RunCost": "flyball.observe.run_cost",
    "RunSnapshot": "flyball.core.snapshot",
    "Runtime": "flyball.orchestrate.runtime",
    "SQLiteJournal": "flyball.runtime.sqlite",
    "StreamMiddleware": "flyball.inference.middleware.kinds",
    "System": "flyball.orchestrate.system",
    "SystemRequest": "flyball.orchestrate.contracts",
    "SystemResponse": "flyball.orchestrate.contracts",
    "TextContains": "flyball.validate.conditions",
    "TextOutput": "flyball.orchestrate.output_types",
    "Timing": "flyball.inference.middleware.timing",
    "ToolCallCount": "flyball.validate.conditions",
    "ToolCallFilterResult": "flyball.core.forms.semstreams",
    "ToolCallRejection": "flyball.core.forms.semstreams",
    "ToolOutput": "flyball.orchestrate.output_types",
    "ToolOutputTruncation": "flyball.tool.truncation",
    "ToolResultValidator": "flyball.tool.validating",
    "ToolsPrepare": "flyball.tool.preparing",
    "TurnGuardrail": "flyball.validate.guardrails",
    "current_context": "flyball.tool.ambient",
    "estimate_run_cost": "flyball.observe.cost",
    "reflect": "flyball.orchestrate.reflect",
    "stateful": "flyball.tool.stateful_tool",
    "truncate_tool_output": "flyball.tool.truncation",
}

__all__ = [
    "Agent",
    "AgentFeatures",
    "AmbientContext",
    "And",
    "Audio",
    "AuditLog",
    "CallDeferred",
    "ContentFilter",
    "CostTracker",
    "Deferred",
    "DeferredToolRequest",
    "DeferredToolResult",
    "DefaultToolTimeout",
    "Document",
    "Engine",
    "ExecutionHints",
    "FinishReason",
    "FlyballError",
    "GrammarOutput",
    "Image",
    "InputGuardrail",
    "InterceptResult",
    "Journal",
    "Limits",
    "LocalRuntime",
    "MaxCost",
    "MaxPromptLength",
    "MaxRunDuration",
    "MaxTurns",
    "MemoryJournal",
    "Message",
    "MessageInterceptor",
    "Mode",
    "ModelInfo",
    "ModelPricing",
    "ModelRepair",
    "ModelRetry",
    "ModelSettings",
    "NativeOutput",
    "Or",
    "Outcome",
    "OutputContract",
    "OutputMode",
    "OutputRepair",
    "PromptedOutput",
    "Recorded",
    "RedactPII",
    "ReflectResult",
    "Reflection",
    "Request",
    "ResponseContains",
    "ResponseInterceptor",
    "Result",
    "Role",
    "RunCondition",
    "RunContext",
    "RunCost",
    "RunResult",
    "RunSnapshot",
    "RunUsage",
    "Runtime",
    "SQLiteJournal",
    "Safety",
    "Signal",
    "SignalType",
    "System",
    "SystemRequest",
    "SystemResponse",
    "Text",
    "TextContains",
    "TextOutput",
    "Thinking",
    "ToolCall",
    "ToolCallCount",
    "ToolCallFilterResult",
    "ToolCallRejection",
    "ToolChoice",
    "ToolDefinition",
    "ToolOutput",
    "ToolOutputTruncation",
    "ToolResult",
    "ToolResultValidator",
    "ToolsPrepare",
    "Toolset",
    "TurnGuardrail",
    "Usage",
    "UsageLimits",
    "UsageQuota",
    "assistant",
    "current_context",
    "errors",
    "estimate_run_cost",
    "events",
    "pending_approvals",
    "reflect",
    "send_results",
    "send_signal",
    "snapshot_at",
    "stateful",
    "system",
    "tool",
    "truncate_tool_output",
    "user",
    "ChangeRequest",
    "DualMiddleware",
    "Middleware",
    "RequestMiddleware",
    "StreamMiddleware",
    "Logging",
    "MaxTokens",
    "Timing",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'flyball' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LATER[name]), name)

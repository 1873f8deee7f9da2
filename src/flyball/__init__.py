"""flyball: language-model agents with deterministic control around probabilistic inference."""

from flyball.core.context import RunContext
from flyball.core.errors import FlyballError
from flyball.core.limits import Limits, UsageLimits, UsageQuota
from flyball.core.messages import Message
from flyball.core.settings import ModelSettings
from flyball.core.tools import Safety, ToolChoice
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.result import RunResult
from flyball.tool.decorator import tool
from flyball.tool.errors import ModelRetry

__all__ = [
    "Agent",
    "FlyballError",
    "Limits",
    "Message",
    "ModelRetry",
    "ModelSettings",
    "RunContext",
    "RunResult",
    "Safety",
    "ToolChoice",
    "UsageLimits",
    "UsageQuota",
    "tool",
]

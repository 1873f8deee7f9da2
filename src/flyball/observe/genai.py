"""What is told of runs in the words of OpenTelemetry's conventions for generative AI: names and attributes.

Spans are called `invoke_agent {agent}`, `invoke_workflow {flow}`, `chat {model}`, `execute_tool {tool}`. What
was said stands in none of the attributes here: see `genai_content`.
"""

from __future__ import annotations

from typing import Any

from flyball.core.usage import CallUsage, Usage
from flyball.observe.events import (
    ModelRequestedEvent,
    ModelRespondedEvent,
    RunCompletedEvent,
    RunStartedEvent,
    StepEndedEvent,
    StepStartedEvent,
    ToolCalledEvent,
    ToolEndedEvent,
)
from flyball.observe.prices import Served, served
from flyball.observe.timeline import finish_reason

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
AGENT_NAME = "gen_ai.agent.name"
WORKFLOW_NAME = "gen_ai.workflow.name"
CONVERSATION_ID = "gen_ai.conversation.id"
TOOL_NAME = "gen_ai.tool.name"
TOOL_CALL_ID = "gen_ai.tool.call.id"
TOOL_TYPE = "gen_ai.tool.type"
TOKEN_TYPE = "gen_ai.token.type"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
ERROR_TYPE = "error.type"

CHAT, EXECUTE_TOOL, INVOKE_AGENT, INVOKE_WORKFLOW = "chat", "execute_tool", "invoke_agent", "invoke_workflow"

_PROVIDERS = {
    "azure": "azure.ai.openai",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "google": "gcp.gemini",
    "mistral": "mistral_ai",
    "vertex": "gcp.vertex_ai",
    "xai": "x_ai",
}
"""The names that the conventions have for providers which are called otherwise in model strings."""
_UNKNOWN = "unknown"
_TOKENS = (
    ("gen_ai.usage.cache_read.input_tokens", "cache_read_tokens"),
    ("gen_ai.usage.cache_creation.input_tokens", "cache_write_tokens"),
    ("gen_ai.usage.reasoning.output_tokens", "reasoning_tokens"),
)
_SETTINGS = (
    ("gen_ai.request.max_tokens", "max_tokens"),
    ("gen_ai.request.temperature", "effective_temperature"),
    ("gen_ai.request.top_p", "top_p"),
    ("gen_ai.request.seed", "seed"),
)


def run_name(event: RunStartedEvent | RunCompletedEvent) -> str:
    """What a run's span is called."""
    return f"{_invoke(event)} {event.agent}"


def run_attributes(event: RunStartedEvent | RunCompletedEvent) -> dict[str, Any]:
    """What is said of a run, before it is over."""
    ids = event.correlation
    named = WORKFLOW_NAME if event.kind == "flow" else AGENT_NAME
    told = {OPERATION: _invoke(event), named: event.agent, "flyball.run_id": event.run_id}
    told["flyball.request_id"] = ids.request_id
    if ids.session_id:
        told[CONVERSATION_ID] = ids.session_id
    if ids.step_name:
        told["flyball.step.name"] = ids.step_name
    return told


def run_metrics(event: RunCompletedEvent) -> dict[str, Any]:
    """What the numbers of a run are of."""
    named = WORKFLOW_NAME if event.kind == "flow" else AGENT_NAME
    told = {OPERATION: _invoke(event), named: event.agent}
    if event.failure is not None:
        told[ERROR_TYPE] = event.failure.code
    return told


def model_of(event: ModelRequestedEvent | ModelRespondedEvent) -> Served:
    """Which model was asked for, and who serves it, in the conventions' words."""
    asked = event.asked if isinstance(event, ModelRespondedEvent) else event.model
    model, provider, _ = served(CallUsage(event.at, None, None, asked, event.provider))
    return Served(model, _PROVIDERS.get(provider, provider) or _UNKNOWN)


def call_name(event: ModelRequestedEvent | ModelRespondedEvent) -> str:
    """What a model call's span is called."""
    return f"{CHAT} {model_of(event).model}"


def call_metrics(event: ModelRequestedEvent | ModelRespondedEvent) -> dict[str, Any]:
    """What the numbers of a model call are of."""
    model, provider, _ = model_of(event)
    told = {OPERATION: CHAT, PROVIDER: provider, REQUEST_MODEL: model}
    if isinstance(event, ModelRespondedEvent):
        if event.response is not None and event.response.model:
            told[RESPONSE_MODEL] = event.response.model
        if event.failure is not None:
            told[ERROR_TYPE] = event.failure.code
    return told


def call_attributes(event: ModelRequestedEvent) -> dict[str, Any]:
    """What is said of a model call, before it is over."""
    told = {**call_metrics(event), AGENT_NAME: event.agent, "flyball.purpose": event.purpose}
    if event.correlation.session_id:
        told[CONVERSATION_ID] = event.correlation.session_id
    for name, setting in _SETTINGS:
        if (value := getattr(event.settings, setting)) is not None:
            told[name] = value
    if event.settings.stop:
        told["gen_ai.request.stop_sequences"] = list(event.settings.stop)
    if event.schema_present or event.grammar_present:
        told["gen_ai.output.type"] = "json" if event.schema_present else "text"
    return told


def answer_attributes(event: ModelRespondedEvent) -> dict[str, Any]:
    """What is said of a model call that is over."""
    told = call_metrics(event)
    if event.response is not None:
        told[FINISH_REASONS] = [str(finish_reason(event))]
        told |= usage_attributes(event.response.usage)
    return told


def usage_attributes(usage: Usage | None) -> dict[str, Any]:
    """What was used, where that is known."""
    if usage is None:
        return {}
    told: dict[str, Any] = {INPUT_TOKENS: usage.input_tokens, OUTPUT_TOKENS: usage.output_tokens}
    for name, field in _TOKENS:
        if count := getattr(usage, field):
            told[name] = count
    return told


def tool_attributes(event: ToolCalledEvent | ToolEndedEvent) -> dict[str, Any]:
    """What is said of a tool call."""
    return {
        OPERATION: EXECUTE_TOOL,
        TOOL_NAME: event.tool_name,
        TOOL_CALL_ID: event.tool_call_id,
        TOOL_TYPE: "function",
        AGENT_NAME: event.agent,
    }


def step_attributes(event: StepStartedEvent | StepEndedEvent) -> dict[str, Any]:
    """What is said of a step of a flow."""
    return {
        WORKFLOW_NAME: event.agent,
        "flyball.step.name": event.name,
        "flyball.step.path": event.path,
        "flyball.step.kind": event.kind,
        "flyball.step.attempt": event.attempt,
    }


def _invoke(event: RunStartedEvent | RunCompletedEvent) -> str:
    return INVOKE_WORKFLOW if event.kind == "flow" else INVOKE_AGENT

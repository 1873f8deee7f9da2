"""What an agent makes use of, in numbers: so that whoever carries agents on elsewhere can refuse in time.

gollem's AgentExecutionFeatures. A feature that flyball has nowhere yet, or of which an agent itself cannot
know, is left out rather than reported as 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from flyball.orchestrate.config import AgentConfig
from flyball.orchestrate.features import Stages, stages_of
from flyball.tool.protocol import Tool
from flyball.tool.toolset import brought_by


class AgentFeatures(Struct, frozen=True, repr_omit_defaults=True):
    """How many of each an agent has, with what its toolsets bring, or whether it has one.

    To refuse what one does not support: `if beyond := set(agent.features().used) - SUPPORTED: raise ...`
    """

    dynamic_instructions: int = 0
    """Prompt functions."""
    toolsets: int = 0
    """Toolsets that bring instructions or features along."""
    tools_with_availability: int = 0
    """Tools that are asked before each turn whether they are there."""
    tools_with_prepare: int = 0
    """Tools that are asked before each turn what the model is told of them."""
    tools_with_validators: int = 0
    """Tools with validators of their own for their results."""
    stateful_tools: int = 0
    has_tools_prepare: bool = False
    """Whether somebody is asked before each turn about all tools."""
    result_validators: int = 0
    """Validators for the results of all tools."""
    has_truncation: bool = False
    """Whether results that are too long are cut."""
    has_default_timeout: bool = False
    tools_requiring_approval: int = 0
    has_tool_approval: bool = False
    """Whether a callback decides about those; otherwise a signal does."""
    tool_filters: int = 0
    input_guardrails: int = 0
    turn_guardrails: int = 0
    history_processors: int = 0
    has_auto_context: bool = False
    """Whether a model is asked to sum up what was said."""
    message_interceptors: int = 0
    response_interceptors: int = 0
    run_conditions: int = 0
    request_middleware: int = 0
    """Middleware around calls whose answers are wanted whole."""
    stream_middleware: int = 0
    """The same in pieces. One that has both sides is counted twice."""
    has_output_approval: bool = False
    """Whether an answer waits for a person to approve it."""
    output_validators: int = 0
    output_repairs: int = 0
    """Functions that put an answer right."""
    model_repairs: int = 0
    """Models that are asked to."""
    has_reflection: bool = False
    has_ambient_context: bool = False
    has_cost_tracker: bool = False
    has_knowledge_base: bool = False
    has_knowledge_auto_store: bool = False
    """Whether answers are stored there."""
    has_grammar: bool = False
    has_usage_quota: bool = False
    has_deps: bool = False
    """Whether it has dependencies for all its runs."""
    deliveries: int = 0
    has_editor: bool = False
    hooks: int = 0
    has_event_bus: bool = False
    has_tracing: bool = False
    trace_exporters: int = 0
    watchers: int = 0
    """Those of one's own, which are neither hooks nor an event bus."""
    has_identity: bool = False
    """Whether its loops act as somebody."""

    @property
    def used(self) -> tuple[str, ...]:
        """The names of what the agent makes use of."""
        return tuple([name for name, value in asdict(self).items() if value])


def features_of(config: AgentConfig) -> AgentFeatures:
    """What an agent that was told this makes use of. No model is looked for."""
    brought = brought_by(config.tools)
    stages = stages_of([*config.features, *[feature for one in brought for feature in one.features]])
    counted: dict[str, Any] = {name: count(config, stages) for name, count in COUNTS.items()}
    return AgentFeatures(**counted)


def _instructions(config: AgentConfig) -> list[Any]:
    return [*config.instructions, *[text for one in brought_by(config.tools) for text in one.instructions]]


def _tools(holds: Callable[[Tool], bool]) -> Callable[[AgentConfig, Stages], int]:
    """How many of an agent's tools something holds of."""
    return lambda config, _: len([tool for tool in config.tools if holds(tool)])


COUNTS: dict[str, Callable[[AgentConfig, Stages], int]] = {
    "dynamic_instructions": lambda config, _: len(
        [one for one in _instructions(config) if not isinstance(one, str)]
    ),
    "toolsets": lambda config, _: len(brought_by(config.tools)),
    "tools_with_availability": _tools(lambda tool: tool.spec.checks_availability),
    "tools_with_prepare": _tools(lambda tool: getattr(tool, "prepare", None) is not None),
    "tools_with_validators": _tools(lambda tool: bool(getattr(tool, "validators", ()))),
    "stateful_tools": _tools(lambda tool: tool.spec.state is not None),
    "has_tools_prepare": lambda _, stages: bool(stages.tools_prepares),
    "result_validators": lambda _, stages: len(stages.result_validators),
    "has_truncation": lambda _, stages: bool(stages.truncations),
    "has_default_timeout": lambda _, stages: bool(stages.default_timeouts),
    "tools_requiring_approval": _tools(lambda tool: tool.spec.approval),
    "has_tool_approval": lambda config, _: config.approval is not None,
    "tool_filters": lambda config, _: len(config.tool_filters),
    "input_guardrails": lambda _, stages: len(stages.input_guardrails),
    "turn_guardrails": lambda _, stages: len(stages.turn_guardrails),
    "history_processors": lambda _, stages: len(stages.history_processors),
    "has_auto_context": lambda _, stages: bool(stages.auto_contexts),
    "message_interceptors": lambda _, stages: len(stages.message_interceptors),
    "response_interceptors": lambda _, stages: len(stages.response_interceptors),
    "run_conditions": lambda _, stages: len(stages.conditions),
    "request_middleware": lambda _, stages: len(stages.request_middleware),
    "stream_middleware": lambda _, stages: len(stages.stream_middleware),
    "has_output_approval": lambda config, _: config.output_approval,
    "output_validators": lambda config, _: len(config.validators),
    "output_repairs": lambda _, stages: len(stages.output_repairs),
    "model_repairs": lambda _, stages: len(stages.model_repairs),
    "has_reflection": lambda _, stages: bool(stages.reflections),
    "has_ambient_context": lambda _, stages: bool(stages.ambient),
    "has_cost_tracker": lambda _, stages: bool(stages.trackers),
    "has_knowledge_base": lambda _, stages: bool(stages.knowledge_bases),
    "has_knowledge_auto_store": lambda _, stages: stages.delivers,
    "has_grammar": lambda config, _: config.grammar is not None,
    "has_usage_quota": lambda config, _: config.limits.quota is not None,
    "has_deps": lambda _, stages: bool(stages.deps),
    "deliveries": lambda config, _: len(config.deliveries),
    "has_editor": lambda config, _: config.editor is not None,
    "hooks": lambda _, stages: len(stages.hooks),
    "has_event_bus": lambda _, stages: stages.bus is not None,
    "has_tracing": lambda _, stages: bool(stages.tracings),
    "trace_exporters": lambda _, stages: sum([len(one.exporters) for one in stages.tracings]),
    "watchers": lambda _, stages: len(stages.watchers) - len(stages.hooks) - (stages.bus is not None),
    "has_identity": lambda _, stages: bool(stages.identity),
}
"""How each is found: who adds a feature to agents adds a field above, and a line here."""

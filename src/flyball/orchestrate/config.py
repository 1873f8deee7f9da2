"""What an agent is made of, as one object, and how a loop's spec and bindings follow from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.core.limits import Limits
from flyball.core.settings import ModelSettings
from flyball.core.spec import ARCHITECT, CompactSpec, LoopSpec, OutputMode
from flyball.core.tools import ToolChoice
from flyball.inference.engine import Engine
from flyball.inference.profile import profile_for
from flyball.inference.registry import resolve_engine
from flyball.orchestrate.bindings import (
    Approval,
    Bindings,
    Delivery,
    Instruction,
    ToolFilter,
    Validator,
)
from flyball.orchestrate.features import Stages, as_features, stages_of
from flyball.orchestrate.holding import check_can_hold
from flyball.orchestrate.instructing import as_instructions, asked_for
from flyball.orchestrate.output import prompted_instructions
from flyball.orchestrate.outputs import as_output, reader_for, spec_of
from flyball.orchestrate.recordable import recordable
from flyball.orchestrate.repairing import provider_of, with_repairs
from flyball.orchestrate.sensible import sensible_limits, sensible_settings
from flyball.orchestrate.tooling import asked_each_turn, check_choice, equipped
from flyball.tool.decorator import as_tool
from flyball.tool.protocol import Tool
from flyball.tool.toolset import Toolset, brought_by


class AgentConfig(Struct, frozen=True):
    """Everything an agent was told. See `Agent` for what each means."""

    model: str | Engine | None = None
    output: Any = str
    tools: tuple[Tool, ...] = ()
    instructions: tuple[Instruction, ...] = ()
    name: str = "agent"
    settings: ModelSettings = ModelSettings()
    limits: Limits = Limits()
    retries: int = 1
    tool_choice: ToolChoice | None = None
    end_strategy: Literal["early", "exhaustive"] = "early"
    output_mode: OutputMode | None = None
    grammar: str | None = None
    validators: tuple[Validator, ...] = ()
    tool_filters: tuple[ToolFilter, ...] = ()
    approval: Approval | None = None
    output_approval: bool = False
    deliveries: tuple[Delivery, ...] = ()
    role: str = ""
    editor: Any = None
    features: tuple[Feature, ...] = ()
    asks_again: bool = True
    description: str = ""

    @classmethod
    def of(cls, **given: Any) -> AgentConfig:
        """A config from what a user passed, checked and brought into shape.

        Raises:
            GrammarMalformed: the grammar is none.
            UserError: an option that does not exist or cannot be.
        """
        return AgentConfig().changed(**given)

    def changed(self, **changes: Any) -> AgentConfig:
        """This config with changes.

        Raises:
            GrammarMalformed: the grammar is none.
            UserError: an option that does not exist or cannot be.
        """
        known = AgentConfig.__struct_fields__
        for name in changes:
            if name not in known:
                raise UserError(f"an agent has no option {name!r}; it has {', '.join(known)}")
        shaped = {name: _SHAPE[name](value) if name in _SHAPE else value for name, value in changes.items()}
        config = replace(self, **shaped)
        if type(config.retries) is not int or config.retries < 0:
            raise UserError(f"retries is a number from 0, not {config.retries!r}")
        if type(config.asks_again) is not bool:
            raise UserError(f"asks_again is True or False, not {config.asks_again!r}")
        if type(config.output_approval) is not bool:
            raise UserError(f"output_approval is True or False, not {config.output_approval!r}")
        if config.approval is not None and not callable(config.approval):
            raise UserError(f"approval= takes a function, not {config.approval!r}")
        if type(config.role) is not str:
            raise UserError(f"role= takes text, such as 'architect', not {config.role!r}")
        if type(config.description) is not str:
            raise UserError(f"description= takes text, not {config.description!r}")
        return config if config.editor is None else _with_editor(config)

    def for_run(self, options: Mapping[str, Any]) -> AgentConfig:
        """This config as one run's options have it; the same object where they change nothing."""
        changes: dict[str, Any] = {}
        for name in ("model", "limits", "tool_choice"):
            if options.get(name) is not None:
                changes[name] = options[name]
        _tool_choice(options.get("tool_choice"))
        if (settings := options.get("settings")) is not None:
            changes["settings"] = sensible_settings(settings).over(self.settings)
        limits: Limits = changes.get("limits", self.limits)
        if (usage := options.get("usage_limits")) is not None:
            changes["limits"] = limits = replace(limits, usage=usage)
        if "limits" in changes:
            sensible_limits(limits)
        if (timeout := options.get("timeout")) is not None:
            if not isinstance(timeout, int | float) or not 0 < timeout < float("inf"):
                raise UserError(f"a time-out is a number of seconds, more than 0, not {timeout!r}")
            changes["limits"] = replace(limits, timeout=float(timeout))
        if features := options.get("features"):
            changes["features"] = as_features((*self.features, *as_features(features)))
        if (names := options.get("tools")) is not None:
            changes["tools"] = _only(self.tools, names)
        return replace(self, **changes) if changes else self


def stages_in(config: AgentConfig) -> Stages:
    """An agent's features, sorted, with those that its toolsets bring."""
    brought = brought_by(config.tools)
    return stages_of([*config.features, *[feature for one in brought for feature in one.features]])


def bind(config: AgentConfig, deps: Any = None, like: tuple[AgentConfig, Bindings] | None = None) -> Bindings:
    """Work out the spec and find the code behind it.

    Args:
        config: what the agent is made of.
        deps: the run's dependencies.
        like: another config and its bindings: what took long to work out there and is the same here is taken
            from there.

    Raises:
        ConfigurationFailure: the model, a tool or the output type cannot be used.
        GrammarUnsupported: the model's engine cannot hold it to the output's schema.
    """
    engine = like[1].model if like is not None and config.model is like[0].model else None
    if engine is None:
        engine = resolve_engine(config.model)
    brought = brought_by(config.tools)
    stages = stages_in(config)
    tools: dict[str, Tool] = {}
    for tool in equipped(config.tools, stages):
        name = tool.spec.definition.name
        if name in tools:
            raise UserError(f"two tools are called {name!r}: rename one, or prefix a toolset")
        tools[name] = tool
    reflects = bool(stages.reflections)
    compactor: CompactSpec | None = None
    if like is not None and _same_output(config, like[0]) and bool(like[1].stages.reflections) is reflects:
        output, reader, engines = like[1].spec.output, like[1].output, like[1].engines
        compactor = like[1].spec.compactor
    else:
        default_mode = profile_for(engine).default_output_mode
        output = spec_of(
            config.output,
            config.output_mode,
            default_mode,
            validated=bool(config.validators),
            grammar=config.grammar,
        )
        if config.grammar is not None and not config.asks_again:
            output = replace(output, retry=False)
        if reflects and not output.checked:
            output = replace(output, checked=True)
        if config.output_approval:
            output = replace(output, approval=True)
        reader = reader_for(config.output, output)
        output, engines = with_repairs(output, stages, engine)
        if stages.auto_contexts:
            from flyball.orchestrate.compacting import compactor_of

            compactor, others = compactor_of(stages)
            engines |= others
    if output.grammar is not None or output.schema is not None:
        check_can_hold(engine, output)
    clash = [definition.name for definition in output.tools if definition.name in tools]
    if clash:
        raise UserError(f"the tool name {clash[0]!r} is taken by the output: rename the tool", tool=clash[0])
    instructions = (*config.instructions, *[text for one in brought for text in one.instructions])
    texts = [text for text in instructions if isinstance(text, str)]
    if output.mode is OutputMode.PROMPTED:
        texts.append(prompted_instructions(output))
    definitions = [tool.spec.definition for tool in tools.values()]
    functions = asked_for(instructions, definitions, output)
    if stages.ambient:
        from flyball.tool.ambient import AmbientTool

        tools = {name: AmbientTool(tool) for name, tool in tools.items()}
    if (bus := stages.bus) is not None:
        from flyball.tool.publishing import PublishingTool

        tools = {
            name: PublishingTool(tool, bus) if tool.wants_context else tool for name, tool in tools.items()
        }
    if (acting := stages.acts_as) is not None:
        from flyball.tool.acting import ActingTool

        tools = {
            name: ActingTool(tool, acting) if tool.wants_context else tool for name, tool in tools.items()
        }
    if config.tool_filters:
        from flyball.tool.guarded import guarded

        tools = {name: guarded(tool, config.tool_filters) for name, tool in tools.items()}
    specs = {name: tool.spec for name, tool in tools.items()}
    made = LoopSpec(
        agent=config.name,
        model=config.model if isinstance(config.model, str) else engine.model_info().name,
        instructions="\n\n".join(texts),
        tools=specs,
        output=output,
        settings=config.settings,
        tool_choice=config.tool_choice,
        limits=config.limits,
        retries=config.retries,
        end_strategy=config.end_strategy,
        admits=bool(functions) or stages.admits,
        prepares=stages.prepares or any(asked_each_turn(tool) for tool in tools.values()),
        reviews=stages.reviews,
        judges=config.approval is not None,
        filters=bool(config.tool_filters),
        delivers=bool(config.deliveries) or stages.delivers,
        role=config.role,
        editor="" if config.editor is None else config.editor.config.name,
        checks=stages.names,
        provider=provider_of(engine) if stages.trackers and not isinstance(config.model, str) else "",
        compactor=compactor,
    )
    spec = recordable(made, "the agent")
    check_choice(spec.tool_choice, [*tools, *[definition.name for definition in output.tools]])
    return Bindings(
        spec,
        engine,
        tools,
        reader,
        prompt_functions=functions,
        validators=config.validators,
        filters=config.tool_filters,
        approval=config.approval,
        deliveries=config.deliveries,
        deps=deps,
        editor=None if config.editor is None else config.editor.bindings,
        stages=stages,
        engines=engines,
        watched=_watched(stages),
    )


def _watched(stages: Stages) -> Callable[[type[Any]], type[Any]] | None:
    """What makes drivers tell those who watch. Only an agent that is watched needs it."""
    if not (stages.watchers or stages.tracings):
        return None
    from flyball.orchestrate.watched import watched

    return watched


def _with_editor(config: AgentConfig) -> AgentConfig:
    """A config with an editor: it is an architect's."""
    name = getattr(getattr(config.editor, "config", None), "name", None)
    if not isinstance(name, str) or not name:
        raise UserError(f"editor= takes an agent that has a name, not {config.editor!r}")
    if config.role not in ("", ARCHITECT):
        raise UserError(f"only an architect has an editor, and this agent's role is {config.role!r}")
    return replace(config, role=ARCHITECT)


def _same_output(one: AgentConfig, other: AgentConfig) -> bool:
    """Whether two configs ask for the same output in the same way."""
    return (
        one.output is other.output
        and one.output_mode is other.output_mode
        and (one.grammar, one.asks_again) == (other.grammar, other.asks_again)
        and one.output_approval is other.output_approval
        and one.features == other.features
        and brought_by(one.tools) == brought_by(other.tools)
        and bool(one.validators) == bool(other.validators)
        and (one.model is other.model or one.output is str or one.output_mode is not None)
    )


def _tools(given: Any) -> tuple[Tool, ...]:
    if isinstance(given, Tool | str) or callable(given) or not isinstance(given, Iterable | Toolset):
        raise UserError(f"tools= takes several tools, such as tools=[{_name(given)}], not one")
    tools: list[Tool] = []
    for item in cast("Iterable[Any]", given):
        tools.extend(item.tools if isinstance(item, Toolset) else (as_tool(item),))
    return tuple(tools)


def _only(tools: tuple[Tool, ...], names: Iterable[str]) -> tuple[Tool, ...]:
    wanted = set(names)
    known = {tool.spec.definition.name for tool in tools}
    if unknown := sorted(wanted - known):
        raise UserError(f"there is no tool {unknown[0]!r}; there are: {', '.join(sorted(known)) or 'none'}")
    return tuple([tool for tool in tools if tool.spec.definition.name in wanted])


def _name(given: Any) -> str:
    return given.spec.definition.name if isinstance(given, Tool) else getattr(given, "__name__", repr(given))


def _mode(given: Any) -> OutputMode | None:
    if given is None:
        return None
    try:
        return OutputMode(given)
    except ValueError:
        modes = ", ".join(OutputMode)
        raise UserError(f"there is no output mode {given!r}; there are {modes}") from None


def _grammar(given: Any) -> str | None:
    """A grammar that can be used.

    Raises:
        GrammarMalformed: the text is none.
        UserError: it is no text.
    """
    if given is None:
        return None
    from flyball.constraint.grammar import GrammarDefinition, check_grammar

    if isinstance(given, GrammarDefinition):
        return given.grammar
    if not isinstance(given, str):
        raise UserError(f"grammar= takes a GrammarDefinition, or the text of a GBNF grammar, not {given!r}")

    check_grammar(given)
    return given


def _end_strategy(given: Any) -> Any:
    if given not in ("early", "exhaustive"):
        raise UserError(f"end_strategy is 'early' or 'exhaustive', not {given!r}")
    return given


def _functions(option: str, method: str = "", what: str = "") -> Callable[[Any], tuple[Any, ...]]:
    def shape(given: Any) -> tuple[Any, ...]:
        if callable(given) or not isinstance(given, Iterable):
            raise UserError(f"{option}= takes several functions, such as {option}=[check], not {given!r}")
        functions = tuple(cast("Iterable[Any]", given))
        for one in functions:
            if not callable(one) and not callable(getattr(one, method, None)):
                raise UserError(f"{option}= takes {what or 'functions'}, not {one!r:.200}")
        return functions

    return shape


def _tool_choice(given: Any) -> ToolChoice | None:
    if given is not None and not isinstance(given, ToolChoice):
        raise UserError(f"tool_choice= takes ToolChoice('required') or the like, not {given!r:.200}")
    return given


_SHAPE: dict[str, Any] = {
    "output": as_output,
    "tools": _tools,
    "instructions": as_instructions,
    "output_mode": _mode,
    "end_strategy": _end_strategy,
    "grammar": _grammar,
    "validators": _functions("validators"),
    "deliveries": _functions("deliveries"),
    "tool_filters": _functions(
        "tool_filters",
        "filter_tool_calls",
        "functions (ctx, calls), or objects with filter_tool_calls(loop_id, calls)",
    ),
    "tool_choice": _tool_choice,
    "features": as_features,
    "limits": sensible_limits,
    "settings": sensible_settings,
}

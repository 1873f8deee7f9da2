"""From a SystemRequest, or a recorded loop, to a run: which agent runs it, with which prompt and options."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isawaitable
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.correlation import Correlation
from flyball.core.errors import InvalidRequest, RuleFailed, ValidationFailure
from flyball.core.ids import new_id
from flyball.core.messages import Part
from flyball.core.settings import STRUCTURED, ModelSettings
from flyball.core.spec import LoopSpec, OutputMode, OutputSpec
from flyball.inference.engine import Engine
from flyball.inference.profile import profile_for
from flyball.orchestrate.bindings import Validator
from flyball.orchestrate.config import AgentConfig
from flyball.orchestrate.contracts import Mode, OutputContract, SystemRequest
from flyball.orchestrate.contracts.conversation import conversation
from flyball.orchestrate.output import prompted_instructions
from flyball.orchestrate.output_types import ToolOutput
from flyball.orchestrate.schema_output import SchemaOutput
from flyball.tool.errors import ModelRetry
from flyball.tool.outside_tool import OutsideTool
from flyball.tool.protocol import Tool


class Run(Struct, frozen=True):
    """A run that a request asks for.

    `changes` make the agent that runs it from the one behind the door; `options` are those of `Agent.run`.
    `settings` are those of calls whose answers follow no schema.
    """

    changes: Mapping[str, Any]
    settings: ModelSettings
    prompt: tuple[Part, ...] | None
    options: Mapping[str, Any]


def identified(request: SystemRequest) -> SystemRequest:
    """The request with the ids that it lacks.

    Raises:
        InvalidRequest: it is none.
    """
    if not isinstance(request, SystemRequest):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
        raise InvalidRequest(
            f"a system is asked by a SystemRequest, not by {request!r:.100}", field="request"
        )
    if request.request_id and request.trace_id:
        return request
    return replace(request, request_id=request.request_id or new_id(), trace_id=request.trace_id or new_id())


def run_for(request: SystemRequest, loop_id: str, config: AgentConfig, engine: Engine) -> Run:
    """The run that a request asks for, of an agent with this configuration.

    Raises:
        InvalidRequest: it cannot be served; `field` names what stands in the way.
        SchemaRequired: the mode needs a schema and there is none.
        SchemaMalformed: the schema is no JSON Schema.
    """
    if request.mode not in tuple(Mode):
        raise InvalidRequest(
            f"the mode {request.mode!s} is not one that this system serves: it serves {', '.join(Mode)}",
            field="mode",
            served=list(Mode),
        )
    request = request.check()
    talk = conversation(request.messages)
    changes: dict[str, Any] = {"model": engine, **_limits(request, config), **_tools(request, config)}
    settings = request.hints.settings().over(config.settings)
    structured = request.mode in (Mode.STRUCTURED, Mode.REDUNDANT)
    changes["settings"] = settings.over(STRUCTURED) if structured else settings
    if talk.instructions:
        changes["instructions"] = (*config.instructions, *talk.instructions)
    if request.output is not None:
        changes |= _output(request.output, config, engine)
    options: dict[str, Any] = {
        "loop_id": loop_id,
        "messages": talk.history,
        "correlation": Correlation(
            request_id=request.request_id,
            session_id=request.session_id,
            trace_id=request.trace_id,
            span_id=request.span_id,
        ),
    }
    if request.metadata is not None:
        options["metadata"] = request.metadata
    return Run(changes, settings, talk.prompt, options)


def _limits(request: SystemRequest, config: AgentConfig) -> dict[str, Any]:
    """The request's time-out, which may be shorter than the agent's, and not longer."""
    wanted, limit = request.hints.timeout, config.limits.timeout
    if not wanted or (limit is not None and limit <= wanted):
        return {}
    return {"limits": replace(config.limits, timeout=float(wanted))}


def time_for(request: SystemRequest, config: AgentConfig) -> float | None:
    """The seconds that a request has as a whole, if there is a limit; None also where it will be refused."""
    try:
        request.hints.check()
    except (AttributeError, InvalidRequest):
        return None
    return _limits(request, config).get("limits", config.limits).timeout


def _tools(request: SystemRequest, config: AgentConfig) -> dict[str, Any]:
    """The agent's tools that the request may use, those that the caller runs, and the choice among them."""
    changes: dict[str, Any] = {}
    known = {tool.spec.definition.name: tool for tool in config.tools} if request.tools else {}
    if request.tools:
        changes["tools"] = _chosen(request, known)
    if request.caller_tools:
        taken = {tool.spec.definition.name for tool in config.tools}
        for number, tool in enumerate(request.caller_tools):
            if tool.name in taken:
                raise InvalidRequest(
                    f"caller_tools[{number}]: the agent has a tool {tool.name!r} itself: rename yours",
                    field=f"caller_tools[{number}].name",
                )
        outside = [OutsideTool(tool) for tool in request.caller_tools]
        changes["tools"] = [*changes.get("tools", config.tools), *outside]
    if request.tool_choice is not None:
        changes["tool_choice"] = request.tool_choice
    return changes


def _chosen(request: SystemRequest, known: Mapping[str, Tool]) -> list[Tool]:
    if unknown := sorted(set(request.tools) - set(known)):
        raise InvalidRequest(
            f"tools: there is no {unknown[0]!r}; there are: {', '.join(sorted(known)) or 'none'}",
            field="tools",
            unknown=unknown,
            known=sorted(known),
        )
    return [tool for name, tool in known.items() if name in request.tools]


def _output(contract: OutputContract, config: AgentConfig, engine: Engine) -> dict[str, Any]:
    """How the agent is held to the contract."""
    changes: dict[str, Any] = {}
    if contract.grammar:
        changes["grammar"] = contract.grammar
    if contract.strict_validation:
        changes["validators"] = tuple([_final(validator) for validator in config.validators])
    retry = contract.repair_allowed and not contract.strict_validation
    changes["asks_again"] = retry
    if contract.schema is None:
        return changes
    changes["output"] = SchemaOutput(contract.schema, contract.repair_allowed, retry)
    if config.output_mode is None and not contract.grammar and profile_for(engine).native_schema:
        # The content is then what pagantic calls the raw text: the JSON itself, as the model wrote it.
        changes["output_mode"] = OutputMode.NATIVE
    return changes


def _final(validator: Validator) -> Validator:
    """A validator whose word is the last: what it would have put right by the model ends the run."""
    name = getattr(validator, "__name__", type(validator).__name__)

    async def look(context: RunContext[Any], output: Any) -> Any:
        try:
            seen = validator(context, output)
            return await seen if isawaitable(seen) else seen
        except ModelRetry as retry:
            rules = [{"name": name, "reason": retry.message}]
            raise RuleFailed(retry.message, retryable=False, rules=rules) from retry
        except ValidationFailure as failure:
            failure.retryable = False
            raise

    return look


# Recorded loops


def recorded_output(spec: OutputSpec, given: Any = str) -> Any:
    """The output that a recorded loop is held to: the type that is given, or else the recorded schemas."""
    if given is not str or (spec.schema is None and not spec.tools):
        return given
    if len(spec.tools) == 1 and not spec.allows_text:
        return _schema_of(spec.tools[0].parameters, spec.outer_key, spec)
    if not spec.tools:
        return _schema_of(spec.schema or {}, spec.outer_key, spec)
    members = [
        ToolOutput[Any](
            cast("Any", _schema_of(one.parameters, one.outer_key, spec)), one.name, one.description
        )
        for one in spec.tools
    ]
    return (*members, str) if spec.allows_text else tuple(members)


def _schema_of(schema: dict[str, Any], outer_key: str | None, spec: OutputSpec) -> SchemaOutput:
    schema = schema if outer_key is None else unwrapped(schema, outer_key)
    return SchemaOutput(schema, spec.repair, spec.retry)


def recorded_policy(spec: LoopSpec, config: AgentConfig) -> dict[str, Any]:
    """What makes an agent that goes by a recorded policy from one that has the code: its model and tools."""
    instructions = spec.instructions
    if spec.output.mode is OutputMode.PROMPTED:
        instructions = instructions.removesuffix(prompted_instructions(spec.output)).rstrip("\n")
    functions = [text for text in config.instructions if not isinstance(text, str)]
    own = {tool.spec.definition.name for tool in config.tools}
    return {
        "name": spec.agent,
        "instructions": (*([instructions] if instructions else []), *functions),
        "tools": [
            *[tool for tool in config.tools if tool.spec.definition.name in spec.tools],
            *[OutsideTool(tool) for name, tool in spec.tools.items() if tool.outside and name not in own],
        ],
        "output": recorded_output(spec.output, config.output),
        "grammar": spec.output.grammar,
        "settings": spec.settings,
        "limits": spec.limits,
        "retries": spec.retries,
        "tool_choice": spec.tool_choice,
        "end_strategy": spec.end_strategy,
        "role": spec.role,
        "output_mode": _recorded_mode(spec.output, config),
        "output_approval": spec.output.approval,
        "asks_again": spec.output.grammar is None or spec.output.retry,
    }


def _recorded_mode(spec: OutputSpec, config: AgentConfig) -> OutputMode | None:
    """How the output was asked for, where the agent here does not say: its model may be used to another."""
    plain = spec.schema is None and not spec.tools
    return config.output_mode if plain else spec.mode


def unwrapped(schema: dict[str, Any], key: str) -> dict[str, Any]:
    """The schema of what stands under a key of the object that it was wrapped in."""
    beside = {name: value for name, value in schema.items() if name not in ("type", "properties", "required")}
    return _moved_back({**beside, **schema["properties"][key]}, f"#/properties/{key}")


def _moved_back(value: Any, place: str) -> Any:
    if isinstance(value, list):
        return [_moved_back(item, place) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    moved = {name: _moved_back(inner, place) for name, inner in cast("dict[str, Any]", value).items()}
    if isinstance(reference := moved.get("$ref"), str) and reference.startswith(place):
        moved["$ref"] = f"#{reference.removeprefix(place)}"
    return moved

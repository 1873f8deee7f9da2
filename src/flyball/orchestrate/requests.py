"""The request that a turn's model call makes, worked out from the state. Pure, like the machine."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from flyball.core.effects import Infer
from flyball.core.settings import ModelSettings
from flyball.core.spec import LoopSpec, OutputMode
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.inference.request import OutputObject, Request
from flyball.orchestrate.compact_request import compact_request
from flyball.orchestrate.repair_request import repair_request
from flyball.orchestrate.state import State

_OTHERS: dict[str, Callable[[State, Infer], Request]] = {
    "repair": repair_request,
    "compact": compact_request,
}
"""The requests of model calls that are made for something else than a turn."""


class RequestParts(Struct, frozen=True):
    """What is the same in all requests of a spec, worked out once."""

    tools: tuple[ToolDefinition, ...]
    output: OutputObject | None
    settings: ModelSettings
    grammar: str | None
    allows_text: bool


def request_parts(spec: LoopSpec) -> RequestParts:
    """What all requests under this spec share."""
    output = spec.output
    structured = output.mode in (OutputMode.NATIVE, OutputMode.GRAMMAR) and output.schema is not None
    return RequestParts(
        tuple([tool.definition for tool in spec.tools.values()]) + output.tools,
        OutputObject(output.schema or {}, output.name or "output", output.description, output.strict)
        if structured
        else None,
        spec.settings,
        output.grammar,
        output.allows_text,
    )


def request_for(state: State, effect: Infer) -> Request:
    """The request of a model call that is made for something else than a turn."""
    return _OTHERS[effect.purpose](state, effect)


def request_of(state: State, effect: Infer, parts: RequestParts) -> Request:
    """The request that an Infer effect stands for. The same state gives the same request, byte for byte."""
    if effect.purpose != "turn":
        return request_for(state, effect)
    tools, choice = parts.tools, state.tool_choice
    if state.offered is not None:
        offered = {*state.offered, *(definition.name for definition in state.spec.output.tools)}
        tools = tuple([definition for definition in tools if definition.name in offered])
        if choice is not None and not _can_be_met(choice, tools):
            choice = None
    if state.definitions:
        told = {definition.name: definition for definition in state.definitions}
        tools = tuple([told.get(definition.name, definition) for definition in tools])
    return Request(
        tuple(state.history if state.sent is None else state.sent.messages),
        tools,
        parts.settings,
        choice,
        parts.output,
        parts.grammar,
        parts.allows_text,
        effect.id,
        state.deadline,
    )


def _can_be_met(choice: ToolChoice, tools: tuple[ToolDefinition, ...]) -> bool:
    """Whether the model can do what it must with the tools on offer: else no provider takes the request."""
    if choice.forced is not None:
        return any(definition.name == choice.forced for definition in tools)
    return choice.mode != "required" or bool(tools)

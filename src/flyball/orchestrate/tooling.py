"""An agent's tools in its loops: what is put around them, and which of them are on offer in a turn.

The order in which a turn's offer comes about: the tools of the spec, those that can work now, each as its own
preparation has it, and what the agent's preparations leave of that.
"""

from __future__ import annotations

from asyncio import gather
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.core.spec import LoopSpec
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.failing import as_rule
from flyball.orchestrate.features import Stages
from flyball.orchestrate.recordable import recordable
from flyball.tool.availability import availability
from flyball.tool.protocol import Tool
from flyball.tool.wrapped import LimitedTool, TruncatedTool, ValidatedTool

if TYPE_CHECKING:
    from flyball.orchestrate.bindings import Bindings


# When an agent is put together


def equipped(tools: Iterable[Tool], stages: Stages) -> list[Tool]:
    """The tools with what the agent's features put around them; the same ones, where that is nothing.

    From the inside: the tool with its own validators, the agent's validators, the cut, the time-out; the last
    not around one whose calls are loops, which have their own, or are run outside.
    """
    checks = tuple([validator.check for validator in stages.result_validators])
    made: list[Tool] = []
    for given in tools:
        tool = given
        if checks:
            tool = ValidatedTool(tool, checks)
        for truncation in stages.truncations:
            tool = TruncatedTool(tool, truncation)
        spec = tool.spec
        if stages.default_timeouts and spec.timeout is None and not (spec.begins_loop or spec.outside):
            tool = LimitedTool(tool, stages.default_timeouts[0].seconds)
        made.append(tool)
    return made


def asked_each_turn(tool: Tool) -> bool:
    """Whether something about the tool is decided before each turn."""
    return tool.spec.checks_availability or getattr(tool, "prepare", None) is not None


def check_choice(choice: ToolChoice | None, names: Iterable[str]) -> None:
    """Check that a tool which the model is to call is there.

    Raises:
        UserError: it is not.
    """
    known = tuple(names)
    if choice is not None and choice.forced is not None and choice.forced not in known:
        raise UserError(
            f"tool_choice= names the tool {choice.forced!r}, which there is not; there are: "
            f"{', '.join(known) or 'none'}",
            tool=choice.forced,
        )


# Before each turn


async def offered(
    spec: LoopSpec, bindings: Bindings, context: RunContext[Any]
) -> tuple[tuple[str, ...] | None, tuple[ToolDefinition, ...]]:
    """The tools on offer in a turn (None: all), and what the model is told of them that the spec has not.

    Raises:
        FlyballError: a preparation failed, or gave what cannot be.
    """
    asked = bindings.stages.tools_prepares or any(map(asked_each_turn, bindings.tools.values()))
    if not asked and not any(tool.checks_availability for tool in spec.tools.values()):
        return None, ()
    from flyball.tool.preparing import check_all_prepared, check_prepared, to_change

    definitions = await _available(spec, bindings, context)
    for name, definition in tuple(definitions.items()):
        prepare = getattr(bindings.tools.get(name), "prepare", None)
        if prepare is not None:
            who = f"the preparation of the tool {name!r}"
            changed = await _asked(prepare, context, to_change(definition), who)
            if changed is None:
                del definitions[name]
            else:
                definitions[name] = check_prepared(changed, who, {name: definition})
    for feature in bindings.stages.tools_prepares:
        who, copies = f"the tool preparation {feature.name!r}", list(map(to_change, definitions.values()))
        definitions = check_all_prepared(await _asked(feature.check, context, copies, who), who, definitions)
    told = [
        recordable(definition, f"the definition of the tool {name!r}")
        for name in spec.tools
        if (definition := definitions.get(name)) is not None and definition != spec.tools[name].definition
    ]
    return tuple([name for name in spec.tools if name in definitions]), tuple(told)


async def _asked(function: Callable[..., Any], context: RunContext[Any], about: Any, who: str) -> Any:
    try:
        return await answer_of(function, context, about)
    except Exception as error:
        raise as_rule(error, f"{who} failed") from error


async def _available(
    spec: LoopSpec, bindings: Bindings, context: RunContext[Any]
) -> dict[str, ToolDefinition]:
    """The tools that can work now, and those that somebody else has, or runs."""
    tools = spec.tools
    bound = [(name, bindings.tools[name]) for name in tools if name in bindings.tools]
    found = await gather(*[availability(tool, context) for _, tool in bound])
    can = {name for (name, _), tool in zip(bound, found, strict=True) if tool.available}
    return {
        name: tool.definition
        for name, tool in tools.items()
        if name in can or tool.elsewhere or (tool.outside and name not in bindings.tools)
    }

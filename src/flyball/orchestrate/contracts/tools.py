"""Tools that the caller runs, and how free the model is to call tools: as JSON, and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from flyball.core.errors import InvalidRequest, SchemaMalformed, UserError
from flyball.core.forms.fields import Fields, malformed, written
from flyball.core.messages import JSON
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.tool.outside_tool import check_outside

_MODES = ("auto", "required", "none", "function")
_TOOL = frozenset({"name", "description", "parameters", "strict", "sequential"})
_CHOICE = frozenset({"mode", "tool_name", "auto_reset"})


def check_caller_tools(tools: Sequence[ToolDefinition], field: str = "caller_tools") -> None:
    """Check that a model can be told of tools that the caller runs, and can tell them apart.

    Raises:
        InvalidRequest: a name is none, or is there twice; `field` names the tool by its place.
        SchemaMalformed: the parameters of one are no JSON Schema of an object.
    """
    names: set[str] = set()
    for number, tool in enumerate(tools):
        place = f"{field}[{number}]"
        try:
            check_outside(tool)
        except SchemaMalformed as error:
            message = f"{place}.parameters: {error.message}"
            raise SchemaMalformed(message, field=f"{place}.parameters") from error
        except UserError as error:
            raise InvalidRequest(f"{place}.name: {error.message}", field=f"{place}.name") from error
        if tool.name in names:
            raise InvalidRequest(f"{place}: there are two tools {tool.name!r}", field=f"{place}.name")
        names.add(tool.name)


def read_caller_tool(value: JSON, where: str) -> ToolDefinition:
    """A tool from JSON; without parameters it takes none.

    Raises:
        InvalidMessage: it is malformed.
    """
    fields = Fields(value, where)
    parameters = fields.any("parameters")
    return ToolDefinition(
        name=fields.text("name"),
        parameters={} if parameters is None else Fields(parameters, fields.place("parameters")).rest() or {},
        description=fields.text("description"),
        strict=fields.flag("strict"),
        sequential=fields.flag("sequential") is True,
        extra=fields.rest(),
    )


def write_caller_tool(tool: ToolDefinition) -> dict[str, JSON]:
    """A tool as JSON."""
    known: dict[str, JSON] = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    }
    if tool.strict is not None:
        known["strict"] = tool.strict
    if tool.sequential:
        known["sequential"] = True
    return written(known, tool.extra, _TOOL)


def read_choice(fields: Fields) -> ToolChoice:
    """How free the model is, from JSON.

    Raises:
        InvalidMessage: there is no such mode, or no name beside the mode function.
    """
    mode, name = fields.text("mode") or "auto", fields.text("tool_name") or None
    if mode not in _MODES:
        raise malformed(fields.place("mode"), f"one of {', '.join(_MODES)}", mode)
    if mode == "function" and name is None:
        raise malformed(fields.place("tool_name"), "the tool's name, as the mode is function", name)
    return ToolChoice(cast("Any", mode), name, fields.flag("auto_reset") is True, fields.rest())


def write_choice(choice: ToolChoice) -> dict[str, JSON]:
    """How free the model is, as JSON."""
    known: dict[str, JSON] = {"mode": choice.mode}
    if choice.tool_name is not None:
        known["tool_name"] = choice.tool_name
    if choice.auto_reset:
        known["auto_reset"] = True
    return written(known, choice.extra, _CHOICE)

"""The tools that a client brings, and how free the model is to call them.

The client's choice is about the client's tools: `none` leaves its tools out, and an agent's own stay.
`required` and a tool's name hold for the first call: then the model is free, so that a loop can come to its
end.
"""

from __future__ import annotations

from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.adapters.http.openai.errors import Refused, unsupported
from flyball.adapters.http.openai.reading import param_of, place, required_text
from flyball.core.forms.fields import Fields, items, malformed
from flyball.core.messages import JSON
from flyball.core.tools import ToolChoice, ToolDefinition

NO_PARAMETERS: dict[str, Any] = {"type": "object", "properties": {}}


class Offered(Struct, frozen=True):
    """What the model may call of the client's, and whether it must."""

    tools: tuple[ToolDefinition, ...] = ()
    choice: ToolChoice | None = None


def read_tools(fields: Fields, *, nested: bool) -> Offered:
    """`tools`, `tool_choice` and `parallel_tool_calls` of a request.

    `nested`: a function stands under the key `function`, as in Chat Completions.

    Raises:
        InvalidMessage: one is malformed.
        Refused: one is no function, or chosen and not there.
    """
    tools = [_tool(*item, nested=nested) for item in fields.items("tools")]
    if fields.flag("parallel_tool_calls") is False:
        tools = [replace(tool, sequential=True) for tool in tools]
    where = fields.place("tool_choice")
    return _chosen(tuple(tools), fields.any("tool_choice"), where, nested=nested)


def _tool(value: JSON, where: str, *, nested: bool) -> ToolDefinition:
    fields = Fields(value, where)
    kind = required_text(fields, "type")
    if kind != "function":
        raise unsupported(
            param_of(fields, "type"), f"there is no tool {kind!r} here: only functions of your own"
        )
    if nested:
        fields = Fields(fields.any("function"), fields.place("function"))
    parameters = dict(fields.mapping("parameters") or NO_PARAMETERS)
    parameters.setdefault("type", "object")
    return ToolDefinition(
        required_text(fields, "name"), parameters, fields.text("description"), strict=fields.flag("strict")
    )


def _chosen(tools: tuple[ToolDefinition, ...], choice: JSON, where: str, *, nested: bool) -> Offered:
    if choice is None or choice == "auto":
        return Offered(tools)
    if choice == "none":
        return Offered()
    if isinstance(choice, str):
        if choice != "required":
            raise malformed(where, "none, auto, required, or an object", choice)
        if not tools:
            raise Refused("'tool_choice' is only allowed when 'tools' are specified.", param=place(where))
        return Offered(tools, ToolChoice("required", auto_reset=True))
    fields = Fields(choice, where)
    kind = required_text(fields, "type")
    if kind == "allowed_tools":
        return _allowed(tools, fields, nested=nested)
    if kind != "function":
        raise unsupported(param_of(fields, "type"), f"there is no choice {kind!r} here")
    inner = Fields(fields.any("function"), fields.place("function")) if nested else fields
    name = _known(required_text(inner, "name"), tools, inner.place("name"))
    return Offered(tools, ToolChoice("function", name, auto_reset=True))


def _allowed(tools: tuple[ToolDefinition, ...], fields: Fields, *, nested: bool) -> Offered:
    """Some of the tools, of which one may have to be called."""
    if nested:
        fields = Fields(fields.any("allowed_tools"), fields.place("allowed_tools"))
    mode = required_text(fields, "mode")
    if mode not in ("auto", "required"):
        raise malformed(fields.place("mode"), "auto or required", mode)
    names: list[str] = []
    for value, at in items(fields.any("tools"), fields.place("tools")):
        one = Fields(value, at)
        inner = Fields(one.any("function"), one.place("function")) if nested else one
        names.append(_known(required_text(inner, "name"), tools, inner.place("name")))
    left = tuple([tool for tool in tools if tool.name in names])
    return Offered(left, ToolChoice("required", auto_reset=True) if mode == "required" and left else None)


def _known(name: str, tools: tuple[ToolDefinition, ...], where: str) -> str:
    if name not in [tool.name for tool in tools]:
        raise Refused(f"{place(where)}: there is no tool {name!r} in 'tools'.", param=place(where))
    return name


def write_tools(tools: tuple[ToolDefinition, ...]) -> list[dict[str, Any]]:
    """The tools of a request as the Responses API tells them again."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description or None,
            "parameters": tool.parameters,
            "strict": tool.strict is True,
        }
        for tool in tools
    ]


def write_choice(choice: ToolChoice | None) -> Any:
    """The choice of a request as the Responses API tells it again."""
    if choice is None:
        return "auto"
    return {"type": "function", "name": choice.forced} if choice.forced else cast("str", choice.mode)

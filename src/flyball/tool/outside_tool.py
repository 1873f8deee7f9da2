"""OutsideTool: one that the model may call, and that whoever began the run carries out."""

from __future__ import annotations

from typing import Any

from flyball.core.context import RunContext
from flyball.core.errors import SchemaMalformed
from flyball.core.schema import check_schema
from flyball.core.tools import ToolDefinition, ToolKind, ToolSpec
from flyball.tool.errors import CallDeferred
from flyball.tool.options import check_name


class OutsideTool:
    """A tool of which only the definition is here: each call waits for its result from outside.

    The loop itself sees to that, so no driver and no worker ever has to do with a call. Filters look at it,
    as at any other; it needs no approval, and has no time-out: who has the call may run it or not.

    Raises:
        SchemaMalformed: the parameters are no JSON Schema of an object.
        UserError: the name is none that providers take.
    """

    __slots__ = ("spec",)

    wants_context = False

    def __init__(self, definition: ToolDefinition | ToolSpec) -> None:
        spec = definition if isinstance(definition, ToolSpec) else ToolSpec(check_outside(definition))
        self.spec = ToolSpec(
            spec.definition, retries=spec.retries, result_tokens=spec.result_tokens, outside=True
        )

    def __repr__(self) -> str:
        return f"OutsideTool({self.spec.definition.name!r})"

    async def run(self, args_json: str, context: RunContext[Any] | None) -> object:
        """See `Tool.run`. Nobody runs it where a loop decides; elsewhere its result is still to come."""
        raise CallDeferred(f"{self.spec.definition.name} is run by whoever began the loop")

    async def available(self, context: RunContext[Any]) -> bool | str:
        """See `Tool.available`."""
        return True


def check_outside(definition: ToolDefinition) -> ToolDefinition:
    """Return the definition of a tool that is run outside, if a model can be told of it.

    Raises:
        SchemaMalformed: the parameters are no JSON Schema of an object.
        UserError: the name is none that providers take, or the tool is to carry the output.
    """
    check_name(definition.name)
    if definition.kind is not ToolKind.FUNCTION:
        raise SchemaMalformed(f"the tool {definition.name!r} does something: its kind is function")
    check_schema(definition.parameters)
    if definition.parameters.get("type") != "object":
        raise SchemaMalformed(
            f"the parameters of the tool {definition.name!r} have type "
            f"{definition.parameters.get('type')!r}; arguments are an object",
            tool=definition.name,
        )
    return definition

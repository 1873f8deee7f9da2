"""The @tool decorator, and how whatever was given as a tool becomes one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from flyball.tool.function_tool import FunctionTool
from flyball.tool.options import ToolOptions
from flyball.tool.protocol import Tool

P = ParamSpec("P")
R = TypeVar("R")


@overload
def tool(fn: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    fn: None = None, /, **options: Unpack[ToolOptions]
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(fn: Callable[..., Any] | None = None, /, **options: Unpack[ToolOptions]) -> Any:
    """Make a tool from a typed function, as `@tool` or with options, as `@tool(timeout=5)`.

    The schema comes from the type hints, descriptions from the docstring (Google, NumPy or Sphinx style) or
    from `Annotated[..., Field(description=...)]`. The first parameter may be a RunContext. What it gives back
    can be called as the function was.

    Raises:
        SchemaMalformed: a parameter's type has no schema; the message names the tool and the parameter.
        UserError: the function or an option cannot be.
    """
    if fn is not None:
        return FunctionTool.from_function(fn, **options)

    def decorate(function: Callable[..., Any]) -> FunctionTool[..., Any]:
        return FunctionTool.from_function(function, **options)

    return decorate


def as_tool(given: Tool | Callable[..., Any]) -> Tool:
    """A tool as it is; a function as the tool that `@tool` makes of it.

    Raises:
        SchemaMalformed, UserError: no tool can be made of it.
    """
    # A class has its instances' attributes, and would pass for a tool.
    if isinstance(given, Tool) and not isinstance(given, type):
        return given
    return FunctionTool.from_function(given)

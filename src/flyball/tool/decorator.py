"""The @tool decorator, and how whatever was given as a tool becomes one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar, Unpack, overload

from flyball.core.errors import UserError
from flyball.tool.function_tool import FunctionTool
from flyball.tool.method import ToolMethod
from flyball.tool.options import ToolOptions
from flyball.tool.protocol import Tool
from flyball.tool.signature import is_method

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
    can be called as the function was. In a class it marks a method, for `stateful`.

    Raises:
        SchemaMalformed: a parameter's type has no schema; the message names the tool and the parameter.
        UserError: the function or an option cannot be.
    """
    return partial(_made, options) if fn is None else _made(options, fn)


def _made(options: ToolOptions, fn: Callable[..., Any]) -> Any:
    return ToolMethod(fn, options) if is_method(fn) else FunctionTool.from_function(fn, **options)


def as_tool(given: Tool | Callable[..., Any]) -> Tool:
    """A tool as it is; a function as the tool that `@tool` makes of it.

    Raises:
        SchemaMalformed, UserError: no tool can be made of it.
    """
    # A class has its instances' attributes, and would pass for a tool.
    if isinstance(given, Tool) and not isinstance(given, type):
        return given
    if isinstance(given, ToolMethod):
        raise UserError(
            f"{given!r} is a method without its object: stateful(TheClass) makes tools of a class's methods; "
            "of one object's, tool(obj.method)"
        )
    return FunctionTool.from_function(given)

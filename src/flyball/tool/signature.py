"""What a function asks to be called with, and what of it the model may fill in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from inspect import Parameter
from typing import Annotated, Any, get_args, get_origin

from msgspec import Struct

from flyball.core.context import RunContext
from flyball.core.errors import SchemaMalformed, UserError
from flyball.tool.hints import resolve, underlying

MISSING: Any = Parameter.empty
"""Stands for: the parameter has no default."""


class Argument(Struct, frozen=True):
    """One parameter that the model fills in."""

    name: str
    annotation: Any
    default: Any = MISSING


class Signature(Struct, frozen=True):
    """The model's arguments, and whether a RunContext comes before them."""

    arguments: tuple[Argument, ...]
    takes_context: bool


def read_signature(tool: str, fn: Callable[..., Any], *, method: bool = False) -> Signature:
    """Read a function's signature; with `method`, without the object that comes first.

    Raises:
        SchemaMalformed: a parameter cannot be passed by name, or its annotation cannot be resolved.
        UserError: the function cannot be a tool, or its RunContext does not come first.
    """
    parameters = parameters_of(tool, fn, method=method)
    hints = resolve(tool, fn, _annotated(parameters))
    context_first = _context_first(parameters, hints)
    arguments: list[Argument] = []
    for name, parameter in list(parameters.items())[context_first:]:
        _refuse_unnamed(tool, parameter)
        if _is_context(hints.get(name)):
            raise UserError(f"tool {tool!r}: the RunContext {name!r} must be the first parameter", tool=tool)
        arguments.append(Argument(name, hints.get(name, Any), parameter.default))
    return Signature(tuple(arguments), context_first)


def takes_context(tool: str, fn: Callable[..., Any]) -> bool:
    """Whether the first parameter is a RunContext; the others are not looked at.

    Raises:
        SchemaMalformed: its annotation cannot be resolved.
        UserError: the function cannot be a tool.
    """
    first = dict(list(parameters_of(tool, fn).items())[:1])
    return _context_first(first, resolve(tool, fn, _annotated(first)))


def is_method(fn: Any) -> bool:
    """Whether it is a function that stands in a class: its first parameter is its object."""
    if not inspect.isfunction(fn):
        return False
    first = next(iter(inspect.signature(fn).parameters.values()), None)
    return first is not None and first.name == "self" and first.annotation is MISSING


def parameters_of(tool: str, fn: Callable[..., Any], *, method: bool = False) -> dict[str, Parameter]:
    """The parameters of a function that can be a tool; of a method, those after its object.

    Raises:
        UserError: it is a class, a generator, a method without its object, or has no signature at all.
    """
    if isinstance(fn, type):
        raise UserError(f"tool {tool!r} is the class {fn.__qualname__}: give a function instead", tool=tool)
    if inspect.isgeneratorfunction(underlying(fn)) or inspect.isasyncgenfunction(underlying(fn)):
        raise UserError(f"tool {tool!r} is a generator: return a list or one text instead", tool=tool)
    try:
        parameters = dict(inspect.signature(fn).parameters)
    except (ValueError, TypeError) as error:
        raise UserError(f"tool {tool!r}: its signature cannot be read: {error}", tool=tool) from error
    first = next(iter(parameters.values()), None)
    if method and first is not None:
        del parameters[first.name]
    elif first is not None and first.name in {"self", "cls"} and first.annotation is MISSING:
        raise UserError(
            f"tool {tool!r} is a method without its object: make it from the bound one, tool(obj.method)",
            tool=tool,
        )
    return parameters


def _annotated(parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    return {name: p.annotation for name, p in parameters.items() if p.annotation is not MISSING}


def _refuse_unnamed(tool: str, parameter: Parameter) -> None:
    name = parameter.name
    match parameter.kind:
        case Parameter.POSITIONAL_ONLY:
            fault = f"parameter {name!r} is positional-only; arguments are passed by name: remove the '/'"
        case Parameter.VAR_POSITIONAL:
            fault = f"parameter '*{name}' has no name to be passed by: use a list"
        case Parameter.VAR_KEYWORD:
            fault = f"parameter '**{name}' has no schema: use a dict, or FunctionTool.from_schema"
        case _:
            return
    raise SchemaMalformed(f"tool {tool!r}: {fault}", tool=tool, parameter=name)


def _context_first(parameters: Mapping[str, Parameter], hints: Mapping[str, Any]) -> bool:
    first = next(iter(parameters.values()), None)
    positional = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    return first is not None and first.kind in positional and _is_context(hints.get(first.name))


def _is_context(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    origin = get_origin(hint) or hint
    return isinstance(origin, type) and issubclass(origin, RunContext)

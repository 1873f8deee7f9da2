"""A function's type hints, resolved as Python itself would have where the function was defined.

Hints may be text (`from __future__ import annotations`) that names things of the enclosing function. Those
are looked up in the frames that are defining the function right now, found by their code objects, and in the
function's closure.
"""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from types import CodeType, FrameType, SimpleNamespace
from typing import Any

from flyball.core.errors import SchemaMalformed


def underlying(fn: Callable[..., Any]) -> Callable[..., Any]:
    """The plain function behind partials, bound methods, callable objects and wrappers."""
    if isinstance(fn, functools.partial):
        return underlying(fn.func)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]
    if inspect.ismethod(fn):
        return underlying(fn.__func__)
    if not inspect.isroutine(fn) and not isinstance(fn, type):
        return underlying(type(fn).__call__)
    return inspect.unwrap(fn)


def resolve(tool: str, fn: Callable[..., Any], annotations: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations (by parameter) with every text in them resolved; `Annotated` is kept.

    Raises:
        SchemaMalformed: one names something that cannot be found; the message names the parameter.
    """
    function = underlying(fn)
    names: dict[str, Any] = getattr(function, "__globals__", {})
    scope = _scope(function)
    try:
        return _hints(annotations, names, scope)
    except Exception:
        # Some annotation is wrong; asking for each alone says which.
        for name, annotation in annotations.items():
            try:
                _hints({name: annotation}, names, scope)
            except Exception as error:
                raise SchemaMalformed(
                    f"tool {tool!r}: the annotation of parameter {name!r} cannot be resolved "
                    f"({annotation!r}: {error}); import the name at run time, not only for type checking",
                    tool=tool,
                    parameter=name,
                ) from error
        raise


def _hints(annotations: Mapping[str, Any], names: dict[str, Any], scope: dict[str, Any]) -> dict[str, Any]:
    carrier = SimpleNamespace(__annotations__=dict(annotations))
    return typing.get_type_hints(carrier, names, scope, include_extras=True)  # pyright: ignore[reportArgumentType]


def _scope(function: Callable[..., Any]) -> dict[str, Any]:
    """The names around a function, innermost last: of the frames that define it, then of its closure."""
    code: CodeType | None = getattr(function, "__code__", None)
    if code is None:
        return {}
    levels: list[Mapping[str, Any]] = []
    wanted, frame = code, _caller()
    while frame is not None:
        if any(const is wanted for const in frame.f_code.co_consts):
            levels.append(frame.f_locals)
            wanted = frame.f_code
        frame = frame.f_back
    scope: dict[str, Any] = {}
    for level in reversed(levels):
        scope |= level
    for name, cell in zip(code.co_freevars, getattr(function, "__closure__", None) or (), strict=False):
        try:
            scope[name] = cell.cell_contents
        except ValueError:
            # An empty cell: the name is not bound yet, so no hint can mean it.
            continue
    return scope


def _caller() -> FrameType | None:
    return sys._getframe(2)  # pyright: ignore[reportPrivateUsage] # the one way to see the defining scope

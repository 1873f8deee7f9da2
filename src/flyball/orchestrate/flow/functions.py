"""What a user's function asks for and gives, as far as its annotations say."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, get_args, get_origin

from msgspec import Struct

from flyball.core.context import RunContext
from flyball.core.errors import SchemaMalformed, UserError
from flyball.orchestrate.awaiting import answer_of
from flyball.tool.hints import resolve, underlying

_AWAITED = (Awaitable, Coroutine)


class Function(Struct, frozen=True):
    """A function of one value, `(value)` or `(ctx, value)`, which may be async.

    `takes` and `gives` are the types that it is annotated with; Any where it is not. `agent` is the one that
    it runs, where that is known.
    """

    call: Callable[..., Any]
    name: str
    takes_context: bool = False
    takes: Any = Any
    gives: Any = Any
    agent: Any = None

    async def __call__(self, context: RunContext[Any], value: Any) -> Any:
        """Call it, and wait for what it gives."""
        given = (context, value) if self.takes_context else (value,)
        return await answer_of(self.call, *given)


def function_of(call: Any, what: str) -> Function:
    """Read a function; `what` is what it is to be.

    Raises:
        UserError: it is none, or takes no value.
        SchemaMalformed: an annotation of it cannot be resolved.
    """
    if not callable(call):
        raise UserError(f"{what} is a function, not {call!r}")
    name = getattr(call, "__name__", "") or type(call).__name__
    try:
        parameters = list(inspect.signature(call).parameters.values())
    except (ValueError, TypeError):
        # Some that are written in C do not say; a class gives what it is.
        return Function(call, name, gives=call if isinstance(call, type) else Any)
    asked = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if not asked and not any(one.kind is one.VAR_POSITIONAL for one in parameters):
        raise UserError(f"{what} {name!r} takes one value, or a RunContext and a value; it takes none")
    hints = _hints(call, what, name)
    first = hints.get(asked[0].name, Any) if asked else Any
    needed = [one for one in asked if one.default is one.empty]
    with_context = _is_context(first) or len(needed) > 1
    given = asked[1:] if with_context else asked
    takes = hints.get(given[0].name, Any) if given else Any
    gives = call if isinstance(call, type) else _given(hints.get("return", Any))
    return Function(call, name, with_context, takes, gives)


def _hints(call: Any, what: str, name: str) -> dict[str, Any]:
    annotations: dict[str, Any] = getattr(underlying(call), "__annotations__", {})
    if isinstance(call, type) or not annotations:
        return {}
    try:
        return resolve(name, call, annotations)
    except SchemaMalformed as error:
        raise SchemaMalformed(
            f"{what} {name!r} has an annotation that cannot be resolved ({error.__cause__}): "
            "import the name at run time, not only for type checking"
        ) from error


def _is_context(kind: Any) -> bool:
    kind = get_origin(kind) or kind
    return isinstance(kind, type) and issubclass(kind, RunContext)


def _given(kind: Any) -> Any:
    """What comes of waiting for what a function gives."""
    origin = get_origin(kind)
    if isinstance(origin, type) and issubclass(origin, _AWAITED):
        arguments = get_args(kind)
        return arguments[-1] if arguments else Any
    return kind

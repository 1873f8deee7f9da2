"""How a call gets from JSON text into a function. This is the hot path of every tool call.

One closure is made for each tool when it is made, for its kind of function, so that nothing is decided again
at each call. For an async function the closure returns the function's own coroutine: no layer lies between.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from types import CoroutineType
from typing import Any, Protocol

from flyball.core.context import RunContext
from flyball.core.errors import UserError
from flyball.tool.feedback import bad_arguments
from flyball.tool.schema import Validate


class Run(Protocol):
    """`Tool.run`, as an attribute."""

    def __call__(self, args_json: str, context: RunContext[Any] | None) -> CoroutineType[Any, Any, object]:
        """See `Tool.run`."""
        ...


def runner(fn: Callable[..., Any], validate: Validate, *, takes_context: bool) -> Run:
    """The `run` of a tool: validates the arguments and calls the function with them.

    It raises ModelRetry where the arguments are wrong. Sync functions run in a thread, with the caller's
    context variables.
    """
    fn = as_async(fn)
    return _with_context(fn, validate) if takes_context else _without_context(fn, validate)


def _without_context(fn: Callable[..., Any], validate: Validate) -> Run:
    def run(args_json: str, context: RunContext[Any] | None) -> CoroutineType[Any, Any, object]:
        try:
            arguments = validate(args_json)
        except ValueError as error:
            arguments = _blank_or_raise(validate, args_json, error)
        return fn(**arguments)

    return run


def _with_context(fn: Callable[..., Any], validate: Validate) -> Run:
    def run(args_json: str, context: RunContext[Any] | None) -> CoroutineType[Any, Any, object]:
        if context is None:
            raise UserError("the tool takes a RunContext, and was run without one")
        try:
            arguments = validate(args_json)
        except ValueError as error:
            arguments = _blank_or_raise(validate, args_json, error)
        return fn(context, **arguments)

    return run


def _blank_or_raise(validate: Validate, args_json: str, error: ValueError) -> dict[str, Any]:
    """Blank text stands for no arguments; all else that failed goes back to the model."""
    if args_json.strip():
        raise bad_arguments(error) from error
    try:
        return validate("{}")
    except ValueError as missing:
        raise bad_arguments(missing) from missing


def as_async(fn: Callable[..., Any]) -> Callable[..., Any]:
    """An async function as it is; a sync one as one that runs in a thread."""
    return fn if _is_async(fn) else _threaded(fn)


def _is_async(fn: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


def _threaded(fn: Callable[..., Any]) -> Callable[..., CoroutineType[Any, Any, object]]:
    def call(*args: Any, **arguments: Any) -> Any:
        try:
            return fn(*args, **arguments)
        except StopIteration as error:
            # A future cannot carry it: the caller would wait for ever.
            raise RuntimeError(f"StopIteration: {error}") from error
        except SystemExit as error:
            # It ends a thread, and not the process: here it is the end of this call.
            raise RuntimeError(f"SystemExit: {error}") from error

    async def run_in_thread(*args: Any, **arguments: Any) -> object:
        result = await asyncio.to_thread(call, *args, **arguments)
        # A plain wrapper around an async function gives its coroutine.
        return await result if inspect.isawaitable(result) else result

    return run_in_thread

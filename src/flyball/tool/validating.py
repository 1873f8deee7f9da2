"""Looking at what a tool gave back, before the model reads it.

A validator is a function `(ctx, result)`, sync or async. It refuses by raising, whatever it raises: the model
reads the message and may call again, as often as the tool's retries say. It gives None to leave the result as
it is, or what is to stand in its place. A result that says itself that the call failed is not shown to it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.feature import FunctionFeature
from flyball.core.messages import ResultKind, ToolResult
from flyball.tool.errors import ModelRetry
from flyball.tool.result import describe
from flyball.tool.running import Run

ResultValidator: TypeAlias = Callable[[RunContext[Any], Any], Any]
"""Looks at a result: gives None, or another one in its place; raises, and the model must call again."""


class ToolResultValidator(FunctionFeature):
    """Looks at the results of all tools of an agent: `check(ctx, result)`. `ctx.tool_name` says of which.

    It is asked after the tool's own validators. A tool that somebody else hosts is looked at there.
    """


def validated(run: Run, validators: tuple[ResultValidator, ...]) -> Run:
    """A tool's `run` whose result these look at, each at what the one before left; without any, the same.

    It takes a RunContext, also where the tool's own does not.
    """
    if not validators:
        return run

    async def run_validated(args_json: str, context: RunContext[Any] | None) -> object:
        value = await run(args_json, context)
        told = value if isinstance(value, ToolResult) else None
        if told is not None:
            if told.is_error or told.status is not ResultKind.RETURN:
                return value
            value = told.content
        for validator in validators:
            value = await _asked(validator, context, value)
        return value if told is None else replace(told, content=value)

    return run_validated


async def _asked(validator: ResultValidator, context: Any, value: object) -> object:
    try:
        said = validator(context, value)
        if inspect.isawaitable(said):
            said = await said
    except ModelRetry:
        raise
    except Exception as error:
        raise ModelRetry(f"The result was not accepted: {describe(error)}") from error
    if said is None:
        return value
    if isinstance(said, bool) and not isinstance(value, bool):
        # Somebody who means "it is good", or "it is not", and would lose the result by it.
        name = getattr(validator, "__name__", repr(validator))
        raise ModelRetry(
            f"The result cannot be used: its validator {name!r} gave {said}; it must raise ModelRetry to "
            "refuse a result, and give None to take it."
        )
    return said

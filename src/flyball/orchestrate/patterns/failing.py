"""Failures of patterns, in the category of what went wrong last: pagantic's rule.

A loop says, as gollem does, that the model gave no acceptable answer. Here that is the cause, and the failure
is of the constraint or the validation that the last answer did not pass.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

from flyball.core.errors import FlyballError, UnexpectedModelBehavior
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.flow.result import FlowResult
from flyball.orchestrate.responding import Asked, response_to
from flyball.orchestrate.result import RunResult
from flyball.orchestrate.schema_output import SchemaOutput


@asynccontextmanager
async def by_category(output: Any) -> AsyncGenerator[None]:
    """A block in which an agent with this type of output is asked: its failure is told by its category."""
    try:
        yield
    except UnexpectedModelBehavior as error:
        raise await _told(error, output) from error


async def _told(error: UnexpectedModelBehavior, output: Any) -> FlyballError:
    run = _failed(error.partial)
    if run is None or type(error) is not UnexpectedModelBehavior:
        return error
    schema = output if isinstance(output, SchemaOutput) else None
    asked = Asked(SystemRequest(messages=()), schema)
    told = response_to(asked, run, await run.events()).error
    if told is None or told.kind == UnexpectedModelBehavior.__name__:
        return error
    failure = told.exception()
    failure.partial = error.partial
    return failure


def _failed(partial: Any) -> RunResult[Any] | None:
    """The run that failed: this one, or the first that did of a flow's."""
    if isinstance(partial, RunResult):
        return cast("RunResult[Any]", partial)
    steps = cast("FlowResult[Any]", partial).steps if isinstance(partial, FlowResult) else ()
    return next((step.run for step in steps if step.error is not None and step.run is not None), None)

"""Whether tools can work now. Asked before each turn, so that the model is offered only what can."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, cast

from msgspec import Struct

from flyball.core.context import RunContext
from flyball.tool.options import Availability, AvailableFn
from flyball.tool.protocol import Tool
from flyball.tool.signature import parameters_of

Ask: TypeAlias = Callable[[RunContext[Any]], Awaitable[Availability]]


class ToolAvailability(Struct, frozen=True, omit_defaults=True):
    """Whether one tool can work now, and if not, why (where that is known)."""

    name: str
    available: bool
    reason: str = ""


async def availability(tool: Tool, context: RunContext[Any]) -> ToolAvailability:
    """Ask a tool whether it can work now. A check that raises means that it cannot, for that reason."""
    name = tool.spec.definition.name
    if not tool.spec.checks_availability:
        return ToolAvailability(name, available=True)
    try:
        answer = await tool.available(context)
    except Exception as error:
        return ToolAvailability(name, available=False, reason=f"{type(error).__name__}: {error}")
    return ToolAvailability(name, answer is True, answer if isinstance(answer, str) else "")


def asking(tool: str, check: AvailableFn | None) -> Ask | None:
    """The function of the `available` option, which may be async and may take the context, as one that does.

    Raises:
        UserError: its signature cannot be read.
    """
    if check is None:
        return None
    wants_context = bool(parameters_of(tool, check))
    call = cast("Callable[..., Any]", check)

    async def ask(context: RunContext[Any]) -> Availability:
        answer: Any = call(context) if wants_context else call()
        if inspect.isawaitable(answer):
            answer = await answer
        return answer if isinstance(answer, str) else bool(answer)

    return ask

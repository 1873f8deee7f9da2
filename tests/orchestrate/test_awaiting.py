"""A user's function that ends with somebody else's cancellation has failed: the run was not cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from flyball import (
    Agent,
    InputGuardrail,
    MessageInterceptor,
    Reflection,
    ResponseInterceptor,
    RunCondition,
    ToolsPrepare,
    TurnGuardrail,
    tool,
)
from flyball.core.errors import GuardrailError, RuleFailed
from tests.orchestrate.conftest import Runner
from tests.orchestrate.models import Script


@tool
async def look(place: str = "here") -> str:
    """Look."""
    return place


def looks_at_what_was_cancelled(*_: Any) -> Any:
    """As `future.result()` of one that somebody has cancelled."""
    raise asyncio.CancelledError


async def waits_for_what_was_cancelled(*_: Any) -> Any:
    await asyncio.sleep(0)
    raise asyncio.CancelledError


Asked = Callable[..., Any]
PLACES: dict[str, Callable[[Asked], dict[str, Any]]] = {
    "prompt function": lambda function: {"instructions": function},
    "input guardrail": lambda function: {"features": [InputGuardrail(function)]},
    "message interceptor": lambda function: {"features": [MessageInterceptor(function)]},
    "turn guardrail": lambda function: {"features": [TurnGuardrail(function)]},
    "tool preparation": lambda function: {"features": [ToolsPrepare(function)]},
    "response interceptor": lambda function: {"features": [ResponseInterceptor(function)]},
    "run condition": lambda function: {"features": [RunCondition(function)]},
    "one of two conditions": lambda function: {"features": [RunCondition(function) | RunCondition(function)]},
    "validator": lambda function: {"validators": [function]},
    "reflection": lambda function: {"features": [Reflection(function)]},
}


@pytest.mark.parametrize("function", [looks_at_what_was_cancelled, waits_for_what_was_cancelled])
@pytest.mark.parametrize("place", PLACES)
async def test_what_a_function_looks_at_may_be_cancelled_and_the_run_is_not(
    run: Runner, place: str, function: Asked
) -> None:
    agent = Agent(Script("done"), tools=[look], **PLACES[place](function))
    error = await run.failing(GuardrailError if "guardrail" in place else RuleFailed, agent, "go")
    assert "something that it waited for was cancelled" in str(error)

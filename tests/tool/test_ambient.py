"""The run and the call, as code deep beneath a tool finds them."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from flyball import Agent, AmbientContext, RunContext, current_context, tool
from flyball.inference.answers import tool_call as call
from flyball.testing import CALM, ScriptedEngine, SplitDriver
from flyball.tool.ambient import run_id, tool_call_id

Seen = tuple[str, str]


def deep() -> Seen:
    """What a logger would find."""
    return run_id(), tool_call_id()


@tool
async def plain() -> list[Seen]:
    """Look, also from a task and a thread."""
    return [deep(), await asyncio.create_task(in_a_task()), await asyncio.to_thread(deep)]


@tool
async def knowing(ctx: RunContext[Any]) -> bool:
    """Compare with what was passed."""
    return current_context() is ctx and ctx.deps == "shop"


@tool
def sync() -> list[str]:
    """A function that runs in a thread of its own, perhaps."""
    return [*deep(), threading.current_thread().name]


async def in_a_task() -> Seen:
    return deep()


def agent(*features: Any) -> Agent[Any, str]:
    calls = [call("plain"), call("plain"), call("knowing"), call("sync")]
    return Agent(ScriptedEngine(calls, "done"), tools=[plain, knowing, sync], features=features)


async def test_what_a_call_does_finds_its_context() -> None:
    result = await agent(AmbientContext()).run("go", deps="shop")
    first, second, third, fourth = result.messages[2].tool_results
    assert first.content == [[result.loop_id, first.call_id]] * 3
    assert second.content == [[result.loop_id, second.call_id]] * 3
    assert third.content is True
    assert fourth.content[:2] == [result.loop_id, fourth.call_id]
    assert deep() == ("", "")
    assert current_context() is None


async def test_without_it_there_is_none() -> None:
    result = await agent().run("go", deps="shop")
    first, _, third, fourth = result.messages[2].tool_results
    assert first.content == [["", ""]] * 3
    assert third.content is False
    assert fourth.content[:2] == ["", ""]


async def test_in_another_process_too() -> None:
    result = await agent(AmbientContext()).run("go", runtime=SplitDriver(1, CALM, deps="shop"))
    first, *_ = result.messages[2].tool_results
    assert first.content == [[result.loop_id, first.call_id]] * 3


async def test_a_loop_goes_on_as_well_without_it() -> None:
    assert agent(AmbientContext()).spec == agent().spec

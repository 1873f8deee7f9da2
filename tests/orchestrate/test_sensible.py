"""Limits, settings and options that cannot be meant are told at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import pytest

from flyball import (
    Agent,
    AgentStep,
    Limits,
    MemoryJournal,
    ModelSettings,
    RunSnapshot,
    Template,
    ToolChoice,
    ToolOutput,
    TransformStep,
    UsageLimits,
    UsageQuota,
    estimate_run_cost,
    snapshot_at,
    stateful,
)
from flyball.core.errors import FlyballError, UserError
from flyball.inference.scripted import ScriptedEngine


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (5, "takes Limits"),
        (Limits(max_iterations=-1), "max_iterations"),
        (Limits(max_iterations=True), "max_iterations"),
        (Limits(max_concurrency=0), "max_concurrency"),
        (Limits(max_concurrency=None), "max_concurrency"),  # pyright: ignore[reportArgumentType]
        (Limits(timeout=0), "timeout"),
        (Limits(timeout=float("nan")), "timeout"),
        (Limits(timeout=float("inf")), "timeout"),
        (Limits(usage=UsageLimits(request_limit=-1)), "request_limit"),
        (Limits(usage=7), "UsageLimits"),  # pyright: ignore[reportArgumentType]
        (Limits(quota=UsageQuota(max_requests=-1)), "max_requests"),
        (Limits(quota=7), "UsageQuota"),  # pyright: ignore[reportArgumentType]
    ],
)
async def test_limits_that_cannot_be_kept_are_refused(limits: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        Agent(ScriptedEngine("hi"), limits=limits)
    with pytest.raises(UserError, match=told):
        await Agent(ScriptedEngine("hi")).run("?", limits=limits)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({}, "takes ModelSettings"),
        (ModelSettings(max_tokens=0), "max_tokens"),
        (ModelSettings(thinking_budget=-1), "thinking_budget"),
        (ModelSettings(temperature=-0.5), "temperature"),
        (ModelSettings(top_p=float("nan")), "top_p"),
        (ModelSettings(reasoning_effort=""), "reasoning_effort"),
    ],
)
async def test_settings_that_no_model_knows_are_refused(settings: Any, told: str) -> None:
    with pytest.raises(UserError, match=told):
        Agent(ScriptedEngine("hi"), settings=settings)
    if settings != {}:
        with pytest.raises(UserError, match=told):
            await Agent(ScriptedEngine("hi")).run("?", settings=settings)


@pytest.mark.parametrize(("name", "value"), [("messages", 5), ("messages", "hi"), ("clock", 5)])
async def test_options_of_the_wrong_kind_are_refused(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(UserError, match=f"{name}= takes"):
        await Agent(ScriptedEngine("hi")).run("?", **options)


@pytest.mark.parametrize("concurrency", [0, -1, "x", 2.5, True])
async def test_a_batch_takes_a_number(concurrency: Any) -> None:
    with pytest.raises(UserError, match="concurrency"):
        await Agent(ScriptedEngine("hi")).run_batch(["?"], concurrency=concurrency)


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "x"])
def test_a_step_takes_a_time_out_that_can_be_kept(timeout: Any) -> None:
    for step in (lambda: TransformStep(str, timeout=timeout), lambda: AgentStep(agent, timeout=timeout)):
        with pytest.raises(UserError, match="takes seconds, more than 0"):
            step()


agent = Agent(ScriptedEngine("hi"))
nothing: Any = None


@pytest.mark.parametrize(
    "call",
    [
        lambda: RunSnapshot.from_json(nothing),
        lambda: estimate_run_cost(nothing, nothing),
        lambda: stateful(nothing),
        lambda: Template("{{.A}}").format(nothing),
        lambda: Template("{{.A}}").partial(nothing),
    ],
    ids=["from_json", "estimate_run_cost", "stateful", "format", "partial"],
)
def test_what_is_none_of_it_is_an_error_of_the_taxonomy(call: Any) -> None:
    with pytest.raises(FlyballError):
        call()


async def test_a_turn_is_a_number() -> None:
    journal, word = MemoryJournal(), cast("Any", "one")
    await Agent(ScriptedEngine("hi")).run("?", journal=journal, loop_id="a")
    with pytest.raises(UserError, match="turn= takes"):
        await agent.fork("a", journal, turn=word)
    with pytest.raises(UserError, match="turn= takes"):
        await snapshot_at(journal, "a", word)


async def test_an_output_is_gathered_for_seconds() -> None:
    async with Agent(ScriptedEngine("hi")).run_stream("?") as stream:
        with pytest.raises(UserError, match="debounce_by="):
            stream.stream_output(debounce_by=cast("Any", "x"))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"validators": [7]}, "validators= takes functions, not 7"),
        ({"deliveries": [7]}, "deliveries= takes functions, not 7"),
        ({"tool_filters": [7]}, "filter_tool_calls"),
        ({"instructions": ["Be brief.", 7]}, "instructions= takes text, a function, or several"),
        ({"instructions": 7}, "instructions= takes text, a function, or several"),
        ({"tool_choice": "required"}, "tool_choice= takes ToolChoice"),
        ({"output": ToolOutput(int, name="no name!")}, "ToolOutput"),
    ],
    ids=str,
)
def test_what_an_agent_cannot_be_made_of_is_told_as_it_is_made(options: dict[str, Any], told: str) -> None:
    with pytest.raises(UserError, match=told):
        Agent(ScriptedEngine("hi"), **options)


async def test_a_choice_of_tools_is_told_as_it_is_made() -> None:
    with pytest.raises(UserError, match="'auto', 'required', 'none' or 'function', not 'sometimes'"):
        ToolChoice("sometimes")  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="tool_choice= takes ToolChoice"):
        await Agent(ScriptedEngine("hi")).run("?", tool_choice=cast("Any", "none"))


@pytest.mark.parametrize("prompts", ["one", b"one", 7], ids=repr)
async def test_a_batch_is_of_several_prompts(prompts: Any) -> None:
    with pytest.raises(UserError, match="run_batch takes several prompts"):
        await Agent(ScriptedEngine("hi")).run_batch(prompts)


async def test_prompts_that_break_off_are_told_as_they_did() -> None:
    def broken() -> Iterator[str]:
        yield "one"
        raise OSError("the file is gone")

    with pytest.raises(OSError, match="the file is gone"):
        await Agent(ScriptedEngine("hi")).run_batch(broken())

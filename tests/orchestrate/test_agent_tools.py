"""Runs with tools: in which order calls run, what becomes of their results, and what the tools are told."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import defaultdict
from contextvars import ContextVar
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, Limits, ModelRetry, RunContext, Safety, ToolChoice, tool
from flyball.core.errors import (
    CancelledTimeout,
    IncompleteToolCall,
    ToolRetriesExceeded,
    ToolUnavailable,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from flyball.core.events import ToolReturned, TurnPrepared
from flyball.core.history import check_history
from flyball.core.messages import Image, Message, ResultKind, Role, Text, ToolCall, ToolResult
from flyball.core.tools import ToolDefinition
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.inference.request import Result
from flyball.orchestrate.machine import fold
from flyball.testing.clock import FakeClock
from flyball.testing.split import ROUGH, SplitDriver
from flyball.tool.toolset import Toolset
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.models import Saying, Script
from tests.orchestrate.scenarios import TEN, add, breaks, finish, picky, step
from tests.orchestrate.where import Where
from tests.patience import PATIENCE


def results_of(result: Any) -> list[ToolResult]:
    """All results in a run's history, in order."""
    return [found for message in result.messages for found in message.tool_results]


# Turns


async def test_a_tool_loop_of_ten_turns(run: Runner) -> None:
    script = Script(*TEN, "done")
    result = await run(Agent(script, tools=[add]), "count")
    assert result.output == "done"
    assert [found.content for found in results_of(result)] == [n + n for n in range(10)]
    assert (result.usage.requests, result.usage.tool_calls) == (11, 10)
    assert len(script.requests) == 11
    assert len(result.messages) == 22
    for number, request in enumerate(script.requests):
        assert request.messages == result.messages[: 1 + 2 * number]
    assert kinds_of(await result.events()) == [
        "Started",
        *["ModelAnswered", "ToolReturned"] * 10,
        "ModelAnswered",
        "Ended",
    ]


async def test_text_beside_calls_is_no_answer(run: Runner) -> None:
    asked = Message(Role.ASSISTANT, (Text("Let me see."), call("add", {"x": 1, "y": 2})))
    result = await run(Agent(Script(asked, "3"), tools=[add]), "1 + 2?")
    assert result.output == "3"
    assert result.messages[1].text == "Let me see."


@given(
    st.lists(
        st.lists(st.sampled_from(["add", "step", "breaks", "picky"]), min_size=1, max_size=4), max_size=4
    )
)
async def test_every_call_is_answered_once_and_in_order(turns: list[list[str]]) -> None:
    arguments = {"add": {"x": 1, "y": 2}, "step": {"n": 1}, "breaks": {}, "picky": {"x": -1}}
    answers: list[Answer] = [[call(name, arguments[name]) for name in names] for names in turns]
    agent = Agent(
        Script(*answers, "done"),
        tools=[add, step, breaks, picky],
        retries=100,
        limits=Limits(repeated_calls=None),
    )
    plain = await agent.run("go")
    split = await agent.run("go", runtime=SplitDriver(1, ROUGH))
    check_history(plain.messages)
    assert plain.messages == split.messages
    assert [
        [found.name for found in message.tool_results] for message in plain.messages if message.tool_results
    ] == turns


# Side by side


async def test_results_stand_in_the_order_of_the_calls_whatever_order_they_come_in(orderly: Where) -> None:
    ready = [asyncio.Event() for _ in range(5)]
    ready[4].set()
    finished: list[int] = []

    @tool
    async def wait_for_the_next(n: int) -> int:
        await ready[n].wait()
        finished.append(n)
        if n:
            ready[n - 1].set()
        return n

    calls = [call("wait_for_the_next", {"n": n}) for n in range(5)]
    result = await Agent(Script(calls, "done"), tools=[wait_for_the_next]).run("go", **orderly.options({}))
    assert finished == [4, 3, 2, 1, 0]
    assert [found.content for found in results_of(result)] == [0, 1, 2, 3, 4]
    returned = [event.index for event in await result.events() if isinstance(event, ToolReturned)]
    assert returned == [4, 3, 2, 1, 0], "the journal says when they came"


async def test_sequential_calls_run_alone_and_after_the_others(orderly: Where) -> None:
    running: set[str] = set()
    log: list[str] = []

    async def work(name: str, *, alone: bool) -> None:
        assert not (alone and running)
        assert not any(other.startswith("one") for other in running)
        running.add(name)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running.remove(name)
        log.append(name)

    @tool(sequential=True)
    async def one(n: int) -> None:
        await work(f"one {n}", alone=True)

    @tool
    async def many(n: int) -> None:
        await work(f"many {n}", alone=False)

    calls = [call("one", {"n": 0}), call("many", {"n": 1}), call("one", {"n": 2}), call("many", {"n": 3})]
    result = await Agent(Script(calls, "done"), tools=[one, many]).run("go", **orderly.options({}))
    assert log == ["many 1", "many 3", "one 0", "one 2"]
    assert [found.name for found in results_of(result)] == ["one", "many", "one", "many"]


@pytest.mark.parametrize("room", [1, 2, 7, 64])
async def test_no_more_calls_run_at_once_than_allowed(orderly: Where, room: int) -> None:
    running = most = 0

    @tool
    async def work(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(n % 3 + 1):
            await asyncio.sleep(0)
        running -= 1
        return n

    calls = [call("work", {"n": n}) for n in range(20)]
    agent = Agent(Script(calls, "done"), tools=[work], limits=Limits(max_concurrency=room))
    result = await agent.run("go", **orderly.options({}))
    assert most <= room if orderly.split else most == min(room, 20)  # there they begin one by one
    assert [found.content for found in results_of(result)] == list(range(20))


async def test_sync_tools_run_in_threads_with_the_callers_context(orderly: Where) -> None:
    who: ContextVar[str] = ContextVar("who")
    who.set("me")
    both_here = threading.Barrier(2, timeout=PATIENCE)

    @tool
    def meet(n: int) -> str:
        both_here.wait()
        assert threading.current_thread() is not threading.main_thread()
        return f"{who.get()} {n}"

    calls = [call("meet", {"n": 1}), call("meet", {"n": 2})]
    result = await Agent(Script(calls, "done"), tools=[meet]).run("go", **orderly.options({}))
    assert [found.content for found in results_of(result)] == ["me 1", "me 2"]


async def test_sync_tools_under_every_driver(run: Runner) -> None:
    def double(x: int) -> int:
        return 2 * x

    result = await run(Agent(Script(call("double", {"x": 4}), "8"), tools=[double]), "go")
    assert results_of(result)[0].content == 8


# Failing tools


async def test_the_model_reads_what_a_tool_raised(run: Runner) -> None:
    script = Script(call("breaks", id="a"), "I see")
    result = await run(Agent(script, tools=[breaks]), "go")
    assert result.output == "I see"
    assert script.last.messages[-1].tool_results == (
        ToolResult("a", "breaks", error="RuntimeError: it broke", metadata={"code": "TOOL_EXECUTION_FAILED"}),
    )
    assert result.usage.tool_calls == 1


async def test_a_tool_may_raise_what_it_likes(run: Runner) -> None:
    class OddError(Exception):
        def __str__(self) -> str:
            raise ValueError("not even this")

    @tool
    async def odd(n: int) -> None:
        raise [
            OddError(),
            asyncio.CancelledError("not really"),
            StopAsyncIteration(),
            TimeoutError(),
            ToolUnavailable("no"),
        ][n]

    result = await run(Agent(Script([call("odd", {"n": n}) for n in range(5)], "ok"), tools=[odd]), "go")
    assert [found.is_error for found in results_of(result)] == [True] * 5
    assert results_of(result)[4].metadata == {"code": "TOOL_UNAVAILABLE"}


async def test_a_tool_that_takes_too_long_is_cancelled_and_told_so(run: Runner) -> None:
    cancelled: list[bool] = []

    @tool(timeout=0.001)
    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(True)

    result = await run(Agent(Script(call("forever"), "too slow"), tools=[forever]), "go")
    found = results_of(result)[0]
    assert found.metadata == {"code": "TOOL_TIMEOUT"}
    assert "0.001 seconds" in found.text
    assert cancelled


@pytest.mark.parametrize("calls", [1, 3], ids=["alone", "side by side"])
async def test_a_hanging_tool_ends_with_the_runs_time(orderly: Where, calls: int) -> None:
    entered = [asyncio.Event() for _ in range(calls)]
    cancelled: list[int] = []

    @tool
    async def forever(n: int) -> None:
        entered[n].set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append(n)

    clock = FakeClock()
    agent = Agent(Script([call("forever", {"n": n}) for n in range(calls)]), tools=[forever])
    task = asyncio.ensure_future(agent.run("go", timeout=30, clock=clock, **orderly.options({})))
    for event in entered:
        await event.wait()
    await clock.advance(29.9)
    assert not task.done()
    await clock.advance(0.1)
    with pytest.raises(CancelledTimeout, match="30 s") as caught:
        await task
    assert cancelled == list(range(calls))
    check_history(caught.value.partial.messages)
    assert {found.status for found in results_of(caught.value.partial)} == {ResultKind.SKIPPED}


class Unreadable:
    def __len__(self) -> int:
        raise RuntimeError("no length")


RETURNED: dict[str, tuple[Any, Any]] = {
    "nothing": (None, None),
    "a set": ({3, 1, 2}, [1, 2, 3]),
    "no number": ({"n": math.nan, "i": -math.inf}, {"n": "nan", "i": "-inf"}),
    "half a character": ("half \ud800", "half �"),
    "bytes": (b"\xff\x00", "/wA="),
    "keys that are no text": ({1: {(2, 3): None}}, {"1": {"[2,3]": None}}),
    "a huge number": (10**30, 10**30),
    "an image": (Image("https://example.org/a.png"), "1 image"),
}


@pytest.mark.parametrize(("returned", "content"), RETURNED.values(), ids=RETURNED)
async def test_what_a_tool_returns_becomes_json(run: Runner, returned: Any, content: Any) -> None:
    @tool
    async def give() -> Any:
        return returned

    script = Script(call("give"), "ok")
    result = await run(Agent(script, tools=[give]), "go")
    assert results_of(result)[0].content == content
    assert script.last.messages == result.messages[:-1]


@pytest.mark.parametrize(
    "returned", [object(), Unreadable(), [1, {"a": object}], "x" * 50_000_000, ["x" * 1_000] * 4_200]
)
async def test_what_cannot_be_recorded_becomes_an_error_that_the_model_reads(
    where: Where, returned: Any
) -> None:
    @tool
    async def give() -> Any:
        return returned

    result = await Agent(Script(call("give"), "ok"), tools=[give]).run("go", **where.options({}))
    found = results_of(result)[0]
    assert found.metadata == {"code": "TOOL_EXECUTION_FAILED"}
    assert found.content is None
    assert len(found.text) < 5_000


# Asking the model again


async def test_a_tool_may_ask_for_another_call(run: Runner) -> None:
    script = Script(call("picky", {"x": -1}), call("picky", {"x": 1}), "1")
    result = await run(Agent(script, tools=[picky]), "go")
    first, second = results_of(result)
    assert (first.status, first.text) == (ResultKind.RETRY, "x must not be negative")
    assert (second.status, second.content) == (ResultKind.RETURN, 1)
    assert result.usage.tool_calls == 1, "a call that was not taken is not counted"


WRONG: dict[str, str] = {
    "no JSON": '{"x": 1',
    "no object": "[1, 2]",
    "a type": '{"x": "one", "y": 2}',
    "one missing": '{"x": 1}',
    "one too many": '{"x": 1, "y": 2, "z": 3}',
    "half a character": '{"x": 1, "y": "\ud800"}',
}


@pytest.mark.parametrize("arguments", WRONG.values(), ids=WRONG)
async def test_wrong_arguments_go_back_to_the_model(run: Runner, arguments: str) -> None:
    script = Script(ToolCall("a", "add", arguments), call("add", {"x": 1, "y": 2}), "3")
    result = await run(Agent(script, tools=[add]), "go")
    assert results_of(result)[0].status is ResultKind.RETRY
    assert results_of(result)[1].content == 3


def test_arguments_that_are_no_object_cannot_be_read() -> None:
    with pytest.raises(IncompleteToolCall):
        _ = ToolCall("a", "add", "[1]").arguments


@pytest.mark.parametrize(("retries", "own"), [(0, None), (1, None), (2, None), (5, 0), (0, 2)])
async def test_a_tool_that_is_called_wrongly_too_often_fails_the_run(
    run: Runner, retries: int, own: int | None
) -> None:
    allowed = retries if own is None else own

    @tool(retries=own)
    async def never(x: int) -> None:
        raise ModelRetry(f"not {x}")

    script = Script(*[call("never", {"x": n}) for n in range(9)])
    error = await run.failing(ToolRetriesExceeded, Agent(script, tools=[never], retries=retries), "go")
    assert error.details == {"tool": "never", "allowed": allowed}
    assert f"not {allowed}" in str(error)
    assert len(script.requests) == allowed + 1
    assert len(results_of(error.partial)) == allowed + 1


async def test_a_good_call_makes_the_count_begin_anew(run: Runner) -> None:
    bad, good = call("picky", {"x": -1}), call("picky", {"x": 1})
    result = await run(Agent(Script(bad, good, bad, good, bad, good, "ok"), tools=[picky], retries=1), "go")
    assert result.output == "ok"


async def test_tools_are_counted_apart(run: Runner) -> None:
    @tool
    async def other(x: int) -> None:
        raise ModelRetry("no")

    wrong = [call("picky", {"x": -1}), call("other", {"x": 1})]
    agent = Agent(
        Script(wrong, call("picky", {"x": 1}), call("other", {"x": 1})), tools=[picky, other], retries=1
    )
    error = await run.failing(ToolRetriesExceeded, agent, "go")
    assert error.details["tool"] == "other"


async def test_a_tool_learns_how_often_it_was_tried(run: Runner) -> None:
    seen: dict[str, tuple[int, int]] = {}

    @tool(retries=2)
    async def third_time(ctx: RunContext[Any], n: int) -> str:
        seen[ctx.tool_call_id] = (ctx.retry, ctx.max_retries)
        if ctx.retry < 2:
            raise ModelRetry("again")
        return "at last"

    answers = [call("third_time", {"n": n}, id=f"c{n}") for n in range(3)]
    agent = Agent(Script(*answers, "ok"), tools=[third_time])
    result = await run(agent, "go")
    assert seen == {"c0": (0, 2), "c1": (1, 2), "c2": (2, 2)}
    assert results_of(result)[2].content == "at last"


async def test_an_unknown_tool_is_answered_with_the_tools_there_are(run: Runner) -> None:
    script = Script(call("subtract", {"x": 1}), call("add", {"x": 1, "y": 2}), "3")
    result = await run(Agent(script, tools=[add, picky]), "go")
    found = results_of(result)[0]
    assert found.status is ResultKind.RETRY
    assert found.text == "There is no tool 'subtract'. The tools are: add, picky."
    assert (found.metadata or {})["code"] == "TOOL_NOT_FOUND"
    assert result.usage.tool_calls == 1


async def test_the_other_calls_of_the_turn_still_run(run: Runner) -> None:
    result = await run(Agent(Script([call("nope"), call("add", {"x": 1, "y": 2})], "3"), tools=[add]), "go")
    assert [found.content for found in results_of(result)][1] == 3


async def test_without_any_tool_the_model_reads_that_there_are_none(run: Runner) -> None:
    result = await run(Agent(Script(call("nope"), "ok")), "go")
    assert "There are no tools." in results_of(result)[0].text


async def test_unknown_tools_again_and_again_fail_the_run(run: Runner) -> None:
    script = Script(call("one"), call("two"), call("three"))
    error = await run.failing(UnexpectedModelBehavior, Agent(script, tools=[add], retries=1), "go")
    assert "There is no tool 'two'" in str(error)
    assert len(script.requests) == 2


@pytest.mark.parametrize("identifier", ["a", ""])
async def test_calls_with_the_same_id_are_told_apart(run: Runner, identifier: str) -> None:
    first = ToolCall(identifier, "add", '{"x":1,"y":1}')
    second = ToolCall(identifier, "add", '{"x":2,"y":2}')

    def doubled(_: Any) -> Result:
        return Result(Message(Role.ASSISTANT, (first, second)))

    result = await run(Agent(Saying(doubled, "done"), tools=[add]), "go")
    assert len({found.call_id for found in results_of(result)}) == 2
    assert [found.content for found in results_of(result)] == [2, 4]


# Many calls


def many(count: int) -> list[ToolCall]:
    return [ToolCall(f"c{n}", "add", f'{{"x":{n},"y":1}}') for n in range(count)]


@pytest.mark.parametrize("count", [257, 10_000])
async def test_more_calls_in_a_turn_than_allowed_are_refused_before_any_runs(run: Runner, count: int) -> None:
    if run.split and count > 1000:
        pytest.skip("what is split apart decodes all of it again and again")
    error = await run.failing(UsageLimitExceeded, Agent(Script(many(count)), tools=[add]), "go")
    assert error.details == {"limit": "calls_per_turn", "allowed": 256, "used": count}
    assert "calls_per_turn" in str(error)
    assert len(results_of(error.partial)) == count
    assert error.partial.usage.tool_calls == 0


@pytest.mark.slow
@pytest.mark.parametrize("sequential", [False, True])
async def test_ten_thousand_calls_in_one_turn_take_seconds_not_minutes(*, sequential: bool) -> None:
    @tool(sequential=sequential)
    async def add_one(x: int, y: int) -> int:
        return x + y

    calls = [ToolCall(f"c{n}", "add_one", f'{{"x":{n},"y":1}}') for n in range(10_000)]
    agent = Agent(Script(calls, "done"), tools=[add_one], limits=Limits(calls_per_turn=None))
    began = time.process_time()
    result = await agent.run("go")
    assert time.process_time() - began < 10
    assert [found.content for found in results_of(result)] == list(range(1, 10_001))
    assert fold(await result.events()) == result.state


@pytest.mark.slow
async def test_ten_thousand_calls_without_ids_are_told_apart_in_no_time() -> None:
    calls = [ToolCall("", "add", "{}")] * 10_000

    def nameless(_: Any) -> Result:
        return Result(Message(Role.ASSISTANT, tuple(calls)))

    began = time.process_time()
    with pytest.raises(UsageLimitExceeded):
        await Agent(Saying(nameless), tools=[add]).run("go")
    assert time.process_time() - began < 5


# Ending the loop


async def test_a_tool_may_end_the_run_with_its_result(run: Runner) -> None:
    script = Script([call("finish", {"text": "over"}), call("add", {"x": 1, "y": 2})])
    result = await run(Agent(script, tools=[finish, add]), "go")
    assert result.output == "over"
    assert [found.content for found in results_of(result)] == ["over", 3], (
        "the other calls of the turn still run"
    )
    assert len(script.requests) == 1


async def test_of_two_tools_that_end_the_run_the_first_call_counts(run: Runner) -> None:
    calls = [call("finish", {"text": "first"}), call("finish", {"text": "second"})]
    assert (await run(Agent(Script(calls), tools=[finish]), "go")).output == "first"


@pytest.mark.parametrize(
    ("kind", "content", "output"),
    [
        (int, 7, 7),
        (list[int], [1, 2], [1, 2]),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (str, {"a": 1}, '{"a":1}'),
    ],
)
async def test_what_ends_the_run_is_read_as_the_output_type(
    run: Runner, kind: Any, content: Any, output: Any
) -> None:
    @tool
    async def stop() -> ToolResult:
        return ToolResult("", "", content, stop_loop=True)

    agent = Agent(Script(call("stop")), tools=[stop], output=kind)
    assert (await run(agent, "go")).output == output


async def test_what_ends_the_run_and_is_no_output_goes_back_to_the_model(run: Runner) -> None:
    @tool
    async def stop() -> ToolResult:
        return ToolResult("", "", "not a number", stop_loop=True)

    script = Script(call("stop"), call("final_result", {"result": 7}))
    result = await run(Agent(script, tools=[stop], output=int, output_mode="tool"), "go")
    assert result.output == 7
    assert script.last.messages[-1].role is Role.USER


async def test_validators_look_at_what_ends_the_run(run: Runner) -> None:
    def loud(_: RunContext[Any], output: str) -> str:
        return output.upper()

    agent = Agent(Script(call("finish", {"text": "over"})), tools=[finish], validators=[loud])
    assert (await run(agent, "go")).output == "OVER"


@pytest.mark.parametrize("status", [ResultKind.RETRY, ResultKind.DENIED])
async def test_only_a_real_result_ends_the_run(run: Runner, status: ResultKind) -> None:
    @tool
    async def stop() -> ToolResult:
        return ToolResult("", "", "no", status=status, stop_loop=True)

    assert (await run(Agent(Script(call("stop"), "went on"), tools=[stop]), "go")).output == "went on"


# What tools are told


async def test_a_tool_is_told_about_its_run(run: Runner) -> None:
    seen: dict[str, RunContext[Any]] = {}

    @tool
    async def look(ctx: RunContext[Any]) -> str:
        seen[ctx.tool_call_id] = ctx
        return "ok"

    agent = Agent(
        Script([call("look", id="a"), call("look", id="b")], call("look", id="c"), "done"), tools=[look]
    )
    result = await run(
        agent, "What is it?", deps={"a": 1}, metadata={"who": "me"}, loop_id=f"loop-{run.kind}"
    )
    first, last = seen["a"], seen["c"]
    assert first.deps == {"a": 1}
    assert first.metadata == {"who": "me"}
    assert first.prompt == "What is it?"
    assert (first.run_id, first.tool_name) == (result.loop_id, "look")
    assert (first.run_step, last.run_step) == (1, 2)
    assert (first.usage.requests, last.usage.requests, last.usage.tool_calls) == (1, 2, 2)
    assert first.facts.started_at == result.state.started_at
    keys = [seen[call_id].idempotency_key for call_id in ("a", "b", "c")]
    assert keys == [
        f"{result.loop_id}/1/1/execute/0",
        f"{result.loop_id}/1/1/execute/1",
        f"{result.loop_id}/1/2/execute/0",
    ]


async def test_a_call_that_is_run_again_has_the_same_idempotency_key() -> None:
    keys: dict[str, set[str]] = defaultdict(set)
    runs = 0

    @tool
    async def note(ctx: RunContext[Any], n: int) -> int:
        nonlocal runs
        runs += 1
        keys[ctx.tool_call_id].add(ctx.idempotency_key)
        return n

    answers = [[call("note", {"n": n}, id=f"{turn}{n}") for n in range(3)] for turn in range(4)]
    for seed in range(10):
        keys.clear()
        await Agent(Script(*answers, "ok"), tools=[note]).run("go", runtime=SplitDriver(seed, ROUGH))
        assert all(len(of_call) == 1 for of_call in keys.values())
        assert len({key for of_call in keys.values() for key in of_call}) == 12
    assert runs > 120, "calls were run again, or this shows nothing"


async def test_only_tools_that_ask_for_it_see_the_history(run: Runner) -> None:
    @tool
    async def curious(ctx: RunContext[Any]) -> int:
        return len(ctx.messages)

    @tool(history=True)
    async def allowed(ctx: RunContext[Any]) -> list[str]:
        return [message.role for message in ctx.messages]

    agent = Agent(
        Script([call("curious"), call("allowed")], "ok"), tools=[curious, allowed], instructions="Be brief."
    )
    refused, seen = results_of(await run(agent, "go"))
    assert "history=True" in refused.text
    assert seen.content == ["system", "user", "assistant"]


# Which tools, and how freely


async def test_the_model_is_told_about_the_tools(run: Runner) -> None:
    script = Script("ok")
    await run(Agent(script, tools=[add, step]), "go")
    assert [definition.name for definition in script.last.tools] == ["add", "step"]
    assert script.last.tools[0].description == "Add two numbers."
    assert script.last.tools[1].sequential


@pytest.mark.parametrize(
    ("choice", "then"),
    [
        (ToolChoice("required"), ToolChoice("required")),
        (ToolChoice("required", auto_reset=True), None),
        (ToolChoice("function", "add", auto_reset=True), None),
        (ToolChoice("none"), ToolChoice("none")),
        (None, None),
    ],
)
async def test_the_tool_choice_reaches_the_model(
    run: Runner, choice: ToolChoice | None, then: ToolChoice | None
) -> None:
    script = Script(call("add", {"x": 1, "y": 2}), "3")
    await run(Agent(script, tools=[add], tool_choice=choice), "go")
    assert [request.tool_choice for request in script.requests] == [choice, then]


async def test_a_run_may_choose_otherwise(run: Runner) -> None:
    script = Script("ok")
    await run(
        Agent(script, tools=[add], tool_choice=ToolChoice("required")), "go", tool_choice=ToolChoice("none")
    )
    assert script.last.tool_choice == ToolChoice("none")


async def test_a_run_may_use_only_some_tools(run: Runner) -> None:
    script = Script(call("step", {"n": 1}), "ok")
    result = await run(Agent(script, tools=[add, step, breaks]), "go", tools=["breaks", "add"])
    assert {definition.name for definition in script.last.tools} == {"add", "breaks"}
    assert "There is no tool 'step'" in results_of(result)[0].text


async def test_a_run_may_use_no_tools(run: Runner) -> None:
    script = Script("ok")
    await run(Agent(script, tools=[add]), "go", tools=[])
    assert script.last.tools == ()


async def test_a_tool_that_the_agent_has_not_cannot_be_chosen(run: Runner) -> None:
    with pytest.raises(UserError, match="no tool 'sub'; there are: add"):
        await run(Agent(Script("ok"), tools=[add]), "go", tools=["add", "sub"])


async def test_availability_is_asked_before_every_turn(run: Runner) -> None:
    @tool(available=lambda ctx: ctx.run_step == 2)
    async def second_only() -> str:
        return "ran"

    script = Script(call("second_only"), call("second_only"), "ok")
    result = await run(Agent(script, tools=[add, second_only]), "go")
    assert [[one.name for one in request.tools] for request in script.requests] == [
        ["add"],
        ["add", "second_only"],
        ["add"],
    ]
    assert [(found.text, (found.metadata or {}).get("code")) for found in results_of(result)] == [
        ("The tool 'second_only' is not available now. The tools are: add.", "TOOL_UNAVAILABLE"),
        ("ran", None),
    ]
    prepared = [event for event in await result.events() if isinstance(event, TurnPrepared)]
    assert [event.tools for event in prepared] == [("add",), ("add", "second_only"), ("add",)]


async def test_a_tool_whose_availability_check_fails_is_not_offered(run: Runner) -> None:
    @tool(available=lambda: bool(1 // 0))
    async def odd() -> str:
        return "never"

    script = Script("done")
    assert (await run(Agent(script, tools=[odd, add]), "go")).output == "done"
    assert [definition.name for definition in script.requests[0].tools] == ["add"]


def test_two_tools_with_one_name_are_refused() -> None:
    with pytest.raises(UserError, match="two tools are called 'add'"):
        _ = Agent(Script("ok"), tools=[add, Toolset("more", [add])]).spec


def test_a_tool_may_not_have_the_outputs_name() -> None:
    @tool(name="final_result")
    async def clash() -> None: ...

    with pytest.raises(UserError, match="final_result"):
        _ = Agent(Script("ok"), tools=[clash], output=int, output_mode="tool").spec


# Safety


@pytest.mark.parametrize("safety", Safety)
async def test_only_idempotent_tools_are_tried_again_by_themselves(orderly: Where, safety: Safety) -> None:
    tries = 0

    @tool(safety=safety)
    async def flaky() -> str:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise OSError("once")
        return "ok"

    result = await Agent(Script(call("flaky"), "done"), tools=[flaky]).run("go", **orderly.options({}))
    assert tries == (2 if safety is Safety.IDEMPOTENT else 1)
    assert results_of(result)[0].is_error == (safety is not Safety.IDEMPOTENT)


async def test_an_at_most_once_call_is_recorded_before_it_runs(orderly: Where) -> None:
    before: list[str] = []

    @tool(safety="at_most_once")
    async def launch(ctx: RunContext[Any]) -> str:
        before.extend(kinds_of(await orderly.journal.read(ctx.run_id)))
        return "launched"

    result = await Agent(Script(call("launch"), "done"), tools=[launch]).run("go", **orderly.options({}))
    assert before == ["Started", "ModelAnswered", "ToolStarted"]
    assert kinds_of(await result.events()) == [*before, "ToolReturned", "ModelAnswered", "Ended"]


async def test_what_led_to_a_call_is_recorded_before_it_runs(orderly: Where) -> None:
    before: list[list[str]] = []

    @tool
    async def note(ctx: RunContext[Any], n: int) -> int:
        before.append(kinds_of(await orderly.journal.read(ctx.run_id)))
        return n

    script = Script(call("note", {"n": 1}), [call("note", {"n": 2}), call("note", {"n": 3})], "done")
    await Agent(script, tools=[note]).run("go", **orderly.options({}))
    assert before[0] == ["Started", "ModelAnswered"]
    assert before[1][:4] == ["Started", "ModelAnswered", "ToolReturned", "ModelAnswered"]


def test_the_definition_that_is_sent_is_the_tools_own() -> None:
    definition = Agent(Script("ok"), tools=[add]).spec.tools["add"].definition
    assert definition == ToolDefinition("add", add.definition.parameters, "Add two numbers.")

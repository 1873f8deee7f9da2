"""Many runs at once, and runs from code that is not async."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from flyball import Agent
from flyball.core.errors import EngineError, FlyballError, OrchestrationFailure, UserError
from flyball.core.events import Event, Started
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.result import RunResult
from tests.orchestrate.models import Script
from tests.orchestrate.where import Where


def echo(wait: dict[str, asyncio.Event] | None = None) -> Agent[Any, str]:
    """An agent that says what it was told, or fails where it is told to."""

    async def answer(request: Request) -> str:
        text = request.messages[-1].text
        if wait is not None:
            await wait[text].wait()
        if text.startswith("fail"):
            raise EngineError(text)
        return text

    return Agent(FunctionEngine(answer))


async def test_results_come_in_the_order_of_the_prompts(where: Where) -> None:
    words = [f"word {n}" for n in range(20)]
    results = await echo().run_batch(words, concurrency=3, **where.options({}))
    assert [result.output for result in results if isinstance(result, RunResult)] == words
    assert len({result.loop_id for result in results if isinstance(result, RunResult)}) == 20


async def test_the_order_does_not_depend_on_who_is_first() -> None:
    wait = {word: asyncio.Event() for word in ("a", "b", "c")}
    task = asyncio.create_task(echo(wait).run_batch(list(wait)))
    for word in ("c", "a", "b"):
        wait[word].set()
        await asyncio.sleep(0)
    assert [getattr(result, "output", None) for result in await task] == ["a", "b", "c"]


async def test_a_failed_run_is_its_error_and_the_others_go_on() -> None:
    results = await echo().run_batch(["a", "fail b", "c", ""])
    first, second, third, fourth = results
    assert isinstance(first, RunResult)
    assert isinstance(third, RunResult)
    assert isinstance(second, EngineError)
    assert second.partial.messages[0].text == "fail b"
    assert isinstance(fourth, UserError)


@pytest.mark.parametrize("concurrency", [1, 2, 5])
async def test_no_more_run_at_once_than_allowed(concurrency: int) -> None:
    running = most = 0

    async def answer(_: Request) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _turn in range(3):
            await asyncio.sleep(0)
        running -= 1
        return "ok"

    await Agent(FunctionEngine(answer)).run_batch([str(n) for n in range(10)], concurrency=concurrency)
    assert most == concurrency


class FullDisk(MemoryJournal):
    """A journal of somebody's own, which knows no errors of ours."""

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        started = events[0]
        if isinstance(started, Started) and started.prompt is not None and started.prompt.text == "b":
            raise OSError("no space left")
        return await super().append(loop_id, events, expected)


async def test_what_is_no_error_of_ours_stays_in_its_place_too() -> None:
    first, second, third = await echo().run_batch(["a", "b", "c"], journal=FullDisk())
    assert isinstance(first, RunResult)
    assert isinstance(third, RunResult)
    assert type(second) is OrchestrationFailure
    assert str(second) == "the run broke off: OSError: no space left"
    assert isinstance(second.__cause__, OSError)


async def test_no_prompts_no_results() -> None:
    assert await echo().run_batch([]) == []


async def test_prompts_may_come_from_a_generator() -> None:
    results = await echo().run_batch(word for word in ("a", "b"))
    assert len(results) == 2


async def test_a_batch_has_no_loop_id_and_at_least_one_place() -> None:
    with pytest.raises(UserError, match="loop_id"):
        await echo().run_batch(["a"], loop_id="one")
    with pytest.raises(UserError, match="concurrency"):
        await echo().run_batch(["a"], concurrency=0)


async def test_cancelling_a_batch_cancels_its_runs() -> None:
    wait = {"a": asyncio.Event(), "b": asyncio.Event()}
    journal = MemoryJournal()
    task = asyncio.create_task(echo(wait).run_batch(list(wait), journal=journal))
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(await journal.loops()) == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    for loop_id in await journal.loops():
        assert len(await journal.read(loop_id)) == 1, "each can be resumed"


async def test_options_hold_for_all() -> None:
    results = await echo().run_batch(["a", "b"], metadata={"who": "me"}, model=Script("other"))
    assert [result.output for result in results if not isinstance(result, FlyballError)] == ["other", "other"]


def test_run_sync_runs_where_no_loop_runs() -> None:
    agent = echo()
    assert agent.run_sync("a").output == "a"
    assert agent.run_sync("b", metadata={"x": 1}).output == "b", "and again"
    with pytest.raises(EngineError):
        agent.run_sync("fail")


async def test_run_sync_inside_a_running_loop_says_what_to_do() -> None:
    with pytest.raises(UserError, match=r"await agent\.run"):
        echo().run_sync("a")

"""Wrappers around an engine over real sockets: what servers do wrong on the way is made good, and told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from flyball import Agent, RetryPolicy, cached, fallback, limited, retrying
from flyball.core.errors import ModelHTTPError
from flyball.core.messages import user
from flyball.engines.openai import OpenAIEngine
from flyball.inference.request import Request
from flyball.inference.stream import Finish, Restart, TextDelta
from tests.engines.loopback import Answer, Loopback, Received, as_json, sse
from tests.engines.openai.test_engine import CHUNK, chat, local

HELLO = Request((user("Hello"),))
BUSY = as_json({"error": {"message": "Slow down"}}, 429, retry_after="0")
DOWN = as_json({"error": {"message": "Bad gateway"}}, 502)
UNPAID = as_json({"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}}, 429)
HALF = sse({**CHUNK, "choices": [{"index": 0, "delta": {"content": "Hel"}}]}, ended=False)


def after(*answers: Answer) -> Callable[[Received], Answer]:
    """These answers first, and then proper ones."""
    first = list(answers)
    return lambda got: first.pop(0) if first else chat(got)


async def test_a_call_gets_through_a_bad_moment() -> None:
    async with Loopback(after(BUSY, DOWN)) as server:
        engine = local(server)
        result = await Agent(retrying(engine, RetryPolicy(3))).run("Hello")
        await engine.aclose()
    assert result.output == "You said: Hello"
    attempts = (result.messages[-1].extra or {})["attempts"]
    assert ["429" in attempts[0]["message"], "502" in attempts[1]["message"]] == [True, True]


async def test_a_stream_that_breaks_begins_again() -> None:
    broken = Answer(HALF.body, HALF.status, HALF.headers, end="reset")
    async with Loopback(after(BUSY, broken)) as server:
        engine = retrying(local(server), RetryPolicy(3))
        events = [event async for event in engine.stream(HELLO)]
        await engine.aclose()
    texts = [event.text if isinstance(event, TextDelta) else "|" for event in events if _is_told(event)]
    assert "".join(texts) == "Hel|You said: Hello"
    assert isinstance(events[-1], Finish)
    assert len((events[-1].extra or {})["attempts"]) == 2


def _is_told(event: object) -> bool:
    return isinstance(event, TextDelta | Restart)


async def test_a_bill_that_is_not_paid_is_not_asked_again_but_another_server_is() -> None:
    async with Loopback(after(UNPAID, UNPAID)) as poor, Loopback(chat) as rich:
        first, second = local(poor), local(rich)
        with pytest.raises(ModelHTTPError, match="quota"):
            await retrying(first, RetryPolicy(3)).infer(HELLO)
        assert len(poor.received) == 1
        engine = fallback(retrying(first, RetryPolicy(3)), second)
        assert (await engine.infer(HELLO)).content == "You said: Hello"
        assert (len(poor.received), len(rich.received)) == (2, 1)
        await engine.aclose()


async def test_what_was_answered_is_not_asked_of_the_server_again(tmp_path: Path) -> None:
    async with Loopback(chat) as server:
        engine: OpenAIEngine = local(server)
        model = cached(limited(engine, tokens_per_minute=10_000), tmp_path / "answers.db")
        runs = [await Agent(model).run("Hello") for _ in range(3)]
        assert len(server.received) == 1
        await model.aclose()
    assert {run.output for run in runs} == {"You said: Hello"}
    assert [run.usage.total_tokens > 0 for run in runs] == [True, False, False]

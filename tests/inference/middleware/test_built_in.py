"""The middlewares that come with flyball: logging, timing, the cap on tokens."""

from __future__ import annotations

import logging
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball.core.errors import EngineError, MiddlewareFailed, UserError
from flyball.core.messages import user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolDefinition
from flyball.core.usage import Usage
from flyball.inference.answers import text_answer, tool_call
from flyball.inference.middleware.logs import Logging
from flyball.inference.middleware.max_tokens import MaxTokens
from flyball.inference.middleware.timing import Timing
from flyball.inference.request import Request
from flyball.inference.scripted import ScriptedEngine
from flyball.testing import FakeClock
from tests.inference.middleware.sides import REQUEST, WAYS, ask, through
from tests.strategies import maybe, settings

way_of_asking = pytest.mark.parametrize("way", WAYS)
NAME = REQUEST.id


class Ticking:
    """A second passes each time one looks."""

    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        self.time += 1
        return self.time


# Logging


class Keeping(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


def kept(name: str, level: int) -> list[logging.LogRecord]:
    """What a logger of this name is given from now on; those before it hear nothing more."""
    keeping = Keeping()
    logger = logging.getLogger(name)
    logger.handlers, logger.propagate = [keeping], False
    logger.setLevel(level)
    return keeping.records


@way_of_asking
async def test_a_line_for_each_request_and_each_answer(way: str) -> None:
    records = kept("flyball.model", logging.INFO)
    engine = ScriptedEngine(text_answer("a secret", Usage(12, 5)), [tool_call("look"), tool_call("look")])
    middleware = through(engine, Logging(now=Ticking()))
    await ask(middleware, way)
    await ask(middleware, way, replace(REQUEST, tools=(ToolDefinition("look", {}),)))
    assert [(record.levelname, record.getMessage()) for record in records] == [
        ("INFO", f"model request {NAME}: 1 message, 0 tools"),
        ("INFO", f"model answer {NAME}: stop, 12 tokens in, 5 out, 1.000 s"),
        ("INFO", f"model request {NAME}: 1 message, 1 tool"),
        ("INFO", f"model answer {NAME}: tool_call, 0 tokens in, 0 out, 2 tool calls, 1.000 s"),
    ]


@way_of_asking
async def test_what_was_said_is_logged_only_if_asked_for(way: str) -> None:
    secret = Request((user("my secret\nis"),), id="r")
    for content in (False, True):
        lines: list[str] = []
        engine = ScriptedEngine(
            "your secret", EngineError("secret is not allowed"), tool_call("look", {"a": 1})
        )
        middleware = through(engine, Logging(lines.append, content=content, now=Ticking()))
        await ask(middleware, way, secret)
        with pytest.raises(EngineError):
            await ask(middleware, way, secret)
        await ask(middleware, way, secret)
        assert any("secret" in line for line in lines) is content
        if content:
            assert lines[:2] == [
                "model request r: 1 message, 0 tools; user: 'my secret\\nis'",
                "model answer r: stop, 0 tokens in, 0 out, 1.000 s; assistant: 'your secret'",
            ]
            assert lines[3].endswith("failed after 1.000 s: INFERENCE_ENGINE_ERROR: secret is not allowed")
            assert lines[5].endswith('; assistant: look({"a":1})')


@way_of_asking
async def test_a_failure_is_a_warning_with_its_code(way: str) -> None:
    records = kept("mine", logging.DEBUG)
    engine = ScriptedEngine(EngineError("busy"), OSError("gone"))
    middleware = through(engine, Logging("mine", level=logging.DEBUG, now=Ticking()))
    for kind in (EngineError, OSError):
        with pytest.raises(kind):
            await ask(middleware, way)
    assert [(record.name, record.levelname) for record in records] == [
        ("mine", level) for level in ("DEBUG", "WARNING", "DEBUG", "WARNING")
    ]
    assert [record.getMessage() for record in records[1::2]] == [
        f"model call {NAME} failed after 1.000 s: INFERENCE_ENGINE_ERROR",
        f"model call {NAME} failed after 1.000 s: OSError",
    ]


async def test_a_level_may_be_named_and_must_be_one() -> None:
    records = kept("named", logging.DEBUG)
    await ask(through(ScriptedEngine("hi"), Logging("named", level="WARNING", now=Ticking())), WAYS[0])
    assert {record.levelname for record in records} == {"WARNING"}
    for level in ("LOUD", None, 1.5):
        with pytest.raises(UserError, match="Logging takes a level"):
            Logging(level=cast("Any", level))


async def test_a_stream_that_is_closed_is_logged() -> None:
    lines: list[str] = []
    pieces = through(ScriptedEngine("some words", chunk=2), Logging(lines.append, now=Ticking())).stream(
        REQUEST
    )
    await anext(pieces)
    await pieces.aclose()
    assert lines[1:] == [f"model stream {NAME} closed after 1.000 s"]


def test_a_logger_is_a_logger() -> None:
    with pytest.raises(UserError, match="takes a logger, its name, or a function"):
        Logging(cast("Any", 7))


# Timing


@way_of_asking
@pytest.mark.parametrize("later", [False, True], ids=["sync", "async"])
async def test_each_call_is_timed_also_one_that_fails(way: str, *, later: bool) -> None:
    took: list[float] = []

    async def tell(seconds: float) -> None:
        took.append(seconds)

    middleware = through(
        ScriptedEngine("hi", OSError("gone")), Timing(tell if later else took.append, now=Ticking())
    )
    await ask(middleware, way)
    assert took == [1.0]
    with pytest.raises(OSError, match="gone"):
        await ask(middleware, way)
    assert took == [1.0, 1.0]


@pytest.mark.parametrize("whole", [False, True], ids=["closed", "read to its end"])
async def test_a_stream_is_timed_until_it_has_ended_or_was_closed(*, whole: bool) -> None:
    clock, took = FakeClock(), list[float]()
    middleware = through(ScriptedEngine("words", chunk=1), Timing(took.append, now=clock.now))
    pieces = middleware.stream(REQUEST)
    await anext(pieces)
    await clock.advance(5)
    if whole:
        async for _ in pieces:
            await clock.advance(1)
    assert took == ([11.0] if whole else [])
    await pieces.aclose()
    assert took == ([11.0] if whole else [5.0])


@way_of_asking
async def test_a_function_that_fails_is_the_timings_failure(way: str) -> None:
    def broken(_: float) -> None:
        raise ZeroDivisionError

    with pytest.raises(MiddlewareFailed, match="'timing' failed: ZeroDivisionError"):
        await ask(through(ScriptedEngine("hi"), Timing(broken)), way)


def test_timing_takes_a_function() -> None:
    with pytest.raises(UserError, match="takes a function of the seconds"):
        Timing(cast("Any", "x"))


# MaxTokens


@given(settings, st.integers(1, 5000), maybe(st.integers(1, 5000)))
async def test_never_more_and_never_raised(given: ModelSettings, cap: int, asked: int | None) -> None:
    engine = ScriptedEngine("hi", "hi")
    request = replace(REQUEST, settings=replace(given, max_tokens=asked))
    for way in WAYS:
        await ask(through(engine, MaxTokens(cap)), way, request)
    expected = cap if asked is None else min(cap, asked)
    assert [call.settings for call in engine.calls] == [replace(given, max_tokens=expected)] * 2


@pytest.mark.parametrize("tokens", [0, -1, 1.5, "9", True], ids=repr)
def test_a_cap_is_a_number(tokens: Any) -> None:
    with pytest.raises(UserError, match="MaxTokens takes a number of tokens"):
        MaxTokens(tokens)

"""fallback: the next model where one fails, and one error where all do."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from flyball import Agent, RetryPolicy
from flyball.core.errors import (
    AllModelsFailed,
    ConfigurationFailure,
    ContextExceeded,
    EngineError,
    MissingKey,
    ModelHTTPError,
    UnknownModel,
    UserError,
)
from flyball.core.messages import assistant
from flyball.core.spec import OutputMode
from flyball.inference.engine import Engine
from flyball.inference.fallback import fallback
from flyball.inference.profile import Profile, profile_for
from flyball.inference.rendered import Renders
from flyball.inference.retrying import retrying
from flyball.inference.stream import collect
from flyball.testing import FakeClock
from tests.inference.wrapped import (
    REQUEST,
    Model,
    Renderer,
    WrapperConformance,
    broken,
    down,
    logged,
    settled,
    told,
)


class TestFallback(WrapperConformance):
    """The first one answers."""

    def wrap(self, model: Model) -> Engine:
        return fallback(model, down())


class TestFallbackToTheSecond(WrapperConformance):
    """The first one never does."""

    def wrap(self, model: Model) -> Engine:
        return fallback(down(), model)


class TestFallbackAmongOthers(WrapperConformance):
    """In a stack of wrappers, and around one."""

    def wrap(self, model: Model) -> Engine:
        return retrying(fallback(retrying(down(), RetryPolicy(1)), retrying(model)), RetryPolicy(1))


async def test_the_answer_says_who_gave_it_and_who_had_failed() -> None:
    result = await fallback(down("a"), down("b"), Model("c"), Model("d")).infer(REQUEST)
    assert (result.content, result.message.model) == ("c heard hello", "c")
    assert (result.message.extra or {})["attempts"] == [
        {"model": "a", "code": "INFERENCE_ENGINE_ERROR", "message": "a is down"},
        {"model": "b", "code": "INFERENCE_ENGINE_ERROR", "message": "b is down"},
    ]


async def test_each_call_begins_with_the_first() -> None:
    first = Model("first", failures=broken(1))
    engine = fallback(first, Model("second"))
    assert [(await engine.infer(REQUEST)).message.model for _ in range(3)] == ["second", "first", "first"]


async def test_streamed_and_whole_say_the_same() -> None:
    whole = await fallback(down("a"), Model("b")).infer(REQUEST)
    assert await collect(fallback(down("a"), Model("b")).stream(REQUEST)) == whole


async def test_a_stream_that_broke_off_begins_again_with_the_next() -> None:
    first = Model("first", failures=broken(1), after=2)
    events = [event async for event in fallback(first, Model("next")).stream(REQUEST)]
    assert told(events) == ["firs", "t he", "restart", "next", " hea", "rd h", "ello"]
    events = [event async for event in fallback(down(), Model("next")).stream(REQUEST)]
    assert "restart" not in told(events)


@pytest.mark.parametrize("stream", [False, True])
async def test_where_all_fail_one_error_names_each(stream: bool) -> None:
    engine = fallback(retrying(down("a"), RetryPolicy(1)), down("b"))
    with pytest.raises(AllModelsFailed) as raised:
        await (collect(engine.stream(REQUEST)) if stream else engine.infer(REQUEST))
    error = raised.value
    assert error.message == "all 2 models failed: a: a is down; b: b is down"
    assert [one["model"] for one in error.details["attempts"]] == ["a", "a", "b"]
    assert isinstance(error.__cause__, EngineError)
    assert error.retryable
    again = error.record().exception()
    assert isinstance(again, AllModelsFailed)
    assert again.details == error.details


@pytest.mark.parametrize(
    ("failures", "retryable", "wait"),
    [
        ([ContextExceeded("long"), ContextExceeded("long")], False, None),
        ([ContextExceeded("long"), EngineError("busy")], True, None),
        ([EngineError("busy", retry_after=9), EngineError("busy", retry_after=4)], True, 4),
        ([EngineError("busy", retry_after=9), EngineError("busy")], True, None),
        (
            [ModelHTTPError("paid?", retryable=False, retry_after=1), EngineError("x", retry_after=4)],
            True,
            4,
        ),
        ([OSError("gone"), ContextExceeded("long")], True, None),
    ],
)
async def test_it_may_pass_where_one_of_them_may(
    failures: list[Exception], retryable: bool, wait: float | None
) -> None:
    one, other = failures
    with pytest.raises(AllModelsFailed) as raised:
        await fallback(Model(failures=[one]), Model(failures=[other])).infer(REQUEST)
    assert (raised.value.retryable, raised.value.details.get("retry_after")) == (retryable, wait)


async def test_what_is_nobodys_failure_but_ours_is_raised() -> None:
    for error in (MissingKey("no key"), TypeError("a bug")):
        second = Model("second")
        with pytest.raises(type(error)):
            await fallback(Model(failures=[error]), second).infer(REQUEST)
        assert not second.requests


async def test_one_may_say_when() -> None:
    def overflows(error: Exception) -> bool:
        return isinstance(error, ContextExceeded)

    small = Model("small", failures=[ContextExceeded("too long"), EngineError("down")])
    engine = fallback(small, Model("large"), when=overflows)
    assert (await engine.infer(REQUEST)).message.model == "large"
    with pytest.raises(EngineError, match="down"):
        await engine.infer(REQUEST)
    with pytest.raises(UserError, match="when="):
        fallback(small, small, when=3)  # pyright: ignore[reportArgumentType]


async def test_cancelling_asks_nobody_else() -> None:
    first, second = Model(stalls=True), Model("second")
    running = asyncio.ensure_future(fallback(first, second).infer(REQUEST))
    await settled()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert (first.open, second.requests) == (0, [])


async def test_retries_around_it_go_through_all_of_them_again() -> None:
    clock = FakeClock()
    first, second = Model("a", failures=broken(2)), Model("b", failures=broken(1))
    running = asyncio.ensure_future(retrying(fallback(first, second), clock=clock).infer(REQUEST))
    await settled()
    await clock.advance(5)
    result = await running
    assert [one["model"] for one in (result.message.extra or {})["attempts"]][:2] == ["a", "b"]
    assert result.message.model == "b"


async def test_each_step_is_logged() -> None:
    with logged() as said:
        await fallback(down("a"), Model("b")).infer(REQUEST)
    assert said == ["the model 'a' failed, and 'b' is asked in its place: a is down"]


# What it is


def test_it_can_do_what_all_can() -> None:
    one = Model("one", profile=Profile(images=True, native_schema=True, context_window=9, thinking=True))
    two = Model("two", profile=Profile(tools=False, native_schema=True, context_window=0))
    engine = fallback(one, two)
    assert profile_for(engine) == Profile(
        tools=False, native_schema=True, context_window=9, default_output_mode=OutputMode.PROMPTED
    )
    assert engine.model_info().name == "fallback(one, two)"
    assert engine.model_info().context_window == 9


def test_a_provider_is_said_where_they_have_one() -> None:
    assert fallback(Model("a"), Model("b")).model_info().provider == "test"
    assert fallback(Model("a"), Model("b", provider="other")).model_info().provider == ""


async def test_all_are_closed_once_also_where_one_fails_to() -> None:
    class Stuck(Model):
        async def aclose(self) -> None:
            await super().aclose()
            raise OSError("stuck")

    stuck, other = Stuck(), Model()
    with pytest.raises(OSError, match="stuck"):
        await fallback(stuck, other, stuck).aclose()
    assert (stuck.closed, other.closed) == (1, 1)


async def test_what_the_model_was_given_is_told_by_who_answered() -> None:
    plain, one, two = Model("plain"), Renderer("gpt"), Renderer("gpt-9")
    assert not isinstance(fallback(plain, plain), Renders)
    engine = fallback(plain, retrying(one), fallback(plain, two))
    assert isinstance(engine, Renders)
    for model, told_by in (("gpt", "by gpt: hi"), ("gpt-9-2026-01-01", "by gpt-9: hi")):
        (prompt,) = engine.rendered(REQUEST, replace(assistant("hi"), model=model))
        assert prompt.about == told_by
    for model in ("plain", "nobody", None):
        assert engine.rendered(REQUEST, replace(assistant("hi"), model=model)) == ()
    assert engine.rendered(REQUEST, None) == ()
    (prompt,) = fallback(one, plain).rendered(REQUEST, None)
    assert prompt.about == "by gpt: nothing yet"


async def test_model_strings_are_looked_up() -> None:
    result = await Agent(fallback("test:hi", "test:ho")).run("go")
    assert result.output == "hi"
    with pytest.raises(UnknownModel):
        fallback("test", "nobody:knows")
    with pytest.raises(ConfigurationFailure):
        fallback("test", 3)  # pyright: ignore[reportArgumentType]

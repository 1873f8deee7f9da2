"""retrying: model calls that failed are tried again, as the policy says and as long as there is time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import Agent, RetryPolicy
from flyball.core.errors import (
    ConfigurationFailure,
    ContextExceeded,
    EngineError,
    ModelHTTPError,
    UnexpectedModelBehavior,
    UnknownModel,
)
from flyball.core.events import ModelFailed
from flyball.inference.engine import Engine
from flyball.inference.profile import profile_for
from flyball.inference.rendered import Renders
from flyball.inference.request import Request
from flyball.inference.retry_policy import MODEL_CALLS
from flyball.inference.retrying import RetryingEngine, retrying
from flyball.inference.stream import Finish, Restart, StreamEvent, TextDelta, collect
from flyball.orchestrate.journal import MemoryJournal
from flyball.testing import FakeClock
from tests.inference.wrapped import (
    REQUEST,
    Model,
    Renderer,
    WrapperConformance,
    broken,
    logged,
    settled,
    told,
)

AT_ONCE = RetryPolicy(5)


class TestRetrying(WrapperConformance):
    def wrap(self, model: Model) -> Engine:
        return retrying(model)


class TestRetryingWhatFailsTwice(WrapperConformance):
    """A call takes three tries, and is like any other."""

    def wrap(self, model: Model) -> Engine:
        model.failures = [*broken(2), *model.failures]
        return retrying(model, AT_ONCE)

    deterministic = False  # whose turn it is to fail is by chance, where calls overlap


class Clocked:
    """A call that is tried again, on a clock that stands still; writes down when each try began."""

    def __init__(self, model: Model, policy: RetryPolicy = MODEL_CALLS, chance: float = 0.0) -> None:
        self.clock = FakeClock()
        self.began = self.clock.now()
        self.model = model
        self.engine = RetryingEngine(model, policy, clock=self.clock, chance=lambda: chance)

    async def times(self, request: Request = REQUEST, *, stream: bool = False) -> list[float]:
        """When the model was asked, from the beginning on; `ended` is how it ended."""
        call = collect(self.engine.stream(request)) if stream else self.engine.infer(request)
        running = asyncio.ensure_future(call)
        found: list[float] = []
        while True:
            await settled()
            found += [self.clock.now() - self.began] * (len(self.model.requests) - len(found))
            if running.done():
                self.ended = await asyncio.gather(running, return_exceptions=True)
                return found
            await self.clock.advance(0.25)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_waits_are_those_of_the_policy(stream: bool) -> None:
    assert await Clocked(Model(failures=broken(5))).times(stream=stream) == [0, 1, 3, 7, 15, 31]
    slow = Clocked(Model(failures=broken(2)), chance=1.0)
    assert await slow.times(stream=stream) == [0, 1.25, 1.25 + 2.5]


@pytest.mark.parametrize("stream", [False, True])
async def test_what_the_server_asks_for_is_the_wait(stream: bool) -> None:
    busy: list[Exception] = [ModelHTTPError("busy", status_code=429, retry_after=45) for _ in range(2)]
    assert await Clocked(Model(failures=busy), chance=1.0).times(stream=stream) == [0, 45, 90]


@pytest.mark.parametrize("stream", [False, True])
async def test_in_the_end_the_last_failure_is_raised_and_tells_of_the_others(stream: bool) -> None:
    clocked = Clocked(Model(failures=broken(9)))
    assert len(await clocked.times(stream=stream)) == 6
    (error,) = clocked.ended
    assert isinstance(error, EngineError)
    assert error.message == "broken 5"
    assert [one["message"] for one in error.details["attempts"]] == [f"broken {n}" for n in range(5)]
    assert error.record().exception().details == error.details


@pytest.mark.parametrize(
    "error",
    [
        ContextExceeded("too long"),
        ModelHTTPError("no money left", retryable=False, status_code=429),
        ConfigurationFailure("no key"),
        TypeError("a bug"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_what_will_not_pass_is_not_tried_again(error: Exception) -> None:
    model = Model(failures=[error])
    with pytest.raises(type(error)) as raised:
        await retrying(model, AT_ONCE).infer(REQUEST)
    assert raised.value is error
    assert len(model.requests) == 1


async def test_a_connection_that_breaks_is_tried_again_also_untold() -> None:
    model = Model(failures=[ConnectionResetError("gone"), TimeoutError("slow")])
    assert (await retrying(model, AT_ONCE).infer(REQUEST)).content == "model heard hello"


async def test_the_policy_may_say_what_is_worth_another_try() -> None:
    policy = RetryPolicy(1, retry_if=lambda error: isinstance(error, TypeError))
    model = Model(failures=[TypeError("a bug"), *broken(1)])
    with pytest.raises(EngineError, match="broken 0"):
        await retrying(model, policy).infer(REQUEST)


# The deadline


@given(st.integers(0, 200), st.none() | st.integers(0, 100))
async def test_no_try_begins_with_too_little_time_left_or_after_the_deadline(
    seconds: int, asked: int | None
) -> None:
    details: dict[str, Any] = {} if asked is None else {"retry_after": asked}
    clocked = Clocked(Model(failures=broken(9, **details)))
    times = await clocked.times(replace(REQUEST, deadline=clocked.began + seconds))
    expected = [0.0]
    for retry in range(1, 6):
        wait = MODEL_CALLS.wait(retry) if asked is None else asked
        left = seconds - expected[-1]
        if left < 20 or wait >= left:
            break
        expected.append(expected[-1] + wait)
    assert times == expected


async def test_a_run_tells_its_deadline() -> None:
    """Fifteen seconds are too few for another try; a minute is not."""
    for timeout, calls in ((15, 1), (60, 3)):
        clock, model = FakeClock(), Model(failures=broken(2))
        agent = Agent(RetryingEngine(model, clock=clock))
        running = asyncio.ensure_future(agent.run("go", timeout=timeout, clock=clock))
        while not running.done():
            await settled()
            await clock.advance(0.5)
        assert len(model.requests) == calls
        if calls == 1:
            with pytest.raises(EngineError, match="broken 0"):
                await running
        else:
            assert (await running).output == "model heard go"


# Streams


async def events_of(engine: Engine, request: Request = REQUEST) -> list[StreamEvent]:
    return [event async for event in engine.stream(request)]


async def test_who_reads_a_stream_notices_nothing_of_what_failed_before_it() -> None:
    events = await events_of(retrying(Model(failures=broken(2)), AT_ONCE))
    assert told(events) == ["mode", "l he", "ard ", "hell", "o"]
    assert isinstance(events[-1], Finish)
    assert [one["message"] for one in (events[-1].extra or {})["attempts"]] == ["broken 0", "broken 1"]


async def test_an_answer_that_broke_off_begins_again() -> None:
    engine = retrying(Model(failures=broken(2), after=2), AT_ONCE)
    events = await events_of(engine)
    whole = ["mode", "l he", "ard ", "hell", "o"]
    assert told(events) == ["mode", "l he", "restart", "mode", "l he", "restart", *whole]


async def test_unless_the_policy_says_that_it_does_not() -> None:
    engine = retrying(Model(failures=broken(1), after=2), replace(AT_ONCE, restart=False))
    with pytest.raises(EngineError, match="broken 0"):
        await events_of(engine)
    assert told(await events_of(retrying(Model(failures=broken(1)), replace(AT_ONCE, restart=False))))


async def test_where_no_other_try_gives_anything_the_reader_keeps_what_it_had() -> None:
    model = Model(failures=[*broken(1), ContextExceeded("too long")], after=1)
    stream = retrying(model, AT_ONCE).stream(REQUEST)
    assert told([await anext(stream)]) == ["mode"]
    model.after = 0  # the second try fails before it gives anything
    with pytest.raises(ContextExceeded) as raised:
        await anext(stream)
    assert [one["message"] for one in raised.value.details["attempts"]] == ["broken 0"]


async def test_a_stream_without_its_finish_has_failed() -> None:
    class Cut(Model):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            self.requests.append(request)
            yield TextDelta(0, "half")

    model = Cut()
    with pytest.raises(UnexpectedModelBehavior, match="without a Finish"):
        await events_of(retrying(model, RetryPolicy(2)))
    assert len(model.requests) == 3


async def test_a_stream_whose_beginning_raises_is_tried_again() -> None:
    class Refusing(Model):
        def stream(self, request: Request) -> Any:
            if not self.requests:
                self.requests.append(request)
                raise EngineError("not now")
            return super().stream(request)

    assert (await collect(retrying(Refusing(), AT_ONCE).stream(REQUEST))).content == "model heard hello"


# Going away


@pytest.mark.parametrize("stream", [False, True])
async def test_cancelling_ends_a_wait_at_once(stream: bool) -> None:
    clock, model = FakeClock(), Model(failures=broken(9))
    engine = retrying(model, clock=clock)
    call = collect(engine.stream(REQUEST)) if stream else engine.infer(REQUEST)
    running = asyncio.ensure_future(call)
    await settled()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await clock.advance(600)
    assert (len(model.requests), model.open) == (1, 0)


async def test_the_failed_stream_is_closed_before_the_wait() -> None:
    clock, model = FakeClock(), Model(failures=broken(1), after=1)
    stream = retrying(model, clock=clock).stream(REQUEST)
    assert isinstance(await anext(stream), TextDelta)
    waiting = asyncio.ensure_future(anext(stream))
    await settled()
    assert (model.open, waiting.done()) == (0, False)
    await clock.advance(2)
    assert isinstance(await waiting, Restart)
    await stream.aclose()
    assert model.open == 0


# What is told


async def test_an_answer_says_which_tries_failed() -> None:
    model = Model("gpt-9", failures=[ModelHTTPError("busy", status_code=503)])
    engine = retrying(model, AT_ONCE)
    attempts = [{"model": "gpt-9", "code": "INFERENCE_ENGINE_ERROR", "message": "busy"}]
    assert (await engine.infer(REQUEST)).message.extra == {"attempts": attempts}
    assert (await engine.infer(REQUEST)).message.extra is None, "it went well at once"


async def test_streamed_and_whole_say_the_same() -> None:
    whole = await retrying(Model(failures=broken(2)), AT_ONCE).infer(REQUEST)
    pieces = await collect(retrying(Model(failures=broken(2), after=1), AT_ONCE).stream(REQUEST))
    assert pieces == whole


async def test_a_run_records_it() -> None:
    result = await Agent(retrying(Model(failures=broken(1)), AT_ONCE)).run("go")
    (attempt,) = (result.messages[-1].extra or {})["attempts"]
    assert attempt["message"] == "broken 0"
    journal = MemoryJournal()
    with pytest.raises(EngineError):
        await Agent(retrying(Model(failures=broken(9)), RetryPolicy(2))).run(
            "go", journal=journal, loop_id="a"
        )
    (failed,) = [one for one in await journal.read("a") if isinstance(one, ModelFailed)]
    assert len((failed.error.details or {})["attempts"]) == 2


async def test_a_streamed_run_of_an_answer_that_broke_off_reads_as_one() -> None:
    agent = Agent(retrying(Model(failures=broken(1), after=2), AT_ONCE))
    async with agent.run_stream("go") as run:
        assert "".join([text async for text in run.text()]) == "model heard go"
    assert run.result.output == "model heard go"


async def test_nested_retries_tell_all_tries_in_order() -> None:
    model = Model(failures=broken(3))
    result = await retrying(retrying(model, RetryPolicy(1)), RetryPolicy(1)).infer(REQUEST)
    messages = [one["message"] for one in (result.message.extra or {})["attempts"]]
    assert messages == ["broken 0", "broken 1", "broken 2"]


async def test_an_error_that_an_engine_raises_twice_tells_of_one_call_at_a_time() -> None:
    error = EngineError("always")
    engine = retrying(Model(failures=[error] * 6), RetryPolicy(2))
    for _ in range(2):
        with pytest.raises(EngineError) as raised:
            await engine.infer(REQUEST)
        assert len(raised.value.details["attempts"]) == 2
    assert error.details == {}


async def test_each_retry_is_logged() -> None:
    with logged() as said:
        await retrying(Model(failures=broken(2)), AT_ONCE).infer(REQUEST)
    assert said == [
        "the model 'model' failed and is asked again in 0 s (retry 1 of 5): broken 0",
        "the model 'model' failed and is asked again in 0 s (retry 2 of 5): broken 1",
    ]


# All else


async def test_all_else_is_the_engines_own() -> None:
    model, renderer = Model(window=5), Renderer()
    assert retrying(model).model_info() == model.model_info()
    assert profile_for(retrying(model)) == profile_for(model)
    assert not isinstance(retrying(model), Renders)
    wrapped = retrying(renderer)
    assert isinstance(wrapped, Renders)
    assert wrapped.rendered(REQUEST, None) == renderer.rendered(REQUEST, None)


async def test_a_model_string_is_looked_up() -> None:
    assert (await retrying("test:hi").infer(REQUEST)).content == "hi"
    with pytest.raises(UnknownModel):
        retrying("nobody:knows")

"""cached: what was answered before is not asked again, and nothing else is kept."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from flyball import Agent, RetryPolicy
from flyball.core.errors import ConfigurationFailure, EngineError, UserError
from flyball.core.messages import FinishReason, Message, user
from flyball.core.settings import ModelSettings
from flyball.core.usage import Usage
from flyball.inference.cache.engine import cached
from flyball.inference.cache.sqlite import SQLiteCache
from flyball.inference.cache.store import MemoryCache
from flyball.inference.engine import Engine
from flyball.inference.fallback import fallback
from flyball.inference.limiting import limited
from flyball.inference.rendered import Renders
from flyball.inference.request import Request, Result
from flyball.inference.retrying import retrying
from flyball.inference.scripted import FunctionEngine
from flyball.inference.stream import Finish, StreamEvent, TextDelta, ToolCallDelta, collect
from flyball.testing import FakeClock
from tests.inference.strategies import messages
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

OTHER = Request((user("something else"),))


class Forgetful:
    """A store that finds nothing."""

    async def get(self, key: str) -> None:
        del key

    async def put(self, key: str, answer: bytes, ttl: float | None = None) -> None:
        del key, answer, ttl


class TestAsked(WrapperConformance):
    """Nothing is ever found."""

    def wrap(self, model: Model) -> Engine:
        return cached(model, Forgetful())


class TestFound(WrapperConformance):
    """What was asked before is found."""

    deterministic = False  # an answer that is found says so

    def wrap(self, model: Model) -> Engine:
        return cached(model)


class TestStack(WrapperConformance):
    deterministic = False

    def wrap(self, model: Model) -> Engine:
        inner = limited(retrying(model, RetryPolicy(1)), max_concurrent=3, tokens_per_minute=10**9)
        return retrying(cached(fallback(inner, down())), RetryPolicy(1))


class TestOtherStack(WrapperConformance):
    def wrap(self, model: Model) -> Engine:
        return fallback(limited(retrying(cached(model, Forgetful()))), down())


async def test_an_answer_is_given_again() -> None:
    model = Model(usage=Usage(7, 5, context_tokens=12, context_window=100))
    engine = cached(model)
    first, second = await engine.infer(REQUEST), await engine.infer(REQUEST)
    assert len(model.requests) == 1
    assert first.message.extra is None
    assert (second.content, second.message.model, second.finish_reason) == (
        "model heard hello",
        "model",
        "stop",
    )
    await engine.infer(OTHER)
    assert len(model.requests) == 2


async def test_it_says_so_and_counts_no_tokens() -> None:
    engine = cached(Model(usage=Usage(7, 5, context_tokens=12, context_window=100)))
    await engine.infer(REQUEST)
    found = await engine.infer(REQUEST)
    assert found.usage == Usage(context_tokens=12, context_window=100)
    used = {"input_tokens": 7, "output_tokens": 5, "context_tokens": 12, "context_window": 100}
    assert found.message.extra == {"cached": {"usage": used}}
    agent = Agent(engine)
    assert (await agent.run("hello")).usage.total_tokens == 12
    again = await agent.run("hello")
    assert (again.output, again.usage.total_tokens, again.usage.requests) == ("model heard hello", 0, 1)


@given(messages)
async def test_an_answer_from_the_cache_is_the_same_streamed_or_whole(message: Message) -> None:
    message = replace(message, finish_reason=FinishReason.STOP)

    async def answer(_: Request) -> Result:
        return Result(message, "request-1")

    engine = cached(FunctionEngine(answer))
    first = await engine.infer(REQUEST)
    whole, pieces = await engine.infer(REQUEST), await collect(engine.stream(REQUEST))
    if message.parts:
        assert pieces == whole
        assert (whole.message.parts, whole.request_id) == (first.message.parts, first.request_id)
    else:
        assert whole == first, "an answer that says nothing is not kept"


async def test_a_miss_streams_as_it_comes_and_is_kept_at_its_end() -> None:
    model, store = Model(), MemoryCache()
    stream = cached(model, store).stream(REQUEST)
    assert isinstance(await anext(stream), TextDelta)
    assert len(store) == 0
    assert len([event async for event in stream]) > 3
    assert len(store) == 1
    hit = [event async for event in cached(model, store).stream(REQUEST)]
    assert told(hit) == ["model heard hello"]
    assert len(model.requests) == 1


async def test_a_stream_that_is_closed_or_breaks_is_not_kept() -> None:
    store = MemoryCache()
    stream = cached(Model(), store).stream(REQUEST)
    await anext(stream)
    await stream.aclose()
    with pytest.raises(EngineError):
        await collect(cached(Model(failures=broken(1), after=2), store).stream(REQUEST))
    with pytest.raises(EngineError):
        await cached(Model(failures=broken(1)), store).infer(REQUEST)
    assert len(store) == 0


async def test_an_answer_that_began_again_is_kept_as_it_ended() -> None:
    model, store = Model(failures=broken(1), after=2), MemoryCache()
    streamed = await collect(cached(retrying(model, RetryPolicy(1)), store).stream(REQUEST))
    assert (streamed.message.extra or {}).keys() == {"attempts"}
    found = await cached(model, store).infer(REQUEST)
    assert found.message.parts == streamed.message.parts
    assert (found.message.extra or {}).keys() == {"cached"}, "nothing failed this time"


@pytest.mark.parametrize("reason", list(FinishReason))
async def test_what_was_cut_short_is_not_kept(reason: FinishReason) -> None:
    async def answer(_: Request) -> Message:
        return replace(Result(Model()._message(REQUEST)).message, finish_reason=reason)  # pyright: ignore[reportPrivateUsage]

    store = MemoryCache()
    engine = cached(FunctionEngine(answer), store)
    await engine.infer(REQUEST)
    await collect(engine.stream(REQUEST))
    assert len(store) == (1 if reason in (FinishReason.STOP, FinishReason.TOOL_CALL) else 0)


async def test_answers_have_their_time() -> None:
    clock, model = FakeClock(), Model()
    engine = cached(model, MemoryCache(clock=clock), ttl=60)
    for calls, advance in ((1, 59.0), (1, 1.0), (2, 0.0)):
        await engine.infer(REQUEST)
        assert len(model.requests) == calls
        await clock.advance(advance)


async def test_another_run_or_time_is_no_other_question() -> None:
    model = Model()
    engine = cached(model)
    await engine.infer(replace(REQUEST, id="a/1/1/infer/0", deadline=5.0))
    await engine.infer(replace(REQUEST, id="b/1/1/infer/0"))
    assert len(model.requests) == 1
    await engine.infer(replace(REQUEST, settings=ModelSettings(temperature=0.0)))
    assert len(model.requests) == 2


async def test_models_do_not_share_answers() -> None:
    store = MemoryCache()
    assert (await cached(Model("one"), store).infer(REQUEST)).content == "one heard hello"
    assert (await cached(Model("two"), store).infer(REQUEST)).content == "two heard hello"


async def test_what_has_no_key_is_asked() -> None:
    request = replace(REQUEST, settings=ModelSettings(options={"callback": print}))
    model, store = Model(), MemoryCache()
    for _ in range(2):
        await cached(model, store).infer(request)
        await collect(cached(model, store).stream(request))
    assert (len(model.requests), len(store)) == (4, 0)


# Where the store fails


class Broken:
    async def get(self, key: str) -> bytes | None:
        raise OSError(f"no disk for {key[:0]}it")

    async def put(self, key: str, answer: bytes, ttl: float | None = None) -> None:
        raise OSError("the disk is full")


@pytest.mark.parametrize("stream", [False, True])
async def test_where_a_store_fails_the_model_is_asked(stream: bool) -> None:
    engine = cached(Model(), Broken())
    with logged() as said:
        result = await (collect(engine.stream(REQUEST)) if stream else engine.infer(REQUEST))
    assert result.content == "model heard hello"
    assert said == [
        "a cache could not be read, and the model is asked: OSError: no disk for it",
        "an answer could not be cached: OSError: the disk is full",
    ]


async def test_what_cannot_be_read_is_asked_again_and_put_right() -> None:
    class Odd(MemoryCache):
        async def put(self, key: str, answer: bytes, ttl: float | None = None) -> None:
            await super().put(key, b"{" if not len(self) else answer, ttl)

    model = Model()
    engine = cached(model, Odd())
    with logged() as said:
        for _ in range(3):
            await engine.infer(REQUEST)
    assert len(model.requests) == 2
    assert len(said) == 1


async def test_pieces_that_make_no_answer_are_their_readers_to_judge() -> None:
    class Odd(Model):
        async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
            del request
            yield ToolCallDelta(0, "{}")
            yield Finish()

    store = MemoryCache()
    events = [event async for event in cached(Odd(), store).stream(REQUEST)]
    assert len(events) == 2
    assert len(store) == 0


async def test_a_store_that_is_set_up_wrongly_is_told_also_when_something_is_kept() -> None:
    class Wrong(Forgetful):
        async def put(self, key: str, answer: bytes, ttl: float | None = None) -> None:
            raise ConfigurationFailure("no such table")

    with pytest.raises(ConfigurationFailure, match="no such table"):
        await cached(Model(), Wrong()).infer(REQUEST)


async def test_a_file_that_is_none_of_ours_is_told(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"dear diary " * 100)
    with pytest.raises(ConfigurationFailure, match=r"notes\.txt"):
        await cached(Model(), tmp_path / "notes.txt").infer(REQUEST)


# On disk


async def test_a_file_is_found_again(tmp_path: Path) -> None:
    model = Model()
    for _ in range(2):
        engine = cached(model, tmp_path / "answers.db")
        assert (await engine.infer(REQUEST)).content == "model heard hello"
        await engine.aclose()
    assert len(model.requests) == 1


async def test_a_store_that_is_shared_is_left_open(tmp_path: Path) -> None:
    closed: list[str] = []

    class Noting(SQLiteCache):
        async def aclose(self) -> None:
            closed.append(self.path)
            await super().aclose()

    store = Noting(tmp_path / "a.db")
    await cached(Model(), store).aclose()
    assert closed == []
    await store.aclose()


async def test_cancelling_while_the_store_is_asked_ends_the_call() -> None:
    class Slow(MemoryCache):
        async def get(self, key: str) -> bytes | None:
            await asyncio.Event().wait()
            return await super().get(key)

    model = Model()
    running = asyncio.ensure_future(cached(model, Slow()).infer(REQUEST))
    await settled()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.requests == []


def test_what_cannot_be_is_refused() -> None:
    for ttl in (0, -1, True, float("inf"), float("nan")):
        with pytest.raises(UserError, match="ttl="):
            cached(Model(), ttl=ttl)
    with pytest.raises(UserError, match="store"):
        cached(Model(), 3)  # pyright: ignore[reportArgumentType]


async def test_all_else_is_the_engines_own() -> None:
    engine = cached(Renderer("r"))
    assert isinstance(engine, Renders)
    assert engine.model_info().name == "r"
    assert (await cached("test:hi").infer(REQUEST)).content == "hi"


async def test_what_is_kept_can_be_read_by_eye() -> None:
    store = MemoryCache()
    await cached(Model(), store).infer(REQUEST)
    ((body, _),) = store._kept.values()  # pyright: ignore[reportPrivateUsage]
    assert msgspec.json.decode(body)["message"]["parts"] == [{"kind": "text", "text": "model heard hello"}]

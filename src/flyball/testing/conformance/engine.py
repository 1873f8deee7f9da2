"""What every `Engine` promises, as tests that an engine's author can run.

    class TestMyEngine(EngineConformance):
        def make_engine(self) -> Engine:
            return MyEngine(...)

The methods are coroutines: run them with pytest-asyncio's auto mode, or with the marker of your runner. The
hooks say what the engine can do; a promise that a hook leaves open is skipped, with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from unittest import SkipTest

import msgspec

from flyball.core.errors import ConfigurationFailure, InferenceFailure
from flyball.core.messages import Role, user
from flyball.inference.engine import Engine
from flyball.inference.request import Request, Result
from flyball.inference.stream import Assembler, Finish, StreamEvent, collect

PROMPTS = tuple(f"Say the word {word}." for word in ("one", "two", "three", "four", "five", "six", "seven"))
"""What the suite asks; an engine's author may want to answer each of them differently."""


class EngineConformance:
    """The promises of `Engine`. Subclass it, name the subclass `Test…`, and give it `make_engine`."""

    deterministic: bool = True
    """Whether the same request always gets the same answer; real models seldom do that."""

    def make_engine(self) -> Engine:
        """A fresh engine that answers any request. Every test makes its own."""
        raise NotImplementedError("EngineConformance needs make_engine(), which gives a fresh engine")

    def make_request(self, prompt: str) -> Request:
        """A request that the engine can answer."""
        return Request((user(prompt),))

    def make_stalled_engine(self) -> Engine | None:
        """An engine whose answers never come (a server that accepts and is silent), or None."""
        return None

    def make_failing_engine(self) -> Engine | None:
        """An engine that cannot answer (a server that refuses, a wrong key), or None."""
        return None

    def open_calls(self, engine: Engine) -> int | None:
        """How many calls the engine still works on behind the scenes, or None where that cannot be seen."""
        del engine
        return None

    async def test_infer_answers(self) -> None:
        """`infer` gives an assistant's message that says something."""
        result = await self.make_engine().infer(self.make_request(PROMPTS[0]))
        assert isinstance(result, Result), f"infer gave a {type(result).__name__}, not a Result"
        assert result.message.role is Role.ASSISTANT, f"the answer's role is {result.message.role}"
        assert result.message.parts, "the answer has no parts"
        result.message.check()
        assert msgspec.json.decode(msgspec.json.encode(result), type=Result) == result, (
            "it cannot be written down"
        )

    async def test_stream_joins_to_what_infer_gives(self) -> None:
        """The pieces make the same answer, and a `Finish` closes them."""
        request = self.make_request(PROMPTS[0])
        events = [event async for event in self.make_engine().stream(request)]
        assert events, "the stream gave nothing"
        assert isinstance(events[-1], Finish), f"the stream ended with {events[-1]!r}, not with a Finish"
        assembler = Assembler()
        for event in events:
            assembler.feed(event)
        streamed = assembler.result()
        whole = await self.make_engine().infer(request)
        if self.deterministic:
            assert streamed.message == whole.message, (
                f"streamed {streamed.message!r}, inferred {whole.message!r}"
            )
        else:
            assert streamed.message.parts, "the streamed answer has no parts"
            assert streamed.message.model == whole.message.model, "stream and infer name different models"

    async def test_closing_a_stream_early_ends_it(self) -> None:
        """After `aclose` the stream gives nothing more, the call is over, and the engine still answers."""
        engine = self.make_engine()
        request = self.make_request(PROMPTS[0])
        stream = engine.stream(request)
        await anext(stream)
        await _close(stream)
        rest = [event async for event in stream]
        assert rest == [], f"a closed stream still gave {rest!r}"
        assert self.open_calls(engine) in (None, 0), "the call behind a closed stream goes on"
        await engine.infer(request)

    async def test_cancelling_infer_ends_it(self) -> None:
        """Who cancels the task that waits gets a cancelled task, and the call is over."""
        engine = self._or_skip(self.make_stalled_engine(), "make_stalled_engine() gives none")
        task = asyncio.ensure_future(engine.infer(self.make_request(PROMPTS[0])))
        await self._cancelled(task)
        assert self.open_calls(engine) in (None, 0), "the call behind a cancelled task goes on"

    async def test_cancelling_a_stream_ends_it(self) -> None:
        """The same while a stream waits for its next piece."""
        engine = self._or_skip(self.make_stalled_engine(), "make_stalled_engine() gives none")
        task = asyncio.ensure_future(collect(engine.stream(self.make_request(PROMPTS[0]))))
        await self._cancelled(task)
        assert self.open_calls(engine) in (None, 0), "the call behind a cancelled stream goes on"

    async def test_the_request_is_not_changed(self) -> None:
        """Neither way of asking changes what was asked."""
        request = self.make_request(PROMPTS[0])
        before = msgspec.json.encode(request)
        engine = self.make_engine()
        await engine.infer(request)
        await collect(engine.stream(request))
        assert msgspec.json.encode(request) == before, "the engine changed the request"

    async def test_overlapping_calls_do_not_mix(self) -> None:
        """Calls at the same time get what each would have got alone."""
        engine = self.make_engine()
        requests = [self.make_request(prompt) for prompt in PROMPTS]
        together = await asyncio.gather(
            *[engine.infer(request) for request in requests],
            *[collect(engine.stream(request)) for request in requests],
        )
        assert all(result.message.parts for result in together), "an overlapping call got an empty answer"
        if self.deterministic:
            alone = self.make_engine()
            expected = [(await alone.infer(request)).message for request in requests]
            assert [result.message for result in together] == expected * 2, "overlapping calls were mixed up"

    async def test_failures_are_of_the_taxonomy(self) -> None:
        """What goes wrong is an InferenceFailure or a ConfigurationFailure that can be written down."""
        engine = self._or_skip(self.make_failing_engine(), "make_failing_engine() gives none")
        request = self.make_request(PROMPTS[0])
        ways: tuple[Callable[[], Awaitable[Result]], ...] = (
            lambda: engine.infer(request),
            lambda: collect(engine.stream(request)),
        )
        for way in ways:
            error = await _failure(way)
            assert error is not None, "an engine that cannot answer gave an answer"
            assert isinstance(error, InferenceFailure | ConfigurationFailure), (
                f"outside the taxonomy: {error!r}"
            )
            record = error.record()
            again = msgspec.json.decode(msgspec.json.encode(record), type=type(record)).exception()
            assert type(again) is type(error), f"{error!r} came back from its record as {again!r}"

    async def test_model_info_names_the_model(self) -> None:
        """There is a name, the same before and after a call."""
        engine = self.make_engine()
        info = engine.model_info()
        assert info.name, "model_info() has no name"
        assert info.context_window >= 0, f"the context window is {info.context_window}"
        await engine.infer(self.make_request(PROMPTS[0]))
        assert engine.model_info().name == info.name, "the name changed with a call"

    def _or_skip(self, engine: Engine | None, reason: str) -> Engine:
        if engine is None:
            raise SkipTest(f"{type(self).__name__}.{reason}")
        return engine

    @staticmethod
    async def _cancelled(task: asyncio.Future[Result]) -> None:
        # Several turns of the event loop, so that the call has reached whatever it waits for.
        for _ in range(20):
            await asyncio.sleep(0)
        assert not task.done(), f"a stalled engine was done before it was cancelled: {task!r}"
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled(), f"the cancelled task ended as {task!r}"


async def _close(stream: AsyncIterator[StreamEvent]) -> None:
    close = getattr(stream, "aclose", None)
    assert close is not None, f"the stream ({type(stream).__name__}) has no aclose()"
    await close()


async def _failure(call: Callable[[], Awaitable[object]]) -> Exception | None:
    try:
        await call()
    except Exception as error:
        return error
    return None

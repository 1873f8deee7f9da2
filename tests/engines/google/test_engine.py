"""The engine: the promises of every engine, and what becomes of all that can go wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from flyball.core.errors import (
    ContentFilterError,
    ContextExceeded,
    EngineError,
    FlyballError,
    MissingKey,
    ModelHTTPError,
    ModelRequestsForbidden,
    ModelUnavailable,
    UnexpectedModelBehavior,
    UserError,
)
from flyball.core.messages import FinishReason, assistant, user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolDefinition
from flyball.engines.google import GoogleEngine, engine_for
from flyball.engines.wire.aio import Timeouts
from flyball.inference.engine import Engine
from flyball.inference.model_string import parse_model
from flyball.inference.permission import forbid_model_requests
from flyball.inference.profile import Profile
from flyball.inference.registry import Registry
from flyball.inference.request import OutputObject, Request
from flyball.inference.stream import Assembler, StreamEvent, TextDelta, collect
from flyball.testing.conformance import EngineConformance
from tests.engines.google.serving import answer, engine_at, replying
from tests.engines.loopback import Answer, Loopback, Received, as_json, sse

ASKED = Request((user("hi"),))


def _echo(got: Received) -> dict[str, Any]:
    said = got.json["contents"][-1]["parts"][0]["text"]
    thought = {"text": f"They say {said}", "thought": True, "thoughtSignature": "c2ln"}
    return answer(thought, {"text": "You said: "}, {"text": said}, {"text": "", "thoughtSignature": "ZW5k"})


class TestGoogleEngine(EngineConformance):
    @pytest.fixture(autouse=True)
    async def _servers(self) -> AsyncIterator[None]:
        self.asked = asyncio.Event()

        def silent(_: Received) -> Answer:
            self.asked.set()
            return Answer([b": wait\n\n"], headers={"Content-Type": "text/event-stream"}, end="stall")

        refused = {"error": {"code": 403, "message": "no", "status": "PERMISSION_DENIED"}}
        async with (
            Loopback(replying(_echo)) as self.good,
            Loopback(silent) as self.stalled,
            Loopback(lambda _: as_json(refused, 403)) as self.failing,
        ):
            self.made: list[GoogleEngine] = []
            yield
            for engine in self.made:
                await engine.aclose()

    def _engine(self, server: Loopback) -> GoogleEngine:
        self.made.append(engine_at(server))
        return self.made[-1]

    def make_engine(self) -> Engine:
        return self._engine(self.good)

    def make_stalled_engine(self) -> Engine:
        return self._engine(self.stalled)

    def make_failing_engine(self) -> Engine:
        return self._engine(self.failing)

    async def test_cancelling_closes_the_connection(self) -> None:
        task = asyncio.ensure_future(self._engine(self.stalled).infer(ASKED))
        await asyncio.wait_for(self.asked.wait(), 30)
        task.cancel()
        await asyncio.wait_for(self.stalled.gone.wait(), 30)


def _error(code: int, status: str, message: str, *details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


_QUOTA = "You exceeded your current quota, please check your plan and billing details."
_RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "32.5s"}
_DAILY = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]}
_LONG = "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576)."
_FAILURES: list[tuple[int, Any, type[FlyballError], bool]] = [
    (429, _error(429, "RESOURCE_EXHAUSTED", _QUOTA, _RETRY), ModelHTTPError, True),
    (429, _error(429, "RESOURCE_EXHAUSTED", _QUOTA, _DAILY, _RETRY), ModelHTTPError, False),
    (429, _error(429, "RESOURCE_EXHAUSTED", _QUOTA), ModelHTTPError, False),
    (429, _error(429, "RESOURCE_EXHAUSTED", "Resource exhausted. Try again later."), ModelHTTPError, True),
    (503, _error(503, "UNAVAILABLE", "The model is overloaded."), ModelHTTPError, True),
    (500, _error(500, "INTERNAL", "An internal error has occurred."), ModelHTTPError, True),
    (504, _error(504, "DEADLINE_EXCEEDED", "Deadline expired."), ModelHTTPError, True),
    (
        400,
        _error(400, "INVALID_ARGUMENT", _LONG),
        ContextExceeded,
        False,
    ),
    (400, _error(400, "INVALID_ARGUMENT", "API key not valid. Please pass another."), ModelHTTPError, False),
    (403, _error(403, "PERMISSION_DENIED", "Your key the-secret-key was leaked."), ModelHTTPError, False),
    (
        404,
        _error(404, "NOT_FOUND", "models/gemini-0 is not found for API version v1beta"),
        ModelUnavailable,
        False,
    ),
    (502, b"<html>Bad Gateway</html>", ModelHTTPError, True),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "retryable"), _FAILURES)
@pytest.mark.parametrize("way", ["whole", "streamed", "listed"])
async def test_refusals(status: int, body: Any, kind: type[FlyballError], retryable: bool, way: str) -> None:
    if isinstance(body, bytes):
        reply = Answer(body, status, {"x-request-id": "req-9"})
    else:
        reply = as_json([body] if way == "listed" else body, status, x_request_id="req-9")
    async with Loopback(lambda _: reply) as server:
        engine = engine_at(server)
        with pytest.raises(FlyballError) as caught:
            await (engine.infer(ASKED) if way == "whole" else collect(engine.stream(ASKED)))
        await engine.aclose()
    error = caught.value
    assert type(error) is kind
    assert error.retryable is retryable
    assert error.details["status_code"] == status
    assert error.details["request_id"] == "req-9"
    assert error.details["provider"] == "google"
    assert error.details.get("retry_after") == (32.5 if b"retryDelay" in bytes(reply.body) else None)  # pyright: ignore[reportArgumentType]
    assert "the-secret-key" not in f"{error} {error.details}"
    if not isinstance(body, bytes):
        assert body["error"]["message"][:8] in str(error)


async def _fed(assembler: Assembler, events: AsyncIterator[StreamEvent]) -> None:
    async for event in events:
        assembler.feed(event)


async def _broken(reply: Answer, **options: Any) -> tuple[str, FlyballError]:
    """What a stream gave before it failed, and how it failed."""
    assembler = Assembler()
    async with Loopback(lambda _: reply) as server:
        engine = engine_at(server, **options)
        with pytest.raises(FlyballError) as caught:
            await _fed(assembler, engine.stream(ASKED))
        await engine.aclose()
    return assembler.message().text, caught.value


def _begun(*more: Any) -> Answer:
    first = {"candidates": [{"content": {"parts": [{"text": "Once upon"}]}, "index": 0}]}
    return sse(first, *more, ended=False, chunk=11)


async def test_a_reset_half_way_has_given_what_had_come() -> None:
    begun = _begun()
    said, error = await _broken(Answer(begun.body, headers=begun.headers, end="reset"))
    assert said == "Once upon"
    assert isinstance(error, EngineError)
    assert error.retryable


async def test_a_stream_that_ends_before_the_answer_does() -> None:
    said, error = await _broken(_begun())
    assert said == "Once upon"
    assert isinstance(error, UnexpectedModelBehavior)


async def test_a_stream_that_falls_silent() -> None:
    begun = _begun()
    stalled = Answer(begun.body, headers=begun.headers, end="stall")
    said, error = await _broken(stalled, timeouts=Timeouts(idle=0.2))
    assert said == "Once upon"
    assert isinstance(error, EngineError)
    assert error.retryable


@pytest.mark.parametrize(
    ("more", "kind", "retryable"),
    [
        (_error(503, "UNAVAILABLE", "The model is overloaded."), ModelHTTPError, True),
        ([_error(400, "INVALID_ARGUMENT", "wrong")], ModelHTTPError, False),
        (b'{"candidates": [', UnexpectedModelBehavior, True),
        ({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}, ContentFilterError, False),
        ({"candidates": [{"finishReason": "MALFORMED_FUNCTION_CALL"}]}, UnexpectedModelBehavior, True),
    ],
)
async def test_errors_in_the_middle_of_a_stream(more: Any, kind: type[FlyballError], retryable: bool) -> None:
    said, error = await _broken(_begun(more))
    assert said == "Once upon"
    assert isinstance(error, kind)
    assert error.retryable is retryable


async def test_a_server_that_does_not_stream() -> None:
    """Also one that sends the chunks of its stream in a list."""
    chunks = [{"candidates": [{"content": {"parts": [{"text": "a"}]}}]}, answer({"text": "b"})]
    for body in (answer({"text": "ab"}), chunks):
        async with Loopback(lambda _, body=body: as_json(body)) as server:
            engine = engine_at(server)
            assert (await collect(engine.stream(ASKED))).content == "ab"
            await engine.aclose()


async def test_odd_chunks() -> None:
    whole = answer({"text": "Grüße 漢字"})
    for chunk in (1, 2, 3, 1000):
        async with Loopback(lambda _, chunk=chunk: sse(whole, ended=False, chunk=chunk)) as server:
            engine = engine_at(server)
            result = await collect(engine.stream(ASKED))
            assert (result.content, result.request_id) == ("Grüße 漢字", "resp-1")
            await engine.aclose()


async def test_tools_and_a_schema_in_two_steps_before_gemini_3() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    request = Request((user("hi"),), (ToolDefinition("look", schema),), output=OutputObject(schema))

    def reply(got: Received) -> Any:
        return answer({"text": "No need." if "tools" in got.json else '{"a": 1}'})

    async with Loopback(replying(reply)) as server:
        old, new = engine_at(server, "gemini-2.5-flash"), engine_at(server)
        assert (await old.infer(request)).content == '{"a": 1}'
        assert (await collect(old.stream(request))).message == (await old.infer(request)).message
        first, second = [got.json for got in server.received[:2]]
        assert "generationConfig" not in first
        assert "tools" not in second
        await new.infer(request)
        both = server.received[-1].json
        assert both["tools"]
        assert both["generationConfig"]["responseJsonSchema"] == schema
        await old.aclose()
        await new.aclose()


async def test_headers_safety_and_options_are_sent() -> None:
    async with Loopback(replying(lambda _: answer({"text": "a"}))) as server:
        engine = engine_at(
            server, "tunedModels/mine", headers={"X-Team": "red"}, safety={"HARM_CATEGORY_HARASSMENT": "OFF"}
        )
        settings = ModelSettings(options={"serviceTier": "flex"})
        result = await engine.infer(Request((user("a"), assistant("b"), user("c")), settings=settings))
        await engine.aclose()
    (got,) = server.received
    assert got.path == "/v1beta/tunedModels/mine:generateContent"
    assert got.headers["x-team"] == "red"
    assert got.json["serviceTier"] == "flex"
    assert got.json["safetySettings"] == [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "OFF"}]
    assert result.finish_reason is FinishReason.STOP
    assert result.message.model == "gemini-3.8-flash-001"
    assert (result.usage.input_tokens, result.usage.output_tokens) == (7, 5)


async def test_a_call_that_may_not_be_made_is_not_made() -> None:
    async with Loopback(replying(lambda _: answer({"text": "a"}))) as server:
        engine = engine_at(server)
        with forbid_model_requests(), pytest.raises(ModelRequestsForbidden):
            await engine.infer(ASKED)
        assert server.received == []


def test_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingKey, match="GOOGLE_API_KEY or GEMINI_API_KEY"):
        engine_for(parse_model("google:gemini-3.8-flash"))
    monkeypatch.setenv("GEMINI_API_KEY", "k")
    engine = Registry().resolve("google:gemini-3.8-flash")
    assert isinstance(engine, GoogleEngine)
    info = engine.model_info()
    assert (info.name, info.provider, info.context_window) == ("gemini-3.8-flash", "google", 1_048_576)
    assert engine.profile.thinking
    with pytest.raises(UserError, match="has a name"):
        GoogleEngine("")
    assert GoogleEngine("m", profile=Profile(tools=False)).profile == Profile(tools=False)


async def test_events_come_as_they_come() -> None:
    """The first words are handed on while the server still waits."""
    begun = _begun()
    async with Loopback(lambda _: Answer(begun.body, headers=begun.headers, end="stall")) as server:
        engine = engine_at(server)
        stream = engine.stream(ASKED)
        seen = [await anext(stream), await anext(stream)]
        assert seen[-1] == TextDelta(0, "Once upon")
        await stream.aclose()
        await asyncio.wait_for(server.gone.wait(), 30)
        await engine.aclose()

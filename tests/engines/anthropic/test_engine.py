"""The engine over real sockets: what every engine promises, and what goes wrong in real life."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from flyball.core.errors import (
    ContextExceeded,
    EngineError,
    FlyballError,
    MissingKey,
    ModelHTTPError,
    ModelRequestsForbidden,
    ModelUnavailable,
    UnexpectedModelBehavior,
)
from flyball.core.messages import ToolCall, user
from flyball.core.settings import ModelSettings
from flyball.engines.anthropic import AnthropicEngine, engine_for
from flyball.engines.wire.aio import Timeouts
from flyball.inference.engine import Engine
from flyball.inference.model_string import parse_model
from flyball.inference.permission import forbid_model_requests
from flyball.inference.registry import resolve_engine
from flyball.inference.request import Request
from flyball.inference.stream import PartStart, StreamEvent, TextDelta, ToolCallDelta, collect
from flyball.testing.conformance import EngineConformance
from tests.engines.anthropic.wire import (
    MODEL,
    answering,
    body,
    engine_at,
    events,
    framed,
    sse,
    text,
    tool_use,
)
from tests.engines.loopback import Answer, Loopback, Received, as_json
from tests.patience import PATIENCE

HELLO = Request((user("Hello"),))


def repeating(got: Received) -> Answer:
    """Repeats the prompt, whole or in odd pieces."""
    return answering(body(text(f"You said: {got.json['messages'][-1]['content']}")), chunk=11)(got)


class TestConformance(EngineConformance):
    @pytest.fixture(autouse=True)
    async def _serve(self) -> AsyncGenerator[None]:
        async with (
            Loopback(repeating) as self.server,
            Loopback(lambda _: Answer([], end="stall")) as self.silent,
            Loopback(lambda _: _error(401, "authentication_error", "invalid x-api-key")) as self.refusing,
        ):
            yield

    def make_engine(self) -> Engine:
        return engine_at(self.server)

    def make_stalled_engine(self) -> Engine:
        return engine_at(self.silent)

    def make_failing_engine(self) -> Engine:
        return engine_at(self.refusing)


class TestLongAnswers(TestConformance):
    """The same where the answer may take so long that it is always streamed."""

    def make_request(self, prompt: str) -> Request:
        return Request((user(prompt),), settings=ModelSettings(max_tokens=64_000))


def _error(status: int, kind: str, message: str, **headers: str) -> Answer:
    told = {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_7"}
    return as_json(told, status, request_id="req_7", **headers)


async def failure(answer: Answer, *, stream: bool, **more: Any) -> FlyballError:
    async with Loopback(lambda _: answer) as server:
        engine = engine_at(server, **more)
        try:
            with pytest.raises(FlyballError) as caught:
                await (collect(engine.stream(HELLO)) if stream else engine.infer(HELLO))
        finally:
            await engine.aclose()
    return caught.value


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("answer", "kind", "retryable", "details"),
    [
        (_error(429, "rate_limit_error", "No.", retry_after="7"), ModelHTTPError, True, {"retry_after": 7.0}),
        (_error(529, "overloaded_error", "Overloaded"), ModelHTTPError, True, {}),
        (_error(500, "api_error", "Internal server error"), ModelHTTPError, True, {}),
        (_error(503, "api_error", "Unavailable"), ModelHTTPError, True, {}),
        (
            _error(400, "invalid_request_error", "prompt is too long: 205000 tokens > 200000 maximum"),
            ContextExceeded,
            False,
            {},
        ),
        (_error(413, "request_too_large", "Request exceeds the maximum size"), ContextExceeded, False, {}),
        (
            _error(400, "invalid_request_error", "Your credit balance is too low to access the API."),
            ModelHTTPError,
            False,
            {},
        ),
        (_error(402, "billing_error", "Payment is required."), ModelHTTPError, False, {}),
        (_error(401, "authentication_error", "invalid x-api-key: sk-secret"), ModelHTTPError, False, {}),
        (_error(403, "permission_error", "Not for you."), ModelHTTPError, False, {}),
        (_error(404, "not_found_error", "model: claude-9"), ModelUnavailable, False, {}),
        (Answer(b"<html>Bad gateway</html>", 502), ModelHTTPError, True, {"request_id": None}),
    ],
)  # fmt: skip
async def test_what_the_server_refuses(
    answer: Answer, kind: type[FlyballError], retryable: bool, details: dict[str, Any], stream: bool
) -> None:
    error = await failure(answer, stream=stream)
    assert type(error) is kind
    assert error.retryable is retryable
    assert "sk-secret" not in f"{error} {error.details}"
    expected = {"request_id": "req_7", "model": MODEL, "provider": "anthropic", "status_code": answer.status}
    for name, value in {**expected, **details}.items():
        assert error.details.get(name) == value


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        Answer(b'{"type": "message", "content": [', headers={"Content-Type": "application/json"}),
        Answer(b"<html>", headers={"Content-Type": "application/json"}),
        Answer([b"event: message_start\ndata: {broken\n\n"], headers={"Content-Type": "text/event-stream"}),
    ],
)
async def test_what_is_no_answer(answer: Answer, stream: bool) -> None:
    assert type(await failure(answer, stream=stream)) is UnexpectedModelBehavior


async def test_a_server_that_is_not_there() -> None:
    async with Loopback(lambda _: Answer()) as server:
        engine = engine_at(server)
    with pytest.raises(EngineError, match="anthropic at 127") as caught:
        await engine.infer(HELLO)
    assert caught.value.retryable


async def test_a_server_that_is_silent_for_too_long() -> None:
    for stream in (False, True):
        error = await failure(Answer([], end="stall"), stream=stream, timeouts=Timeouts(idle=0.05))
        assert type(error) is EngineError
        assert error.retryable


@pytest.mark.parametrize("end", ["reset", "close"])
async def test_a_stream_that_breaks_has_given_what_came(end: Any) -> None:
    told = events(body(text("So."), tool_use("look", at=1)))
    broken = sse(*told[:9], chunk=13, end=end)
    given: list[StreamEvent] = []
    async with Loopback(lambda _: broken) as server:
        engine = engine_at(server)
        with pytest.raises(EngineError if end == "reset" else UnexpectedModelBehavior):  # noqa: PT012
            async for event in engine.stream(HELLO):
                given.append(event)
        await engine.aclose()
    assert given[:2] == [TextDelta(0, "S"), TextDelta(0, "o.")]
    assert PartStart(1, ToolCall("toolu_1", "look", "")) in given
    assert ToolCallDelta(1, '{"at') in given


async def test_an_error_in_a_stream_comes_after_what_was_said() -> None:
    told = [*events(body(text("So.")))[:4], {"type": "error", "error": {"type": "overloaded_error"}}]
    given: list[StreamEvent] = []
    async with Loopback(lambda _: sse(*told)) as server:
        engine = engine_at(server)
        with pytest.raises(ModelHTTPError) as caught:  # noqa: PT012
            async for event in engine.stream(HELLO):
                given.append(event)
        await engine.aclose()
    assert given == [TextDelta(0, "S")]
    assert (caught.value.status_code, caught.value.retryable) == (529, True)


async def test_closing_a_stream_tells_the_server() -> None:
    begun = Answer(
        [framed(events(body(text("So.")))[:4])], end="stall", headers={"Content-Type": "text/event-stream"}
    )
    async with Loopback(lambda _: begun) as server:
        engine = engine_at(server)
        stream = engine.stream(HELLO)
        assert await anext(stream) == TextDelta(0, "S")
        await stream.aclose()
        async with asyncio.timeout(PATIENCE):
            await server.gone.wait()
        await engine.aclose()


async def test_an_answer_that_may_take_long_is_streamed_to_who_wants_it_whole() -> None:
    async with Loopback(answering(body(text("So.")))) as server:
        engine = engine_at(server)
        for most in (21_000, 64_000):
            result = await engine.infer(Request(HELLO.messages, settings=ModelSettings(max_tokens=most)))
            assert result.content == "So."
        await engine.infer(Request(HELLO.messages, settings=ModelSettings(options={"max_tokens": 30_000})))
        await engine.aclose()
    assert [got.json.get("stream", False) for got in server.received] == [False, True, True]


# Who asks, and whom


async def _headers(engine: AnthropicEngine, server: Loopback) -> dict[str, str]:
    await engine.infer(HELLO)
    await engine.aclose()
    return server.received[-1].headers


async def test_a_key_a_token_and_an_address_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback(repeating) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", f"{server.url}/")
        monkeypatch.setenv("ANTHROPIC_AUTH_TOKEN", "token-1")
        told = await _headers(AnthropicEngine(MODEL), server)
        assert told["authorization"] == "Bearer token-1"
        assert "x-api-key" not in told
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key-1")
        told = await _headers(AnthropicEngine(MODEL), server)
        assert told["x-api-key"] == "key-1"
        assert "authorization" not in told
        made = resolve_engine(f"anthropic:{MODEL}")
        assert isinstance(made, AnthropicEngine)
        told = await _headers(made, server)
    assert server.received[-1].path == "/v1/messages"
    assert told["anthropic-version"] == "2026-10-21"
    assert "anthropic-beta" not in told


async def test_headers_and_features_of_ones_own() -> None:
    async with Loopback(repeating) as server:
        more = {"anthropic-version": "2023-06-01", "X-Team": "a"}
        told = await _headers(engine_at(server, headers=more, betas=["x-1", "y-2"]), server)
    assert told["anthropic-version"] == "2023-06-01"
    assert told["x-team"] == "a"
    assert told["anthropic-beta"] == "x-1,y-2"


def test_without_a_key() -> None:
    with pytest.raises(MissingKey, match="ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN"):
        engine_for(parse_model(f"anthropic:{MODEL}"))


async def test_nothing_is_asked_where_no_model_may_be() -> None:
    async with Loopback(repeating) as server:
        engine = engine_at(server)
        with forbid_model_requests(), pytest.raises(ModelRequestsForbidden):
            await engine.infer(HELLO)
        assert not server.received


def test_what_is_known_of_the_model() -> None:
    engine = AnthropicEngine(MODEL, api_key="k")
    info = engine.model_info()
    assert (info.name, info.provider, info.context_window) == (MODEL, "anthropic", 1_000_000)
    assert engine.profile.native_schema

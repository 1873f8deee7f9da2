"""Statuses and bodies as errors of the taxonomy: what may be tried again, after how long, and what it was."""

# ruff: noqa: E501 - what servers say is a line each

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import (
    ContentFilterError,
    ContextExceeded,
    EngineError,
    FlyballError,
    InferenceFailure,
    ModelHTTPError,
    ModelUnavailable,
)
from flyball.engines.wire.failures import http_failure, network_failure, retry_after, stream_failure


def failure(status: int, body: Any = b"", **headers: str) -> FlyballError:
    told = {name.replace("_", "-"): value for name, value in headers.items()}
    data = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return http_failure(status, told, data, provider="openai", model="m")


CASES: list[tuple[int, Any, type[FlyballError], bool]] = [
    (429, {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}, ModelHTTPError, True),
    (429, {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}, ModelHTTPError, False),
    (400, {"error": {"message": "Your credit balance is too low"}}, ModelHTTPError, False),
    (402, {"error": {"message": "Payment required"}}, ModelHTTPError, False),
    (408, b"", ModelHTTPError, True),
    (409, b"", ModelHTTPError, True),
    (500, b"oops", ModelHTTPError, True),
    (501, b"", ModelHTTPError, False),
    (502, b"<html>Bad gateway</html>", ModelHTTPError, True),
    (503, b"", ModelHTTPError, True),
    (504, b"", ModelHTTPError, True),
    (529, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, ModelHTTPError, True),
    (401, {"error": {"message": "Incorrect API key"}}, ModelHTTPError, False),
    (403, {"error": {"message": "not allowed"}}, ModelHTTPError, False),
    (404, {"error": {"message": "The model `gpt-9` does not exist", "code": "model_not_found"}}, ModelUnavailable, False),
    (400, {"error": {"message": "This model's maximum context length is 8192 tokens"}}, ContextExceeded, False),
    (400, {"error": {"code": "context_length_exceeded", "message": "too long"}}, ContextExceeded, False),
    (400, {"type": "error", "error": {"message": "prompt is too long: 9 tokens > 8 maximum"}}, ContextExceeded, False),
    (413, {"error": {"type": "request_too_large", "message": "Request exceeds the maximum size"}}, ContextExceeded, False),
    (400, [{"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}], ContextExceeded, False),
    (400, {"error": {"message": "request (9) exceeds the available context size (8)", "type": "exceed_context_size_error"}}, ContextExceeded, False),
    (400, {"error": {"message": "filtered", "code": "content_filter"}}, ContentFilterError, False),
    (400, {"error": {"message": "Invalid value: 'x'"}}, ModelHTTPError, False),
    (422, {"detail": [{"loc": ["body"], "msg": "field required"}]}, ModelHTTPError, False),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "again"), CASES)
def test_cases(status: int, body: Any, kind: type[FlyballError], again: bool) -> None:
    error = failure(status, body)
    assert type(error) is kind, error
    assert error.retryable is again
    assert error.details["status_code"] == status
    record = error.record()
    assert msgspec.json.decode(msgspec.json.encode(record), type=type(record)) == record


def test_what_an_error_tells() -> None:
    body = {"error": {"message": "Slow down"}}
    error = failure(429, body, retry_after="7", x_request_id="req_9")
    assert str(error) == "openai answered 429 for 'm': Slow down"
    assert isinstance(error, ModelHTTPError)
    assert (error.status_code, error.retry_after, error.model_name) == (429, 7.0, "m")
    assert error.details["request_id"] == "req_9"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "2.5"}, 2.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"Retry-After": "Thu, 01 Jan 1970 00:00:30 GMT"}, 20.0),
        ({"retry-after": "Thu, 01 Jan 1970 00:00:01 GMT"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after-ms": "nan", "retry-after": "3"}, 3.0),
        ({}, None),
    ],
)
def test_when_to_ask_again(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=10.0) == seconds


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("Please try again in 1m2.5s.", 62.5),
        ("try again in 1h2m3s", 3723.0),
        ("try again in 20ms", 0.02),
        ('{"retryDelay": "34s"}', 34.0),
        ("try again in a while", None),
    ],
)
def test_when_to_ask_again_in_words(said: str, seconds: float | None) -> None:
    assert failure(429, said.encode()).details.get("retry_after") == seconds


@given(status=st.integers(300, 599), body=st.binary(max_size=200))
def test_no_reply_does_worse_than_fail(status: int, body: bytes) -> None:
    error = failure(status, body)
    assert isinstance(error, InferenceFailure)
    assert str(error).startswith(f"openai answered {status}")


def test_failures_in_a_stream() -> None:
    told = {"type": "overloaded_error", "message": "Overloaded"}
    error = stream_failure(told, provider="anthropic", model="claude", request_id="r")
    assert isinstance(error, ModelHTTPError)
    assert (error.retryable, error.status_code, error.details["request_id"]) == (True, 529, "r")
    assert str(error) == "anthropic broke off its answer for 'claude': Overloaded"


def test_failures_of_the_network() -> None:
    slow = network_failure(TimeoutError(), "vllm", "http://gpu:8000/v1?key=x")
    assert str(slow) == "vllm at gpu:8000 took too long (TimeoutError)"
    broke = network_failure(ConnectionResetError("reset"), "openai", "https://api.example.org/v1")
    assert str(broke) == "the connection to openai at api.example.org:443 broke: ConnectionResetError: reset"
    assert all(isinstance(error, EngineError) and error.retryable for error in (slow, broke))
    assert "key" not in slow.details["url"]

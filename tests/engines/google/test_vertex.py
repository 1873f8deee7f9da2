"""Gemini on Vertex AI: where it is, and who asks."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from flyball.core.errors import ConfigurationFailure, MissingKey, ModelHTTPError, UserError
from flyball.core.messages import Image, user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolDefinition
from flyball.engines.google import GoogleEngine, engine_for
from flyball.engines.google.places import gemini_url, vertex_url
from flyball.inference.model_string import parse_model
from flyball.inference.request import OutputObject, Request
from flyball.inference.stream import collect
from tests.engines.google.accounts import Tokens, write_account
from tests.engines.google.sdk import as_sdk_sends, plain
from tests.engines.google.serving import answer, replying
from tests.engines.loopback import Loopback, as_json

ASKED = Request((user("hi"),))
GOOD = replying(lambda _: answer({"text": "fine"}))


@pytest.fixture(autouse=True)
def nothing_by_default(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of this machine's are found, nor asked of the network."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")


async def test_a_token_is_fetched_once_and_used_for_many_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = Tokens(GOOD)
    async with Loopback(tokens) as server:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_account(tmp_path, server)))
        engine = GoogleEngine("gemini-3.8-flash", vertex=True, location="europe-west4", base_url=server.url)
        results = await asyncio.gather(
            *[engine.infer(ASKED) for _ in range(8)], collect(engine.stream(ASKED))
        )
        await engine.infer(ASKED)
        await engine.aclose()
    assert {result.content for result in results} == {"fine"}
    assert tokens.given == 1
    asked = [got for got in server.received if got.path != "/token"]
    assert {got.headers["authorization"] for got in asked} == {"Bearer token-1"}
    assert not any("x-goog-api-key" in got.headers for got in asked)
    model = "/v1beta1/projects/their-project/locations/europe-west4/publishers/google/models/gemini-3.8-flash"
    assert {got.path for got in asked} == {
        f"{model}:generateContent",
        f"{model}:streamGenerateContent?alt=sse",
    }


async def test_a_token_that_ends_is_renewed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = Tokens(GOOD, lasting=30)
    async with Loopback(tokens) as server:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_account(tmp_path, server)))
        engine = GoogleEngine("gemini-3.8-flash", vertex=True, project="p", base_url=server.url)
        for _ in range(3):
            await engine.infer(ASKED)
        await engine.aclose()
    sent = [got.headers["authorization"] for got in server.received if got.path != "/token"]
    assert sent == ["Bearer token-1", "Bearer token-2", "Bearer token-3"]


async def test_the_environment_says_whose_and_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback(Tokens(GOOD)) as server:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_account(tmp_path, server)))
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
        monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "us-central1")
        engine = GoogleEngine("gemini-3.8-flash", vertex=True, base_url=server.url)
        await engine.infer(ASKED)
        await engine.aclose()
    assert "/projects/my-project/locations/us-central1/" in server.received[-1].path


async def test_without_credentials() -> None:
    engine = engine_for(parse_model("vertex:gemini-3.8-flash"))
    assert engine.model_info().provider == "vertex"
    with pytest.raises(MissingKey, match="GOOGLE_APPLICATION_CREDENTIALS"):
        await engine.infer(ASKED)


async def test_without_a_project() -> None:
    async def mine() -> Mapping[str, str]:
        return {"Authorization": "Bearer mine"}

    async with Loopback(GOOD) as server:
        engine = GoogleEngine("gemini-3.8-flash", vertex=True, credentials=mine, base_url=server.url)
        with pytest.raises(ConfigurationFailure, match="GOOGLE_CLOUD_PROJECT"):
            await engine.infer(ASKED)
        whole = GoogleEngine(
            "projects/p/locations/l/endpoints/7", vertex=True, credentials=mine, base_url=server.url
        )
        await whole.infer(ASKED)
        await whole.aclose()
    assert server.received[0].path == "/v1beta1/projects/p/locations/l/endpoints/7:generateContent"
    assert server.received[0].headers["authorization"] == "Bearer mine"


async def test_a_key_of_vertex_has_its_own_project() -> None:
    async with Loopback(GOOD) as server:
        engine = GoogleEngine("gemini-3.8-flash", vertex=True, api_key="express", base_url=server.url)
        await engine.infer(ASKED)
        await engine.aclose()
    (got,) = server.received
    assert got.path == "/v1beta1/publishers/google/models/gemini-3.8-flash:generateContent"
    assert got.headers["x-goog-api-key"] == "express"
    with pytest.raises(UserError, match="give one of them"):
        GoogleEngine("m", api_key="k", credentials=lambda: asyncio.sleep(0, {}))


async def test_no_token_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = {"error": {"code": 401, "message": "token-1 is not valid", "status": "UNAUTHENTICATED"}}
    async with Loopback(Tokens(lambda _: as_json(refused, 401))) as server:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(write_account(tmp_path, server)))
        engine = GoogleEngine("gemini-3.8-flash", vertex=True, base_url=server.url)
        with pytest.raises(ModelHTTPError) as caught:
            await engine.infer(ASKED)
        await engine.aclose()
    assert "token-1" not in f"{caught.value} {caught.value.details}"
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
def test_places(location: str, host: str) -> None:
    path = f"v1beta1/projects/p/locations/{location}/publishers/google/models/m"
    assert vertex_url("m", "p", location) == f"https://{host}/{path}"
    assert vertex_url("publishers/google/models/m", "p", location) == f"https://{host}/{path}"


def test_gemini_is_elsewhere() -> None:
    assert gemini_url("gemini-9") == "https://generativelanguage.googleapis.com/v1beta/models/gemini-9"
    assert gemini_url("models/a b?c", "http://x/") == "http://x/v1beta/models/a%20b%3Fc"


async def test_what_is_sent_is_what_vertex_takes() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    request = Request(
        (user(["hi", Image("https://example.org/x")]),),
        (ToolDefinition("look", schema),),
        ModelSettings(reasoning_effort="low"),
        output=OutputObject(schema),
    )
    async with Loopback(GOOD) as server:
        engine = GoogleEngine("gemini-3.8-flash", vertex=True, api_key="k", base_url=server.url)
        await engine.infer(request)
        await engine.aclose()
    body = server.received[0].json
    assert as_sdk_sends(body, vertex=True) == plain(body)

"""Claude on Vertex AI: another address, the version in the body, Google's credentials; else the same."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest
from anthropic.lib.vertex import AsyncAnthropicVertex
from anthropic.types import Message

from flyball.core.errors import ConfigurationFailure, MissingKey, ModelHTTPError, ModelRequestsForbidden
from flyball.core.messages import system, user
from flyball.core.settings import ModelSettings
from flyball.engines.vertex_anthropic import VertexAnthropicEngine, VertexCodec
from flyball.engines.wire.google_auth import GoogleCredentials
from flyball.inference.engine import Engine
from flyball.inference.permission import forbid_model_requests
from flyball.inference.registry import resolve_engine
from flyball.inference.request import Request, Result
from flyball.inference.stream import collect
from flyball.testing.conformance import EngineConformance
from tests.engines.anthropic.wire import MODEL, answering, body, text
from tests.engines.loopback import Answer, Loopback, Received, as_json

HELLO = Request((system("Be brief."), user("Hello")))
PATH = f"/v1/projects/my-project/locations/us-east5/publishers/anthropic/models/{MODEL}"


async def proofs() -> Mapping[str, str]:
    return {"Authorization": "Bearer token-secret"}


def engine_at(server: Loopback, model: str = MODEL, **more: Any) -> VertexAnthropicEngine:
    told: dict[str, Any] = {"project": "my-project", "region": "us-east5", "credentials": proofs, **more}
    return VertexAnthropicEngine(model, base_url=f"{server.url}/v1", **told)


def repeating(got: Received) -> Answer:
    return answering(body(text(f"You said: {got.json['messages'][-1]['content']}")), chunk=11)(got)


class TestConformance(EngineConformance):
    @pytest.fixture(autouse=True)
    async def _serve(self) -> AsyncGenerator[None]:
        async with (
            Loopback(repeating) as self.server,
            Loopback(lambda _: Answer([], end="stall")) as self.silent,
            Loopback(lambda _: as_json({"error": {"code": 403, "message": "no"}}, 403)) as self.refusing,
        ):
            yield

    def make_engine(self) -> Engine:
        return engine_at(self.server)

    def make_stalled_engine(self) -> Engine:
        return engine_at(self.silent)

    def make_failing_engine(self) -> Engine:
        return engine_at(self.refusing)


async def test_what_we_send_is_what_the_client_would_send() -> None:
    asked: Any = {
        "model": MODEL,
        "max_tokens": 20_000,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hello"}],
    }
    async with Loopback(repeating) as server:
        engine = engine_at(server)
        mine = [await engine.infer(HELLO), await collect(engine.stream(HELLO))]
        await engine.aclose()
        async with AsyncAnthropicVertex(
            project_id="my-project",
            region="us-east5",
            access_token="token-secret",
            base_url=f"{server.url}/v1",
        ) as client:
            create: Any = client.messages.create
            theirs: Message = await create(**asked)
            async with client.messages.stream(**asked) as stream:
                await stream.until_done()
        one, other, *received = server.received
    assert [result.content for result in mine] == ["You said: Hello"] * 2
    assert theirs.content[0].to_dict()["text"] == "You said: Hello"
    for sent, expected in zip((one, other), received, strict=True):
        assert (sent.path, sent.json) == (expected.path, expected.json)
        assert sent.headers["authorization"] == expected.headers["authorization"]
    assert one.path == f"{PATH}:rawPredict"
    assert other.path == f"{PATH}:streamRawPredict"
    assert one.json["anthropic_version"] == "2026-10-21"
    assert "model" not in one.json
    assert "anthropic-version" not in one.headers


def test_a_temperature_is_taken_by_the_version_before() -> None:
    codec = VertexCodec(
        "https://x/v1", "claude-sonnet-4-5@20250929", project="p", region="global", betas=["b-1"]
    )
    call = codec.call(Request((user("Hi"),), settings=ModelSettings(temperature=0.0)), stream=False)
    assert b'"anthropic_version":"vertex-2023-10-16"' in (call.body or b"")
    assert call.url.endswith(
        "/locations/global/publishers/anthropic/models/claude-sonnet-4-5@20250929:rawPredict"
    )
    assert call.headers["anthropic-beta"] == "b-1"


async def test_a_failure_shows_no_token() -> None:
    async with Loopback(lambda _: as_json({"error": {"message": "bad token-secret"}}, 401)) as server:
        engine = engine_at(server)
        with pytest.raises(ModelHTTPError, match="vertex-anthropic answered 401") as caught:
            await engine.infer(HELLO)
        await engine.aclose()
    assert "token-secret" not in f"{caught.value} {caught.value.details}"


# Where


@pytest.mark.parametrize(
    ("region", "host"),
    [
        ("us-east5", "us-east5-aiplatform.googleapis.com"),
        ("global", "aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
    ],
)
async def test_the_address_is_that_of_the_vendors_client(region: str, host: str) -> None:
    engine = VertexAnthropicEngine(MODEL, project="p", region=region, credentials=proofs)
    call = engine._codec.call(HELLO, stream=False)  # pyright: ignore[reportPrivateUsage]
    async with AsyncAnthropicVertex(project_id="p", region=region, access_token="t") as client:
        assert call.url.startswith(f"{client.base_url}".rstrip("/") + "/projects/p/")
    assert f"//{host}/" in call.url


async def test_project_and_region_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    async with Loopback(repeating) as server:
        monkeypatch.setenv("ANTHROPIC_VERTEX_BASE_URL", f"{server.url}/v1/")
        monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "my-project")
        monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "europe-west1")
        monkeypatch.setenv("CLOUD_ML_REGION", "us-east5")
        engine = VertexAnthropicEngine(MODEL, credentials=proofs)
        await engine.infer(HELLO)
        await engine.aclose()
        assert server.received[0].path == f"{PATH}:rawPredict"
        made = resolve_engine(f"vertex-anthropic:{MODEL}")
        assert made.model_info().provider == "vertex-anthropic"
        with pytest.raises(MissingKey, match="gcloud auth application-default login"):
            await made.infer(HELLO)
        assert len(server.received) == 1


def test_without_a_region() -> None:
    with pytest.raises(ConfigurationFailure, match="CLOUD_ML_REGION or GOOGLE_CLOUD_LOCATION"):
        VertexAnthropicEngine(MODEL, project="p")


def test_without_a_project_and_credentials_that_cannot_tell() -> None:
    with pytest.raises(ConfigurationFailure, match="GOOGLE_CLOUD_PROJECT"):
        VertexAnthropicEngine(MODEL, region="global", credentials=proofs)


class _Known(GoogleCredentials):
    """Credentials that know their project, or do not."""

    def __init__(self, known: str | None) -> None:
        super().__init__()
        self.known = known

    async def project(self) -> str | None:
        return self.known

    async def __call__(self) -> Mapping[str, str]:
        return await proofs()


async def _whole(engine: Engine) -> Result:
    return await engine.infer(HELLO)


async def _streamed(engine: Engine) -> Result:
    return await collect(engine.stream(HELLO))


async def test_where_nobody_names_the_project_it_is_that_of_the_credentials() -> None:
    async with Loopback(repeating) as server:
        for ask in (_whole, _streamed):
            engine = engine_at(server, project=None, credentials=_Known("my-project"))
            with forbid_model_requests(), pytest.raises(ModelRequestsForbidden):
                await ask(engine)
            await ask(engine)
            await engine.aclose()
        assert [got.path for got in server.received] == [f"{PATH}:rawPredict", f"{PATH}:streamRawPredict"]
        with pytest.raises(ConfigurationFailure, match="which project pays"):
            await engine_at(server, project=None, credentials=_Known(None)).infer(HELLO)

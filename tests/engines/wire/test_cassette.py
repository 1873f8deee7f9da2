"""Cassettes play what was recorded, and hold no secret."""

# ruff: noqa: ASYNC240 - small files

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flyball.core.errors import EngineError, UserError
from flyball.core.messages import user
from flyball.engines.openai import OpenAIEngine
from flyball.engines.wire.aio import AioTransport
from flyball.engines.wire.cassette import Cassette
from flyball.engines.wire.transport import Call, Transport
from flyball.inference.request import Request
from flyball.inference.stream import StreamEvent
from tests.engines.loopback import Answer, Loopback, as_json, sse
from tests.engines.openai.answers import completion

KEY = "sk-a-very-secret-key"
REQUEST = Request((user("Hello"),))


@pytest.fixture
def tape(tmp_path: Path) -> Path:
    return tmp_path / "tapes" / "hello.jsonl"


def engine(url: str, transport: Transport) -> OpenAIEngine:
    return OpenAIEngine(
        "gpt-4o",
        api="chat",
        base_url=f"{url}/v1",
        api_key=KEY,
        transport=transport,
        headers={"X-Tenant": "acme"},
    )


async def events(asked: OpenAIEngine) -> list[StreamEvent]:
    return [event async for event in asked.stream(REQUEST)]


def chunk(text: str, reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"delta": {"content": text}, "finish_reason": reason}]}


async def test_what_was_recorded_is_played(tape: Path) -> None:
    answers = [
        as_json(completion({"content": f"You sent {KEY}"}), x_request_id="req_1"),
        sse(chunk("Grüße "), chunk("\U0001f980", "stop"), chunk=7),
        as_json({"error": {"message": "slow down"}}, 429, retry_after="3"),
    ]
    async with Loopback(lambda _: answers[len(server.received) - 1]) as server:
        recorder = engine(server.url, Cassette(tape))
        first = await recorder.infer(REQUEST)
        streamed = await events(recorder)
        with pytest.raises(EngineError) as caught:
            await recorder.infer(REQUEST)
        await recorder.aclose()
    url = server.url
    written = tape.read_text()
    assert KEY not in written
    assert "acme" not in written
    player = engine(url, Cassette(tape, mode="play"))
    again = await player.infer(REQUEST)
    assert again.content == first.content.replace(KEY, "[hidden]")
    assert again.request_id == "req_1"
    assert await events(player) == streamed
    with pytest.raises(EngineError) as played:
        await player.infer(REQUEST)
    assert played.value.details == caught.value.details
    with pytest.raises(UserError, match=r"hello\.jsonl has no reply for POST"):
        await player.infer(REQUEST)


async def test_a_reply_that_broke_breaks_again(tape: Path) -> None:
    broken = Answer([b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'], end="reset")
    async with Loopback(lambda _: broken) as server:
        recorder = engine(server.url, Cassette(tape, AioTransport()))
        with pytest.raises(EngineError):
            await events(recorder)
        await recorder.aclose()
    with pytest.raises(EngineError, match="broke"):
        await events(engine(server.url, Cassette(tape)))


async def test_what_was_not_recorded_never_goes_out(tape: Path) -> None:
    async with Loopback(lambda _: as_json(completion({"content": "hi"}))) as server:
        recorder = engine(server.url, Cassette(tape))
        await recorder.infer(REQUEST)
        await recorder.aclose()
        player = engine(server.url, Cassette(tape))
        with pytest.raises(UserError, match="the body differs in messages"):
            await player.infer(Request((user("Other"),)))
        with pytest.raises(UserError, match="none to that address"):
            Cassette(tape).find(Call("http://elsewhere/", {}))
        assert len(server.received) == 1


async def test_the_environment_decides_for_all(tape: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYBALL_CASSETTES", "play")
    with pytest.raises(UserError, match="there is no cassette"):
        await engine("http://127.0.0.1:9", Cassette(tape)).infer(REQUEST)
    monkeypatch.setenv("FLYBALL_CASSETTES", "maybe")
    with pytest.raises(UserError, match="'play', 'record' or 'once'"):
        Cassette(tape)


async def test_a_file_that_is_no_cassette(tape: Path) -> None:
    tape.parent.mkdir()
    tape.write_text("{nonsense")
    with pytest.raises(UserError, match="is no cassette"):
        await engine("http://127.0.0.1:9", Cassette(tape)).infer(REQUEST)

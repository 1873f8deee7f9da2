"""Servers repeat what they are sent; no error repeats a key."""

from __future__ import annotations

import msgspec
import pytest

from flyball import Agent
from flyball.core.errors import ConfigurationFailure, FlyballError, UnexpectedModelBehavior
from flyball.engines.openai import OpenAIEngine
from flyball.engines.wire.engine import Identity
from flyball.engines.wire.transport import Call
from flyball.orchestrate.journal import MemoryJournal
from tests.engines.every_engine import ENGINES, KEY, streamed, whole
from tests.engines.loopback import Answer, Loopback, as_json, sse

_TOLD = {"message": f"Incorrect API key provided: {KEY}"}
REPLIES = {
    "refused": as_json({"error": _TOLD}, 401),
    "failed, with a good status": as_json({"error": _TOLD}),
    "failed in a stream": sse({"type": "error", "error": _TOLD}, ended=False),
    "a page": Answer(f"<p>{KEY}</p>".encode(), headers={"Content-Type": "text/html"}),
    "a page that is cut in the middle of the key": Answer(b"x" * 490 + KEY.encode()),
    "sent elsewhere": Answer(b"", 302, {"Location": f"http://elsewhere/{KEY}"}),
}


@pytest.mark.parametrize("reply", REPLIES)
@pytest.mark.parametrize("name", ENGINES)
async def test_no_error_has_the_key(name: str, reply: str) -> None:
    async with Loopback(lambda _: REPLIES[reply]) as server:
        engine = ENGINES[name](server.url)
        for ask in (whole, streamed):
            with pytest.raises(FlyballError) as caught:
                await ask(engine)
            error = caught.value
            written = msgspec.json.encode(error.record()).decode() + str(error) + repr(error)
            assert KEY[:8] not in written
        await engine.aclose()


async def test_no_journal_has_the_key() -> None:
    async with Loopback(lambda _: as_json({"error": _TOLD})) as server:
        engine, journal = ENGINES["chat"](server.url), MemoryJournal()
        with pytest.raises(FlyballError, match=r"provided: \[hidden\]"):
            await Agent(engine).run("Hello", journal=journal, loop_id="a")
        assert KEY not in repr(await journal.read("a"))


async def test_a_list_of_models_that_is_none() -> None:
    async with Loopback(lambda _: Answer(KEY.encode())) as server:
        engine = OpenAIEngine(server="openai-compatible", base_url=server.url, api_key=KEY)
        with pytest.raises(UnexpectedModelBehavior) as caught:
            await engine.models()
        assert caught.value.body == "[hidden]"
        await engine.aclose()


@pytest.mark.parametrize("name", ENGINES)
@pytest.mark.parametrize(
    "address",
    [
        f"http://me:{KEY}@127.0.0.1/v1",
        f"http://127.0.0.1/v1?key={KEY}",
        f"http://{KEY}@127.0.0.1:99999",
        "ftp://a",
    ],
)
def test_an_address_with_a_key_in_it_is_refused_and_not_repeated(name: str, address: str) -> None:
    with pytest.raises(ConfigurationFailure) as caught:
        ENGINES[name](address)
    assert KEY not in str(caught.value) + repr(caught.value.details)


def test_a_key_that_cannot_be_sent() -> None:
    with pytest.raises(ConfigurationFailure, match="'Authorization' has a line break"):
        OpenAIEngine("m", api_key=f"{KEY}\n{KEY}")


def test_what_is_shown_of_a_call_and_of_who_asks() -> None:
    headers = {"Authorization": f"Bearer {KEY}"}
    for shown in (Call("http://a/", headers, b"{}"), Identity(headers)):
        told = repr(shown) + repr(shown.__rich_repr__())
        assert "Authorization" in told
        assert KEY not in told

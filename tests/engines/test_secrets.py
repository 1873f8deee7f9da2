"""Servers repeat what they are sent; no error repeats a key."""

from __future__ import annotations

import msgspec
import pytest

from flyball import Agent
from flyball.core.errors import FlyballError, UnexpectedModelBehavior
from flyball.engines.openai import OpenAIEngine
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

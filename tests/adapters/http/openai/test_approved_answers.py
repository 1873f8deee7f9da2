"""An answer that a person approves reaches no client of `/v1` before that, streamed or not."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from openai import AsyncOpenAI

from flyball import Agent, MemoryJournal, System, tool
from flyball.core.signals import Signal, SignalType
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.recorded import send_signal
from tests.adapters.http.openai.asgi import App, Here, serve
from tests.adapters.http.openai.test_chat_client import ASK, client
from tests.orchestrate.test_output_approval import waits

REFUSED, APPROVED = "We are broke.", "Times are hard."


@tool
async def look() -> str:
    """Look out."""
    return "grey"


async def chat(asking: AsyncOpenAI, more: dict[str, Any]) -> tuple[str, str]:
    stream: Any = await asking.chat.completions.create(
        model="held", messages=ASK, stream=True, extra_body=more
    )
    chunks = [chunk async for chunk in stream]
    texts = [choice.delta.content or "" for chunk in chunks for choice in chunk.choices]
    return "".join([chunk.model_dump_json() for chunk in chunks]), "".join(texts)


async def respond(asking: AsyncOpenAI, more: dict[str, Any]) -> tuple[str, str]:
    stream: Any = await asking.responses.create(model="held", input="Rain?", stream=True, extra_body=more)
    whole = [event.model_dump_json() async for event in stream]
    return "".join(whole), "".join(whole)


async def whole_chat(asking: AsyncOpenAI, more: dict[str, Any]) -> tuple[str, str]:
    answer: Any = await asking.chat.completions.create(model="held", messages=ASK, extra_body=more)
    return answer.model_dump_json(), answer.choices[0].message.content


async def whole_response(asking: AsyncOpenAI, more: dict[str, Any]) -> tuple[str, str]:
    answer: Any = await asking.responses.create(model="held", input="Rain?", extra_body=more)
    return answer.model_dump_json(), answer.output_text


async def asked(ask: Any, url: str, more: dict[str, Any]) -> tuple[str, str]:
    async with client(url) as asking:
        return await ask(asking, more)


async def begun(journal: MemoryJournal) -> str:
    """The only loop, as soon as there is one."""
    while True:
        if loops := await journal.loops():
            return loops[0]
        await asyncio.sleep(0)


@pytest.mark.parametrize("live", [False, True], ids=["", "live"])
@pytest.mark.parametrize("tools", [(), (look,)], ids=["", "tools"])
@pytest.mark.parametrize("ask", [chat, respond, whole_chat, whole_response])
async def test_a_refused_answer_is_told_neither_as_the_answer_nor_as_a_thought(
    ask: Any, tools: tuple[Any, ...], live: bool
) -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine(REFUSED, APPROVED, chunk=3), name="held", tools=tools, output_approval=True)
    async with serve(App(Here({"held": System(agent, journal=journal)}))) as url:
        more = {"stream_options": {"live": True}} if live else {}
        task = asyncio.create_task(asked(ask, url, more))
        loop_id = await begun(journal)
        await waits(journal, loop_id)
        await send_signal(journal, loop_id, Signal(SignalType.REJECT, text="softer"))
        await waits(journal, loop_id, 2)
        await send_signal(journal, loop_id, Signal(SignalType.APPROVE))
        whole, text = await task
    assert "brok" not in whole
    assert APPROVED in text

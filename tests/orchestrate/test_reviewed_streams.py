"""What is told while an answer is written that interceptors look at first: nothing, and then what passed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import to_builtins

from flyball import Agent, PIIFilter, ResponseFilterChain, tool
from flyball.core.forms.semstreams import UserMessage, UserResponse
from flyball.core.messages import Message, Role, Text, Thinking, ToolCall, user
from flyball.inference.cut import events_of
from flyball.inference.request import Request
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.channels import Address, Dispatcher
from flyball.orchestrate.channels.following import told_of
from flyball.orchestrate.contracts import Mode, OutputContract, SystemRequest, SystemResponse
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.service import Service
from flyball.orchestrate.system import System
from tests.orchestrate.models import Script

SECRET = "bob@example.org"
THOUGHT = Message(Role.ASSISTANT, (Thinking(f"Who? {SECRET}."), Text(f"Write to {SECRET} now, please.")))
ASKS = Message(Role.ASSISTANT, (Text(f"I look for {SECRET}."), ToolCall("1", "look", "{}")))
ASK = SystemRequest(messages=(user("Whom?"),))


@tool
async def look() -> str:
    """Look."""
    return "seen"


def unheard(found: Any) -> None:
    """Nobody wants to be told."""


def chain(*, block: bool) -> ResponseFilterChain:
    return ResponseFilterChain(PIIFilter(block=block), on_violation=unheard)


class Waiting(Script):
    """Says nothing before somebody listens."""

    def __init__(self, *said: Any) -> None:
        super().__init__(*said)
        self.heard = asyncio.Event()

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        await self.heard.wait()
        async for event in super().stream(request):
            yield event


def clerk(*said: Any, block: bool = False, **options: Any) -> Agent[Any, Any]:
    return Agent(Script(*said), name="clerk", features=[chain(block=block)], **options)


async def gathered(course: AsyncIterator[UserResponse]) -> list[UserResponse]:
    return [one async for one in course]


async def on_a_channel(agent: Agent[Any, Any]) -> list[UserResponse]:
    script = agent.config.model
    assert isinstance(script, Script)
    engine = Waiting(*script.answers)
    agent = agent.clone(model=engine)
    async with LocalRuntime(MemoryJournal()) as runtime:
        service = Service([agent], runtime)
        try:
            taken = await Dispatcher(service).take(
                UserMessage(
                    message_id="1", channel_type="slack", channel_id="shop", user_id="ann", content="Whom?"
                )
            )
            address = Address("slack", "shop", "ann")
            course = told_of(service, address, taken.in_reply_to, calls=True)
            told = asyncio.ensure_future(gathered(course))
            for _ in range(20):
                await asyncio.sleep(0)
            engine.heard.set()
            return await told
        finally:
            await service.aclose()


@pytest.mark.parametrize("block", [False, True], ids=["redacted", "dropped"])
async def test_a_channel_is_told_what_passed_and_no_piece_of_what_came(*, block: bool) -> None:
    told = await on_a_channel(clerk(THOUGHT, "Nobody.", block=block))
    assert SECRET not in str([one.write() for one in told])
    assert not [one for one in told if one.type == "stream"]
    answer = "Nobody." if block else "Write to [email] now, please."
    assert told[-1].content == answer


@pytest.mark.parametrize("block", [False, True], ids=["redacted", "dropped"])
async def test_of_a_call_a_channel_is_told_what_passed(*, block: bool) -> None:
    told = await on_a_channel(clerk(ASKS, "Nobody.", block=block, tools=[look]))
    assert SECRET not in str([one.write() for one in told])
    asked = [one for one in told if one.content == "look {}"]
    blocks = [[block.content for block in one.blocks] for one in asked]
    assert blocks == ([] if block else [["I look for [email].", "look"]])


async def test_where_nobody_looks_at_answers_a_channel_is_told_the_pieces() -> None:
    told = await on_a_channel(Agent(Script("Write now."), name="clerk"))
    assert "".join([one.content for one in told if one.type == "stream"]) == "Write now."


def parts_of(pieces: list[Any]) -> str:
    return str([to_builtins(one, enc_hook=repr) for one in pieces])


OBJECT = {"type": "object"}
REQUESTS: dict[str, tuple[SystemRequest, dict[str, Any]]] = {
    "a chat": (ASK, {}),
    "with tools": (ASK, {"tools": [look]}),
    "phases": (
        SystemRequest(messages=(user("Whom?"),), mode=Mode.STRUCTURED, output=OutputContract(schema=OBJECT)),
        {"tools": [look]},
    ),
}


@pytest.mark.parametrize("block", [False, True], ids=["redacted", "dropped"])
@pytest.mark.parametrize("request_", REQUESTS)
async def test_a_systems_stream_has_what_passed(request_: str, *, block: bool) -> None:
    request, options = REQUESTS[request_]
    said: list[Any] = [ASKS, THOUGHT] if options else [THOUGHT]
    if request.mode is Mode.STRUCTURED:
        said = [f'{{"to": "{SECRET}"}}']
    agent = clerk(*said, *['{"to": "nobody"}'] * 4, block=block, **options)
    *pieces, last = [piece async for piece in System(agent).stream(request)]
    assert isinstance(last, SystemResponse)
    assert last.error is None
    assert SECRET not in parts_of([*pieces, last])
    assert last.content
    assert last.content in parts_of(pieces)


async def test_what_broke_off_before_anybody_looked_is_nobodys_answer() -> None:
    class Broken(Script):
        async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
            for event in list(events_of(self._result(request).message, 3, "r"))[:-2]:
                yield event
            raise OSError("line is down")

    journal = MemoryJournal()
    agent = Agent(Broken(f"Write to {SECRET} now."), features=[chain(block=False)])
    *pieces, last = [piece async for piece in System(agent, journal=journal).stream(ASK)]
    assert isinstance(last, SystemResponse)
    assert last.error is not None
    assert (pieces, last.content) == ([], "")
    assert (await System(agent, journal=journal).replay(last.loop_id)).content == ""

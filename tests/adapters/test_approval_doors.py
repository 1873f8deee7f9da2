"""An answer that a person approves, at the doors of a server: who merely asked reads nothing of a draft."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient, Response

from flyball import Agent
from flyball.core.messages import Message, Role, Text, Thinking
from flyball.core.signals import Signal, SignalType
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.service import Service
from tests.adapters.http.running import here
from tests.adapters.mcp.clients import ERAS, loop_of, served
from tests.orchestrate.test_output_approval import waits

DRAFT, APPROVED = "We are broke.", "Times are hard."
ASKED = {"messages": [{"role": "user", "content": "Write."}]}
CHAT = {"model": "clerk", **ASKED}
RESPONSE = {"model": "clerk", "input": "Write."}
ASKS: dict[str, tuple[str, dict[str, Any]]] = {
    "a request": ("/api/agents/clerk/requests", ASKED),
    "a request in pieces": ("/api/agents/clerk/stream", ASKED),
    "a chat": ("/v1/chat/completions", CHAT),
    "a chat in pieces": ("/v1/chat/completions", {**CHAT, "stream": True}),
    "a response": ("/v1/responses", RESPONSE),
    "a response in pieces": ("/v1/responses", {**RESPONSE, "stream": True}),
}
ENDS: dict[str, Signal] = {
    "rejected": Signal(SignalType.REJECT, text="softer"),
    "cancelled": Signal(SignalType.CANCEL),
}


def thought(text: str) -> Message:
    """An answer that was thought about before it was given."""
    return Message(Role.ASSISTANT, (Thinking(f"Let me say: {text}"), Text(text)))


def clerk() -> Agent[Any, Any]:
    return Agent(ScriptedEngine(thought(DRAFT), thought(APPROVED)), name="clerk", output_approval=True)


async def begun(service: Service) -> str:
    """The only loop, as soon as it waits."""
    while True:
        if loops := await service.journal.loops("", 1):
            await waits(service.journal, loops[0])
            return loops[0]
        await asyncio.sleep(0)


async def asked(client: AsyncClient, ask: str) -> Response:
    where, body = ASKS[ask]
    return await client.post(where, json=body)


@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize("end", ENDS)
async def test_who_asked_is_told_nothing_of_a_draft(ask: str, end: str) -> None:
    async with here(clerk()) as (client, service):
        task = asyncio.create_task(asked(client, ask))
        loop_id = await begun(service)
        await service.signal(loop_id, ENDS[end])
        if end == "rejected":
            await waits(service.journal, loop_id, 2)
            await service.signal(loop_id, Signal(SignalType.APPROVE))
        told = (await task).text
        doors = (f"/v1/responses/resp_{loop_id}", f"/api/loops/{loop_id}/response")
        again = [(await client.get(door)).text for door in doors]
    for one in (told, *again):
        assert "broke" not in one
        assert (APPROVED in one) == (end == "rejected"), one


NOT_IT = ("", "/response", "/trajectory", "/course", "/diagram")
"""What of a loop is told to who may look at it, and has nothing of an answer before it is approved."""
THE_TRUTH = ("/events", "/why", "/waiting")
"""What tells who may look at it what is recorded, and that it waits."""


async def test_while_it_waits_it_is_shown_as_what_waits_and_nowhere_as_the_answer() -> None:
    async with here(clerk()) as (client, service):
        begin = await client.post("/api/agents/clerk/loops", json=ASKED)
        loop_id = begin.json()["loop_id"]
        await waits(service.journal, loop_id)

        async def read(path: str) -> str:
            return (await client.get(path)).text

        told = [await read(f"/api/loops/{loop_id}{part}") for part in NOT_IT]
        told += [await read("/api/loops"), await read(f"/v1/responses/resp_{loop_id}")]
        found = (await client.get("/api/loops", params={"text": "broke"})).json()["loops"]
        journal, why, waiting = [await read(f"/api/loops/{loop_id}{part}") for part in THE_TRUTH]
        early = await client.get(f"/api/loops/{loop_id}/response")
        forked = await client.post(f"/api/loops/{loop_id}/fork", json={"turn": 1, "prompt": "Go on."})
        after = await client.post(f"/api/agents/clerk/requests?after={loop_id}", json=ASKED)
        previous = {**RESPONSE, "previous_response_id": f"resp_{loop_id}"}
        gone_on = await client.post("/v1/responses", json=previous)
    assert all("broke" not in one for one in told), told
    assert found == []
    assert all(DRAFT in one for one in (journal, why, waiting))
    assert "It waits for somebody to approve the answer." in why
    assert [early.status_code, forked.status_code, after.status_code, gone_on.status_code] == [
        409,
        422,
        409,
        409,
    ]


@pytest.mark.parametrize("era", ERAS)
async def test_over_mcp_no_resource_has_it_before_it_is_approved(era: str) -> None:
    service = Service([clerk()], LocalRuntime(MemoryJournal()))
    async with served(service, era) as server:

        async def read(loop_id: str) -> str:
            paths = ("", f"/{loop_id}", f"/{loop_id}/trajectory")
            found = [await server.client.read_resource(f"flyball://loops{path}") for path in paths]
            listed = await server.client.list_resources()
            return "".join([one.model_dump_json() for one in (*found, listed)])

        loop_id = loop_of(await server.client.call_tool("clerk", {"prompt": "write"}))
        before = await read(loop_id)
        await service.signal(loop_id, Signal(SignalType.REJECT, text="softer"))
        await waits(service.journal, loop_id, 2)
        await service.signal(loop_id, Signal(SignalType.APPROVE))
        again = await server.client.call_tool("clerk", {"prompt": "write", "loop_id": loop_id})
        after = await read(loop_id)
    for one in (before, after, again.model_dump_json()):
        assert "broke" not in one
    assert APPROVED not in before
    assert APPROVED in after


@pytest.mark.parametrize("era", ERAS)
async def test_over_mcp_a_run_that_ended_before_has_no_answer(era: str) -> None:
    service = Service([clerk()], LocalRuntime(MemoryJournal()))
    async with served(service, era) as server:
        loop_id = loop_of(await server.client.call_tool("clerk", {"prompt": "write"}))
        await service.signal(loop_id, Signal(SignalType.CANCEL, text="no more"))
        again = await server.client.call_tool("clerk", {"prompt": "write", "loop_id": loop_id})
        run = await server.client.read_resource(f"flyball://loops/{loop_id}")
    assert again.is_error
    assert "broke" not in again.model_dump_json() + run.model_dump_json()

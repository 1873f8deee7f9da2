"""The server behind HTTP: with tokens and without, for tenants who cannot see each other, within limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitRequestParams, ElicitResult

from flyball import Agent
from flyball.adapters.http.entry import serve_http
from flyball.adapters.http.tokens import Scope, Tokens
from flyball.adapters.mcp.mount import mcp_mount
from flyball.core.events import Ended, Outcome, SignalReceived, Stage
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.service import Service
from tests.adapters.mcp.agents import Gate, agents
from tests.adapters.mcp.clients import ERAS, Ask, loop_of, text_of
from tests.patience import PATIENCE

HEADERS = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
HELLO: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "by hand", "version": "1"},
    },
}


class Tenants:
    """Services by tenant, in memory."""

    def __init__(self, *given: Agent[Any, Any]) -> None:
        self._agents = given or agents()
        self.services: dict[str, Service] = {}

    async def __call__(self, tenant: str = "") -> Service:
        if tenant not in self.services:
            self.services[tenant] = Service(self._agents, LocalRuntime())
        return self.services[tenant]

    async def drain(self, seconds: float) -> None:
        for service in self.services.values():
            await service.drain(seconds)


class Server:
    """A server on this machine, and where it is."""

    def __init__(self, url: str, serving: asyncio.Task[None], tenants: Tenants) -> None:
        self.url = url
        self.serving = serving
        self.tenants = tenants

    async def end(self) -> None:
        """Tell it to end, and wait until it has."""
        self.serving.cancel()
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(self.serving, return_exceptions=True)

    def post(self, document: Any, **headers: str) -> httpx2.Response:
        """Ask by hand."""
        return httpx2.post(self.url, json=document, headers={**HEADERS, **headers}, timeout=PATIENCE)


@asynccontextmanager
async def serving(
    *given: Agent[Any, Any], tokens: Path | None = None, **options: Any
) -> AsyncGenerator[Server]:
    tenants, where = Tenants(*given), asyncio.get_running_loop().create_future()
    task = asyncio.create_task(
        serve_http(
            tenants,
            port=0,
            tokens=tokens,
            log=False,
            mounts={"/mcp": mcp_mount},
            begun=where.set_result,
            grace=0,
            **options,
        )
    )
    await asyncio.wait([task, where], return_when=asyncio.FIRST_COMPLETED)
    server = Server(f"{where.result()}/mcp", task, tenants)
    try:
        yield server
    finally:
        await server.end()


@asynccontextmanager
async def client_of(
    server: Server, era: str, token: str = "", ask: Ask | None = None
) -> AsyncGenerator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx2.AsyncClient(headers=headers, timeout=PATIENCE) as http:
        wire = streamable_http_client(server.url, http_client=http)
        async with Client(wire, mode=era, elicitation_callback=ask) as client:
            yield client


@pytest.fixture
def tokens(tmp_path: Path) -> Tokens:
    return Tokens(tmp_path / "tokens.json")


async def yes(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    return ElicitResult(action="accept", content={"approve": True})


@pytest.mark.parametrize("era", ERAS)
async def test_clients_on_this_machine_need_nothing(era: str) -> None:
    told: list[str | None] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with serving() as server, client_of(server, era, ask=yes) as client:
        result = await client.call_tool("count", {"prompt": "?"}, progress_callback=tell)
        paid = await client.call_tool("shop", {"prompt": "pay 5"})
        city = await client.call_tool("city", {"prompt": "?"})
        many = await asyncio.gather(*[client.call_tool("echo", {"prompt": f"{n}"}) for n in range(10)])
        listed = await client.list_resources()
    assert text_of(result) == "It is 3."
    assert told[-1] == "count: turn 2"
    assert text_of(paid) == "Then: paid 5"
    assert city.structured_content == {"name": "Rome", "people": 3}
    assert [text_of(one) for one in many] == [f"You said: {n}" for n in range(10)]
    assert len(listed.resources) == 14


@pytest.mark.parametrize("era", ERAS)
async def test_tenants_do_not_see_each_other(era: str, tokens: Tokens) -> None:
    ann, _ = tokens.add("ann", tenant="a")
    bob, _ = tokens.add("bob", tenant="b")
    async with serving(tokens=tokens.path) as server:
        async with client_of(server, era, ann, ask=yes) as client:
            mine = await client.call_tool("shop", {"prompt": "pay 5"})
        async with client_of(server, era, bob) as client:
            theirs = await client.list_resources()
            with pytest.raises(MCPError, match="there is no resource"):
                await client.read_resource(f"flyball://loops/{loop_of(mine)}")
            gone_on = await client.call_tool("echo", {"prompt": "?", "continue_from": loop_of(mine)})
    assert [one.uri for one in theirs.resources] == ["flyball://loops"]
    assert gone_on.is_error
    events = await server.tenants.services["a"].journal.read(loop_of(mine))
    assert [event.signal.by for event in events if isinstance(event, SignalReceived)] == ["ann"]


async def test_a_session_of_one_tenant_is_not_there_for_another(tokens: Tokens) -> None:
    ann, _ = tokens.add("ann", tenant="a")
    bob, _ = tokens.add("bob", tenant="b")
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    async with serving(tokens=tokens.path) as server:

        def post(document: Any, token: str, **headers: str) -> httpx2.Response:
            return server.post(document, Authorization=f"Bearer {token}", **headers)

        opened = await asyncio.to_thread(post, HELLO, ann)
        session = {"Mcp-Session-Id": opened.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-11-25"}
        mine = await asyncio.to_thread(post, listing, ann, **session)
        theirs = await asyncio.to_thread(post, listing, bob, **session)
        nobody = await asyncio.to_thread(post, listing, "fly_1_2", **session)
    assert [one.status_code for one in (opened, mine, theirs, nobody)] == [200, 200, 404, 401]
    assert nobody.headers["content-type"] == "application/problem+json"


async def test_what_a_token_is_not_for_is_refused(tokens: Tokens) -> None:
    reader, _ = tokens.add("reader", scopes=[Scope.READ])
    runner, _ = tokens.add("runner", scopes=[Scope.RUN])
    async with serving(tokens=tokens.path) as server:
        refused = await asyncio.to_thread(server.post, HELLO, Authorization=f"Bearer {reader}")
        async with client_of(server, "legacy", runner, ask=yes) as client:
            waits = await client.call_tool("shop", {"prompt": "pay 5"})
            listed = await client.list_resources()
            with pytest.raises(MCPError, match="has not the scope read"):
                await client.read_resource(f"flyball://loops/{loop_of(waits)}")
    assert (refused.status_code, refused.json()["code"]) == (403, "API_FORBIDDEN")
    assert text_of(waits).startswith("AWAITING_APPROVAL: ")  # it may not decide itself
    assert f"/api/loops/{loop_of(waits)}/signals" in text_of(waits)
    assert listed.resources == []


@pytest.mark.parametrize("era", ERAS)
async def test_people_do_what_they_may_and_their_runs_are_theirs(era: str, tokens: Tokens) -> None:
    ann, _ = tokens.add("ann", roles=["user"])
    ben, _ = tokens.add("ben", roles=["reviewer"])
    async with serving(tokens=tokens.path) as server:
        async with client_of(server, era, ann, ask=yes) as client:
            waits = await client.call_tool("shop", {"prompt": "pay 5", "loop_id": "anns"})
        service = server.tenants.services[""]
        assert (await service.summary("anns")).user_id == "ann"
        async with client_of(server, era, ben, ask=yes) as client:
            paid = await client.call_tool("shop", {"prompt": "pay 6", "loop_id": "bens"})
        events, _ = await service.load("bens")
    assert text_of(waits).startswith("AWAITING_APPROVAL: ")  # to approve is a role of its own
    assert "paid 6" in text_of(paid)
    assert [one.signal.by for one in events if isinstance(one, SignalReceived)] == ["ben"]


async def test_what_waits_is_not_decided_by_calling_again(tokens: Tokens) -> None:
    """A client whose protocol asks by an answer sends decisions along: they are looked at, too."""
    ann, _ = tokens.add("ann", roles=["user"])
    runner, _ = tokens.add("runner", scopes=[Scope.RUN])
    async with serving(tokens=tokens.path) as server:
        for token, loop_id in ((ann, "anns"), (runner, "runners")):
            async with client_of(server, "auto", token, ask=yes) as client:
                await client.call_tool("shop", {"prompt": "pay 5", "loop_id": loop_id})
                service = server.tenants.services[""]
                (call,) = await service.waiting(loop_id)
                answer = ElicitResult(action="accept", content={"approve": True})
                again = await client.call_tool(
                    "shop",
                    {"prompt": "pay 5"},
                    input_responses={f"{loop_id}/{call.call.id}": answer},
                    request_state=loop_id,
                )
            assert "may not decide" in text_of(again)
            events, _ = await service.load(loop_id)
            assert not [one for one in events if isinstance(one, SignalReceived)]


async def test_who_may_not_look_does_not_go_on_from_a_run(tokens: Tokens) -> None:
    runner, _ = tokens.add("runner", scopes=[Scope.RUN])
    async with serving(tokens=tokens.path) as server, client_of(server, "auto", runner) as client:
        first = await client.call_tool("echo", {"prompt": "Hello"})
        then = await client.call_tool("echo", {"prompt": "And?", "continue_from": loop_of(first)})
    assert "may not look at runs" in text_of(then)


async def test_limits_hold_and_other_sites_stay_out() -> None:
    async with serving(limits={"body": 1000}) as server:
        large = await asyncio.to_thread(server.post, {**HELLO, "more": "x" * 1000})
        stranger = await asyncio.to_thread(server.post, HELLO, Origin="http://evil.example")
        named = await asyncio.to_thread(server.post, HELLO, Host="localhost:1")
        below = await asyncio.to_thread(httpx2.post, f"{server.url}/below", json=HELLO, headers=HEADERS)
        chunks = await asyncio.to_thread(
            httpx2.post, server.url, content=iter([b"x" * 600, b"y" * 600]), headers=HEADERS
        )
    assert (large.status_code, large.json()["code"]) == (413, "API_TOO_LARGE")
    assert (chunks.status_code, chunks.json()["code"]) == (413, "API_TOO_LARGE")
    assert (stranger.status_code, stranger.json()["code"]) == (403, "API_FORBIDDEN")
    assert (named.status_code, below.status_code) == (200, 404)


@pytest.mark.parametrize("era", ERAS)
async def test_who_cancels_a_call_cancels_the_run(era: str) -> None:
    gate = Gate()
    async with serving(gate.agent) as server, client_of(server, era) as client:
        calling = asyncio.create_task(client.call_tool("patient", {"prompt": "Hello", "loop_id": "mine"}))
        await asyncio.wait_for(gate.asked.wait(), PATIENCE)
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        journal = server.tenants.services[""].journal
        async with asyncio.timeout(PATIENCE):
            while not isinstance((events := await journal.read("mine"))[-1], Ended):
                await journal.wait("mine", len(events))
    assert isinstance(events[-1], Ended)
    assert events[-1].outcome is Outcome.CANCELLED


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_ends_leaves_runs_as_they_are_recorded(era: str) -> None:
    gate = Gate()
    async with serving(gate.agent) as server, client_of(server, era) as client:
        calling = asyncio.create_task(client.call_tool("patient", {"prompt": "Hello", "loop_id": "mine"}))
        await asyncio.wait_for(gate.asked.wait(), PATIENCE)
        await server.end()
        result = await calling
        assert text_of(result).startswith("ORCHESTRATION_RUN_CLOSED: ")
        assert await server.tenants.services[""].stage("mine") is Stage.EXECUTING
        gate.go.set()

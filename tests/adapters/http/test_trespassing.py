"""Callers whose token is none, or is not for this: each operation refuses them, and tells nothing of others.

The operations are those of the served document, so that a new one is held to it from its first day.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from httpx import AsyncClient, Response

from flyball import Agent
from flyball.adapters.http.tokens import Scope, Tokens
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.runtime.services import Tenants
from tests.adapters.http.raw import asked, head, wire
from tests.adapters.http.running import ASK, here, on_disk, problem
from tests.patience import PATIENCE

SECRET = "the launch code is 0000"
PLACES = {
    "agent": "echo",
    "loop_id": "it",
    "number": "1",
    "model": "echo",
    "response_id": "resp_it",
    "channel_type": "cli",
    "channel_id": "here",
}
BODIES: dict[str, Any] = {
    "send_signal": {"type": "cancel"},
    "give_results": {"results": [{"tool_name": "x", "tool_call_id": "x", "content": SECRET[:3]}]},
    "fork_loop": {"turn": 0, "prompt": "What was said?"},
    "resume_loop": {},
    "say_on_channel": {"content": "What was said?", "reply_to": "it"},
    "signal_on_channel": {"type": "cancel", "loop_id": "it"},
}
"""What may be asked of a loop that one has; of others, what every agent takes."""


class Asked(NamedTuple):
    """An operation, as it is asked for."""

    name: str
    method: str
    path: str
    scope: str
    places: frozenset[str]

    async def by(self, client: AsyncClient, token: str | None) -> Any:
        """The answer to somebody with a token; a stream is not read to its end."""
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        body = None if self.method == "GET" else BODIES.get(self.name, ASK)
        async with client.stream(self.method, self.path, json=body, headers=headers) as answer:
            if answer.headers.get("content-type") != "text/event-stream":
                await answer.aread()
            return answer


def refused(answer: Response) -> tuple[int, str]:
    """How somebody was refused, also where OpenAI's clients are told."""
    if answer.headers["content-type"] != "application/json":
        return problem(answer)
    return answer.status_code, answer.json()["error"]["code"]


async def operations(client: AsyncClient, token: str, **places: str) -> list[Asked]:
    """All operations that there are."""
    known = {**PLACES, **places}
    document = (await client.get("/openapi.json", headers={"Authorization": f"Bearer {token}"})).json()
    return [
        Asked(
            operation["operationId"],
            method.upper(),
            re.sub(r"\{(\w+)\}", lambda place: known[place[1]], path),
            operation.get("x-scope", ""),
            frozenset(re.findall(r"\{(\w+)\}", path)),
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


async def test_every_operation_asks_for_its_scope(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    everything, _ = tokens.add("all")
    only = {scope: tokens.add(scope, scopes=[scope])[0] for scope in Scope}
    others = {scope: tokens.add("others", scopes=set(Scope) - {scope})[0] for scope in Scope}
    nothing, _ = tokens.add("none", scopes=[])
    async with here(tokens=tokens) as (client, _):
        known = await operations(client, everything)
        assert {one.name for one in known if not one.scope} == {"health", "ready"}
        for one in known:
            if not one.scope:
                assert (await one.by(client, None)).status_code == 200
                continue
            scope = Scope(one.scope)
            assert refused(await one.by(client, None)) == (401, "API_UNAUTHENTICATED"), one
            for token in (others[scope], nothing):
                assert refused(await one.by(client, token)) == (403, "API_FORBIDDEN"), one
            assert (await one.by(client, only[scope])).status_code not in (401, 403), one


async def test_no_operation_tells_anything_of_another_tenant(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    ann, bob = (tokens.add(name, tenant=name)[0] for name in ("ann", "bob"))
    async with on_disk(tmp_path, tokens=tokens) as (client, tenants):
        await nothing_is_told(client, tenants, ann, bob, "ann")


async def nothing_is_told(client: AsyncClient, tenants: Tenants, ann: str, bob: str, tenant: str) -> None:
    """See that whoever has bob's token learns nothing of what ann's tenant has, by any operation."""
    begun = await client.post(
        "/api/agents/buyer/loops",
        json={"messages": [{"role": "user", "content": SECRET}]},
        params={"loop_id": "it"},
        headers={"Authorization": f"Bearer {ann}"},
    )
    assert begun.status_code == 202
    said = await client.post(
        "/v1/responses",
        json={"model": "echo", "input": SECRET},
        headers={"Authorization": f"Bearer {ann}"},
    )
    response_id = said.json()["id"]
    assert SECRET in said.text
    journal = (await tenants(tenant)).journal
    await journal.wait("it", 1)
    before = await journal.read("it")
    known = await operations(client, ann, response_id=response_id)
    assert len([one for one in known if "loop_id" in one.places]) >= 10
    for one in known:
        answer = await one.by(client, bob)
        if "loop_id" in one.places:
            assert problem(answer) == (404, "ORCHESTRATION_LOOP_NOT_FOUND"), one
        if "response_id" in one.places:
            assert answer.status_code == 404, one
        if answer.is_closed and answer.headers.get("content-type") != "text/event-stream":
            assert SECRET not in answer.text
            assert one.method != "GET" or '"it"' not in answer.text or answer.status_code == 404
    assert await journal.read("it") == before


WRONG = [
    "Bearer",
    "Bearer ",
    "Bearer fly",
    "Bearer fly__",
    "Basic YWxhZGRpbjpvcGVuc2VzYW1l",
    "bearer\t{token}",
    "Bearer {token} x",
    "Bearer x {token}",
    "Bearer {token}x",
    "Bearer {upper}",
    "Bearer {id}",
    "Bearer fly_{id}_",
    "Token {token}",
    "{token}",
    "Bearer \xff\xfe",
    "Bearer " + "f" * 60_000,
    "Bearer ' OR 1=1 --",
]


@pytest.mark.parametrize("header", WRONG, ids=range(len(WRONG)))
async def test_a_token_is_all_of_it_or_none(header: str, tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    text, token = tokens.add("ann")
    written = header.format(token=text, upper=text.upper(), id=token.id)
    async with here(tokens=tokens) as (client, _):
        for path in ("/api/agents", "/api/agents?token=" + text, "/api/agents?access_token=" + text):
            reply = await asked(client, head(f"GET {path}", f"Authorization: {written}"))
            assert (reply.status, reply.code) == (401, "API_UNAUTHENTICATED")
            assert reply.headers["www-authenticate"] == 'Bearer realm="flyball"'
            assert text not in reply.body.decode()
        right = f"Authorization: Bearer {text}"
        assert (await asked(client, head("GET /api/agents", right))).status == 200


async def test_a_token_that_is_revoked_while_its_run_goes_on(tmp_path: Path) -> None:
    go, begun = asyncio.Event(), asyncio.Event()

    async def slowly(request: Request) -> str:
        begun.set()
        await go.wait()
        return "done"

    tokens = Tokens(tmp_path / "tokens.json")
    text, token = tokens.add("ann")
    headers = {"Authorization": f"Bearer {text}"}
    async with here(Agent(FunctionEngine(slowly), name="slow"), tokens=tokens) as (client, _):
        running = asyncio.create_task(client.post("/api/agents/slow/requests", json=ASK, headers=headers))
        await begun.wait()
        Tokens(tokens.path).revoke(token.id)
        assert problem(await client.get("/api/agents", headers=headers)) == (401, "API_UNAUTHENTICATED")
        go.set()
        assert (await running).json()["content"] == "done"  # what was let in is served
        tokens.path.write_text("{")  # and a file that is damaged lets nobody in
        answer = await client.get("/api/agents", headers=headers)
        assert problem(answer) == (500, "ORCHESTRATION_FAILED")
        assert str(tokens.path) not in answer.text


AGENTS = """
from flyball import Agent
echo = Agent("test", name="echo")
"""


def test_a_server_as_users_run_it_says_nothing_of_what_is_thrown_at_it(tmp_path: Path) -> None:
    (tmp_path / "served.py").write_text(AGENTS)
    command = [sys.executable, "-m", "flyball", "serve", "served", "--port", "0", "--journal", "runs.db"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "COLUMNS": "200"}
    lines: list[str] = []
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, env=environment, text=True
    ) as process:
        assert process.stderr is not None
        try:
            while not (found := re.search(r"at (http://\S+),", line := process.stderr.readline())):
                assert line, "the server did not begin"
            asyncio.run(_throw_at(found[1]))
            process.send_signal(signal.SIGTERM)
            lines = process.stderr.read().splitlines()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
    assert "Traceback" not in str(lines)
    logged = [json.loads(line) for line in lines if line.startswith("{")]
    assert logged[-1]["operation"] == "handle_request"
    assert len(lines) - len(logged) <= 3  # how to ask it, and that it was stopped


async def _throw_at(url: str) -> None:
    async with AsyncClient(base_url=url, timeout=PATIENCE) as client:
        for data in (b"\x00\r\n\r\n", b"GET /health HT", head("GET /api/agents", "Origin: http://[")):
            for _ in range(30):
                async with wire(client) as connection:
                    await connection.send(data)
                    connection.vanish()
        assert (await client.post("/api/agents/echo/requests", json=ASK)).status_code == 200

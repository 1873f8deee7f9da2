"""Who comes in: tokens, scopes and tenants; other sites' pages do not; and how much is taken."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent
from flyball.adapters.http.limits import Limits, Rates
from flyball.adapters.http.problems import TooMany, Unauthenticated
from flyball.adapters.http.tokens import Scope, Tokens
from flyball.core.errors import UserError
from flyball.core.events import Outcome, SignalReceived
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.recorded import until_done
from tests.adapters.http.running import ASK, here, on_disk, problem
from tests.patience import PATIENCE


def bearer(text: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {text}"}


# Tokens


def test_a_token_is_kept_as_a_hash_that_only_its_owner_reads(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "deep" / "tokens.json")
    text, token = tokens.add("ann", scopes=[Scope.READ], tenant="acme")
    kept = tokens.path.read_text()
    assert text.rpartition("_")[2] not in kept
    assert tokens.path.stat().st_mode & 0o077 == 0
    principal = Tokens(tokens.path).principal(f"Bearer {text}")
    assert (principal.tenant, principal.scopes, principal.name) == ("acme", {Scope.READ}, "ann")
    assert tokens.list() == (token,)


def test_a_token_is_refused_once_it_is_revoked_or_its_time_is_up(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    text, token = tokens.add("ann")
    other, _ = tokens.add("bob")
    late, _ = tokens.add("eve", expires=time.time() - 1)
    server = Tokens(tokens.path)
    assert server.principal(f"bearer {text}").name == "ann"
    tokens.revoke(token.id)
    for wrong in (text, late, "", "fly_", other[:-1], other + "0", f"{other.rpartition('_')[0]}_"):
        with pytest.raises(Unauthenticated):
            server.principal(f"Bearer {wrong}")
    assert server.principal(f"Bearer {other}").name == "bob"
    with pytest.raises(UserError, match="no token"):
        tokens.revoke(token.id)


@given(st.text())
def test_whatever_stands_in_the_header_nobody_comes_in_by_chance(header: str) -> None:
    with pytest.raises(Unauthenticated):
        Tokens(Path(os.devnull) / "none").principal(header)


def test_what_is_no_file_of_tokens_says_so(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    file.write_text("{")
    with pytest.raises(UserError, match="holds no tokens"):
        Tokens(file).list()
    for tenant in ("../x", "A", "-x", "x" * 64, "a.b", "a/b", "ä"):
        with pytest.raises(UserError, match="tenant"):
            Tokens(tmp_path / "other.json").add("ann", tenant=tenant)
    with pytest.raises(UserError, match="name"):
        Tokens(tmp_path / "other.json").add("a\nb")
    file.write_text('{"tokens": [{"id": "a", "name": "x", "hash": "é", "tenant": "../../evil"}]}')
    with pytest.raises(UserError, match="tenant"):
        Tokens(file).list()
    file.write_text('{"tokens": [{"id": "a", "name": "x", "hash": "é"}]}')
    with pytest.raises(Unauthenticated):
        Tokens(file).principal("Bearer fly_a_b")


async def test_nobody_comes_in_without_a_token_where_tokens_are_asked_for(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    text, _ = tokens.add("ann", scopes=[Scope.READ])
    async with here(tokens=tokens) as (client, _):
        for path in ("/api/agents", "/openapi.json", "/metrics", "/nothing/here", "/api/loops/x"):
            answer = await client.get(path)
            assert problem(answer) == (401, "API_UNAUTHENTICATED")
            assert answer.headers["www-authenticate"].startswith("Bearer")
        for path in ("/health", "/ready"):
            assert (await client.get(path)).status_code == 200
        assert (await client.get("/api/agents", headers=bearer(text))).status_code == 200
        refused = await client.post("/api/agents/echo/requests", json=ASK, headers=bearer(text))
        assert problem(refused) == (403, "API_FORBIDDEN")
        assert problem(await client.get("/metrics", headers=bearer(text)))[0] == 403


async def test_a_tenant_sees_nothing_of_another(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    ann, bob = (bearer(tokens.add(name, tenant=name)[0]) for name in ("ann", "bob"))
    async with on_disk(tmp_path, tokens=tokens) as (client, _):
        mine = {"loop_id": "shared-name"}
        made = await client.post("/api/agents/echo/requests", json=ASK, params=mine, headers=ann)
        assert made.status_code == 200
        for path in ("", "/events", "/stream", "/response", "/trajectory", "/course", "/why", "/waiting"):
            assert (await client.get(f"/api/loops/shared-name{path}", headers=ann)).status_code in (200, 204)
            assert problem(await client.get(f"/api/loops/shared-name{path}", headers=bob))[0] == 404
        other = {"messages": [{"role": "user", "content": "mine alone"}]}
        again = await client.post("/api/agents/echo/requests", json=other, params=mine, headers=bob)
        assert again.json()["content"] == "You said: mine alone"
        assert (tmp_path / "tenants" / "ann" / "runs.db").exists()


async def test_signals_are_recorded_under_the_name_of_the_token(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    headers = bearer(tokens.add("ann")[0])
    async with here(tokens=tokens) as (client, service):
        await client.post("/api/agents/buyer/loops", json=ASK, params={"loop_id": "it"}, headers=headers)
        said = {"type": "cancel", "by": "somebody else"}
        assert (await client.post("/api/loops/it/signals", json=said, headers=headers)).status_code == 200
        events = await service.journal.read("it")
        assert [event.signal.by for event in events if isinstance(event, SignalReceived)] == ["ann"]


# Other sites


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"Host": "localhost:8000"}, 200),
        ({"Host": "[::1]:8000"}, 200),
        ({"Host": "evil.example"}, 403),
        ({"Host": "127.0.0.1.evil.example"}, 403),
        ({"Host": "localhost:8000", "Origin": "http://localhost:8000"}, 200),
        ({"Host": "localhost:8000", "Origin": "http://localhost:9000"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
    ],
)
async def test_pages_of_other_sites_do_not_come_in(headers: dict[str, str], status: int) -> None:
    async with here() as (client, _):
        assert (await client.get("/api/agents", headers=headers)).status_code == status


async def test_a_form_of_another_site_is_no_request() -> None:
    async with here() as (client, _):
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""):
            answer = await client.post(
                "/api/agents/echo/requests", content=b'{"messages":[]}', headers={"Content-Type": kind}
            )
            assert problem(answer) == (415, "API_WRONG_MEDIA_TYPE")


# How much


async def test_so_many_at_once() -> None:
    go, asked = asyncio.Event(), asyncio.Semaphore(0)

    async def pause() -> None:
        asked.release()
        await go.wait()

    engine = ScriptedEngine(*["done"] * 9, pause=pause)
    async with here(Agent(engine, name="slow"), limits=Limits(concurrent=2)) as (client, _):
        calls = [asyncio.create_task(client.post("/api/agents/slow/requests", json=ASK)) for _ in range(2)]
        for _ in calls:
            await asked.acquire()
        more = await client.post("/api/agents/slow/requests", json=ASK)
        assert problem(more) == (429, "API_TOO_MANY")
        assert more.headers["retry-after"] == "1"
        go.set()
        assert [answer.status_code for answer in await asyncio.gather(*calls)] == [200, 200]
        assert (await client.post("/api/agents/slow/requests", json=ASK)).status_code == 200


async def test_callers_that_vanish_leave_their_places_and_the_rest_is_served_anyhow() -> None:
    go, asked = asyncio.Event(), asyncio.Semaphore(0)

    async def pause() -> None:
        asked.release()
        await go.wait()

    engine = ScriptedEngine(*["done"] * 9, pause=pause)
    async with here(Agent(engine, name="slow"), limits=Limits(concurrent=2)) as (client, service):
        calls = [
            asyncio.create_task(client.post("/api/agents/slow/requests", json=ASK, params={"loop_id": name}))
            for name in ("one", "two")
        ]
        for _ in calls:
            await asked.acquire()
        assert problem(await client.post("/api/agents/slow/requests", json=ASK))[0] == 429
        for path in ("/health", "/ready", "/metrics", "/api/loops", "/api/loops/one"):
            assert (await client.get(path)).status_code == 200, path
        assert (await client.post("/api/loops/one/signals", json={"type": "pause"})).status_code == 200
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        async with asyncio.timeout(PATIENCE):
            while (await client.post("/api/agents/slow/loops", json=ASK)).status_code == 429:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        go.set()
        assert (await until_done(service.journal, "two")).outcome is Outcome.SUCCESS


async def test_so_many_a_minute(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    ann, bob = (bearer(tokens.add(name)[0]) for name in ("ann", "bob"))
    async with here(tokens=tokens, limits=Limits(rate=3)) as (client, _):
        statuses = [(await client.get("/api/agents", headers=ann)).status_code for _ in range(4)]
        assert statuses == [200, 200, 200, 429]
        refused = await client.get("/api/agents", headers=ann)
        assert 1 <= int(refused.headers["retry-after"]) <= 20
        assert (await client.get("/api/agents", headers=bob)).status_code == 200
        assert (await client.get("/health", headers=ann)).status_code == 200


@given(st.lists(st.floats(0, 30), max_size=60), st.integers(1, 100))
def test_nobody_has_more_than_the_rate_and_a_burst(gaps: list[float], rate: int) -> None:
    rates, now, taken = Rates(rate), 0.0, 0
    for gap in gaps:
        now += gap
        try:
            rates.take("ann", now)
        except TooMany:
            continue
        taken += 1
        assert taken <= rate + now * rate / 60 + 1e-6


# What is told of it all


async def test_numbers_for_prometheus() -> None:
    async with here() as (client, _):
        await client.post("/api/agents/counter/requests", json=ASK)
        chat = {"model": "counter", **ASK}
        assert (await client.post("/v1/chat/completions", json=chat)).status_code == 200
        assert (await client.post("/api/agents/counter/requests", json={"messages": []})).status_code == 422
        await client.get("/api/loops/nope")
        text = (await client.get("/metrics")).text
        for line in (
            'flyball_http_requests_total{method="POST",operation="handle_request",status="200"} 1.0',
            'flyball_http_requests_total{method="GET",operation="read_loop",status="404"} 1.0',
            'flyball_runs_total{agent="counter",outcome="complete"} 2.0',
            'flyball_tool_calls_total{agent="counter"} 2.0',
        ):
            assert line in text.splitlines()


async def test_loops_that_go_on_by_themselves_are_counted_once() -> None:
    async with here() as (client, service):

        async def begin(agent: str, loop_id: str) -> None:
            begun = await client.post(f"/api/agents/{agent}/loops", json=ASK, params={"loop_id": loop_id})
            assert begun.status_code == 202

        await begin("counter", "one")
        await until_done(service.journal, "one")
        await begin("counter", "one")
        await begin("buyer", "two")
        await begin("buyer", "two")
        await client.post("/api/loops/two/signals", json={"type": "cancel"})
        wanted = {
            'flyball_runs_total{agent="counter",outcome="complete"} 1.0',
            'flyball_runs_total{agent="buyer",outcome="CANCELLED_SIGNAL"} 1.0',
            'flyball_tool_calls_total{agent="counter"} 1.0',
        }
        while not wanted <= set((text := (await client.get("/metrics")).text).splitlines()):
            assert " 2.0" not in "".join([one for one in text.splitlines() if "flyball_runs" in one])


async def test_a_line_for_each_request() -> None:
    import io

    import msgspec

    from flyball.adapters.http.api import build_api
    from flyball.adapters.http.logs import Log

    lines = io.StringIO()

    async def no_service(_: str) -> Any:
        raise OSError("the disk is gone")

    api = build_api(no_service, log=Log(lines))
    sent: list[Any] = []
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/api/agents",
        "raw_path": b"/api/agents",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"x-request-id", b"r1")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
        "state": {},
    }

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await api(scope, receive, send)
    assert sent[0]["status"] == 500
    body = msgspec.json.decode(sent[1]["body"])
    assert body["code"] == "ORCHESTRATION_FAILED"
    assert "disk" not in str(body)  # what nobody foresaw is not told to callers
    line = msgspec.json.decode(lines.getvalue())
    assert (line["level"], line["request_id"], line["status"]) == ("error", "r1", 500)
    assert "the disk is gone" in line["failure"]


async def test_a_stream_ends_when_its_token_is_revoked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flyball.adapters.http.serving._LOOK", 0.0)
    go = asyncio.Event()
    tokens = Tokens(tmp_path / "tokens.json")
    text, token = tokens.add("ann")
    engine = ScriptedEngine("done", pause=go.wait)
    async with here(Agent(engine, name="slow"), tokens=tokens, heartbeat=0.05) as (client, _):
        await client.post("/api/agents/slow/loops", json=ASK, params={"loop_id": "it"}, headers=bearer(text))
        async with client.stream("GET", "/api/loops/it/stream", headers=bearer(text)) as stream:
            lines = stream.aiter_lines()
            assert (await anext(lines)).startswith("id: 1")
            tokens.revoke(token.id)
            async with asyncio.timeout(PATIENCE):
                rest = [line async for line in lines]
        assert not [line for line in rest if line == "event: over"]
        go.set()

"""A server's life: a real process that is told to stop, or killed, and the one after it; and on NATS."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from flyball.core.events import Outcome, Resumed, ToolReturned
from flyball.orchestrate.recorded import until_done
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions
from flyball.runtime.services import nats_services
from flyball.runtime.sqlite import SQLiteJournal
from tests.adapters.http.running import ASK, agents, followed, problem, served
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import emptied, nats

__all__ = ["nats"]

MODULE = '''
import asyncio, os, pathlib
from flyball import Agent, tool
from flyball.inference.answers import tool_call_answer
from flyball.inference.scripted import FunctionEngine

folder = pathlib.Path(os.environ["FOLDER"])


@tool
async def work() -> str:
    """Works until it may end."""
    (folder / "begun").touch()
    while not (folder / "go").exists():
        await asyncio.sleep(0.01)
    return "worked"


async def answer(request):
    told = [result.text for message in request.messages for result in message.tool_results]
    return f"It has {told[-1]}." if told else tool_call_answer("work")


@tool(approval=True)
async def pay() -> str:
    """Pays."""
    return "paid"


async def paying(request):
    told = [result.text for message in request.messages for result in message.tool_results]
    return f"It has {told[-1]}." if told else tool_call_answer("pay")


worker = Agent(FunctionEngine(answer), name="worker", tools=[work])
careful = Agent(FunctionEngine(paying), name="careful", tools=[pay])
'''


class Process:
    """A `flyball serve` that was started as a user starts it."""

    def __init__(self, process: asyncio.subprocess.Process, url: str) -> None:
        self.process = process
        self.url = url

    async def ended(self) -> tuple[int, str]:
        assert self.process.stderr is not None
        rest = await self.process.stderr.read()
        return await self.process.wait(), rest.decode()


@asynccontextmanager
async def process(folder: Path, *options: str) -> AsyncGenerator[Process]:
    (folder / "served_agents.py").write_text(MODULE)
    environment = {**os.environ, "FOLDER": str(folder), "FLYBALL_HOME": str(folder / "home")}
    started = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "flyball", "serve", "served_agents", "--port", "0", "--quiet", *options),
        cwd=folder,
        env=environment,
        stderr=asyncio.subprocess.PIPE,
    )
    assert started.stderr is not None
    try:
        async with asyncio.timeout(PATIENCE):
            line = (await started.stderr.readline()).decode()
        assert line.startswith("serving worker, careful at http://127.0.0.1:"), line
        yield Process(started, line.split(" at ")[1].split(",")[0])
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


async def there(file: Path) -> None:
    async with asyncio.timeout(PATIENCE):
        while not file.exists():  # noqa: ASYNC110, ASYNC240 - another process makes it
            await asyncio.sleep(0.01)


async def test_what_runs_is_finished_before_the_end(tmp_path: Path) -> None:
    async with process(tmp_path, "--grace", str(PATIENCE)) as server:
        async with AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            calling = asyncio.create_task(client.post("/api/agents/worker/requests", json=ASK))
            await there(tmp_path / "begun")
            following = asyncio.create_task(client.get("/api/loops"))
            await following
            server.process.send_signal(signal.SIGTERM)
            async with asyncio.timeout(PATIENCE):
                while (await client.get("/ready")).status_code == 200:  # noqa: ASYNC110 - as a client does
                    await asyncio.sleep(0.01)
            refused = await client.post("/api/agents/worker/requests", json=ASK)
            assert problem(refused) == (503, "API_SHUTTING_DOWN")
            (tmp_path / "go").touch()
            answer = await calling
            assert (answer.status_code, answer.json()["content"]) == (200, "It has worked.")
        code, said = await server.ended()
        assert code in (0, 128 + signal.SIGTERM)
        assert "Traceback" not in said


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
async def test_what_does_not_end_is_gone_on_with_by_the_next_server(tmp_path: Path, how: int) -> None:
    async with process(tmp_path, "--grace", "0") as server:  # noqa: SIM117 - it ends between
        async with AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            begun = await client.post("/api/agents/worker/loops", json=ASK, params={"loop_id": "it"})
            assert begun.status_code == 202
            plan = {"steps": [{"name": "one", "type": "infer", "input": "one"}]}
            document = {**ASK, "mode": "plan", "plan": plan}
            await client.post("/api/agents/worker/loops", json=document, params={"loop_id": "planned"})
            await there(tmp_path / "begun")
            server.process.send_signal(how)
            _, said = await server.ended()
            assert "Traceback" not in said
    (tmp_path / "go").touch()
    async with process(tmp_path) as server, AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
        for loop_id in ("it", "planned"):
            told = await followed(client, f"/api/loops/{loop_id}/stream")
            assert told[-1].data["stage"] == "complete", told[-1]
            assert (await client.get(f"/api/loops/{loop_id}/response")).json()["content"] == "It has worked."
    async with SQLiteJournal(tmp_path / "home" / "runs.db") as journal:
        events = await journal.read("it")
        assert any(isinstance(event, Resumed) for event in events)
        assert len([event for event in events if isinstance(event, ToolReturned)]) == 1


@pytest.mark.parametrize("path", ["requests", "stream", "chat"])
async def test_who_waits_for_what_is_parked_is_told_so(tmp_path: Path, path: str) -> None:
    async with process(tmp_path, "--grace", "0") as server:
        async with AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
            where, document = f"/api/agents/worker/{path}", dict[str, Any](ASK)
            if path == "chat":
                where, document = "/v1/chat/completions", {**ASK, "model": "worker", "stream": True}
            calling = asyncio.create_task(client.post(where, json=document))
            await there(tmp_path / "begun")
            server.process.send_signal(signal.SIGTERM)
            answer = await calling
            if path == "requests":
                assert problem(answer) == (503, "ORCHESTRATION_RUN_CLOSED")
                assert answer.json()["loop_id"] == answer.headers["flyball-loop"]
            else:
                assert "ORCHESTRATION_RUN_CLOSED" in answer.text
        _, said = await server.ended()
        assert "Traceback" not in said


async def test_a_server_that_comes_back_leaves_alone_what_another_one_drives(tmp_path: Path) -> None:
    async with process(tmp_path) as one, process(tmp_path) as other:
        one.process.kill()
        await one.process.wait()
        async with AsyncClient(base_url=other.url, timeout=PATIENCE) as client:
            await client.post("/api/agents/worker/loops", json=ASK, params={"loop_id": "it"})
            await there(tmp_path / "begun")
            async with process(tmp_path) as again, AsyncClient(base_url=again.url) as looking:
                assert (await looking.get("/api/loops/it")).json()["stage"] == "executing"
                (tmp_path / "go").touch()
                assert (await followed(client, "/api/loops/it/stream"))[-1].data["stage"] == "complete"
    async with SQLiteJournal(tmp_path / "home" / "runs.db") as journal:
        assert not [event for event in await journal.read("it") if isinstance(event, Resumed)]


@pytest.mark.parametrize("mode", ["chat", "plan", "redundant"])
async def test_many_ask_two_servers_for_the_same_at_once(tmp_path: Path, mode: str) -> None:
    (tmp_path / "go").touch()
    document: dict[str, Any] = dict(ASK)
    if mode == "plan":
        document |= {"mode": "plan", "plan": {"steps": [{"name": "one", "type": "infer", "input": "one"}]}}
    if mode == "redundant":
        document |= {"mode": "redundant", "output": {"schema": {"type": "object"}}}
    async with (
        process(tmp_path) as one,
        process(tmp_path) as other,
        AsyncClient(base_url=one.url, timeout=PATIENCE) as first,
        AsyncClient(base_url=other.url, timeout=PATIENCE) as second,
    ):
        for number in range(6):
            asked = {"loop_id": f"it{number}"}
            calls = [
                client.post("/api/agents/worker/requests", json=document, params=asked)
                for client in (first, second, first, second)
            ]
            answers = await asyncio.gather(*calls)
            assert len({(answer.status_code, answer.json().get("content")) for answer in answers}) == 1
            assert answers[0].status_code != 409, answers[0].text
    async with SQLiteJournal(tmp_path / "home" / "runs.db") as journal:
        for loop_id in await journal.loops():
            assert not [event for event in await journal.read(loop_id) if isinstance(event, Resumed)]


@pytest.mark.parametrize("mode", ["chat", "plan"])
async def test_a_request_at_two_servers_is_served_once(tmp_path: Path, mode: str) -> None:
    document: dict[str, Any] = dict(ASK)
    if mode == "plan":
        document |= {"mode": "plan", "plan": {"steps": [{"name": "one", "type": "infer", "input": "one"}]}}
    where, asked = "/api/agents/worker/requests", {"loop_id": "it"}
    async with (
        process(tmp_path) as one,
        process(tmp_path) as other,
        AsyncClient(base_url=one.url, timeout=PATIENCE) as first,
        AsyncClient(base_url=other.url, timeout=PATIENCE) as second,
    ):
        serving = asyncio.create_task(first.post(where, json=document, params=asked))
        await there(tmp_path / "begun")
        joining = asyncio.create_task(second.post(where, json=document, params=asked))
        others = {**document, "messages": [{"role": "user", "content": "Something else"}]}
        assert problem(await second.post(where, json=others, params=asked)) == (409, "CONFIG_LOOP_MISMATCH")
        (tmp_path / "go").touch()
        for answer in await asyncio.gather(serving, joining):
            assert (answer.status_code, answer.json()["content"]) == (200, "It has worked.")
    async with SQLiteJournal(tmp_path / "home" / "runs.db") as journal:
        for loop_id in await journal.loops():
            assert not [event for event in await journal.read(loop_id) if isinstance(event, Resumed)]


async def test_who_waits_at_another_server_is_answered_also_if_the_first_is_killed(tmp_path: Path) -> None:
    where, asked = "/api/agents/worker/requests", {"loop_id": "it"}
    async with (
        process(tmp_path) as one,
        process(tmp_path) as other,
        AsyncClient(base_url=one.url, timeout=PATIENCE) as first,
        AsyncClient(base_url=other.url, timeout=PATIENCE) as second,
    ):
        await first.post("/api/agents/worker/loops", json=ASK, params=asked)
        await there(tmp_path / "begun")
        joining = asyncio.create_task(second.post(where, json=ASK, params=asked))
        following = asyncio.create_task(followed(second, "/api/loops/it/stream"))
        await second.get("/api/loops/it")
        one.process.kill()
        (tmp_path / "go").touch()
        answer = await joining
        assert (answer.status_code, answer.json()["content"]) == (200, "It has worked.")
        assert (await following)[-1].data["stage"] == "complete"


async def test_what_is_approved_at_another_server_goes_on_there_if_the_first_is_dead(tmp_path: Path) -> None:
    async with (
        process(tmp_path) as one,
        process(tmp_path) as other,
        AsyncClient(base_url=one.url, timeout=PATIENCE) as first,
        AsyncClient(base_url=other.url, timeout=PATIENCE) as second,
    ):
        await first.post("/api/agents/careful/loops", json=ASK, params={"loop_id": "it"})
        async with asyncio.timeout(PATIENCE):
            while not (await first.get("/api/loops/it/waiting")).json()["calls"]:  # noqa: ASYNC110 - as a client does
                await asyncio.sleep(0.01)
        one.process.kill()
        await one.process.wait()
        approved = await second.post("/api/loops/it/signals", json={"type": "approve"})
        assert approved.status_code == 200, approved.text
        assert (await followed(second, "/api/loops/it/stream"))[-1].data["stage"] == "complete"


async def test_nobody_listens_beyond_this_machine_without_tokens(tmp_path: Path) -> None:
    for options in (("--host", "0.0.0.0"), ("--tokens", "none.json"), ("--port", "70000")):
        (tmp_path / "served_agents.py").write_text(MODULE)
        environment = {**os.environ, "FOLDER": str(tmp_path), "FLYBALL_HOME": str(tmp_path / "home")}
        started = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "flyball", "serve", "served_agents", *options),
            cwd=tmp_path,
            env=environment,
            stderr=asyncio.subprocess.PIPE,
        )
        _, said = await asyncio.wait_for(started.communicate(), PATIENCE)
        assert started.returncode == 2
        assert b"CONFIG_USAGE" in said
        assert b"Traceback" not in said


async def test_on_nats_it_is_the_same(nats: NatsOptions) -> None:
    async with emptied(nats) as journal, Crew(journal, agents(), ["loop", "model", "tools"]) as crew:
        working = asyncio.create_task(crew.work())
        tenants = nats_services(agents(), nats)
        try:
            async with served(tenants) as client:
                await _on_nats(client, journal)
        finally:
            await tenants.aclose()
            working.cancel()
            await asyncio.gather(working, return_exceptions=True)


async def _on_nats(client: AsyncClient, journal: NatsJournal) -> None:
    answer = await client.post("/api/agents/counter/requests", json=ASK, params={"loop_id": "count"})
    assert (answer.status_code, answer.json()["content"]) == (200, "It is 3.")
    streamed = await client.post("/api/agents/counter/stream", json=ASK)
    assert "It is 3." in streamed.text
    begun = await client.post("/api/agents/buyer/loops", json=ASK, params={"loop_id": "buy"})
    assert begun.status_code == 202
    while not (await client.get("/api/loops/buy/waiting")).json()["calls"]:  # noqa: ASYNC110 - as a client does
        await asyncio.sleep(0.01)
    assert (await client.post("/api/loops/buy/signals", json={"type": "approve"})).status_code == 200
    told = await followed(client, "/api/loops/buy/stream")
    assert told[-1].data == {"loop_id": "buy", "stage": "complete"}
    for place, one in enumerate(told[:-2]):
        rest = await followed(client, "/api/loops/buy/stream", headers={"Last-Event-ID": one.id})
        numbers = [one.data["number"] for one in (*told[: place + 1], *rest) if one.event == "event"]
        assert numbers == list(range(1, len(numbers) + 1))
    forked = await client.post(
        "/api/loops/count/fork", json={"turn": 0, "prompt": "Again", "loop_id": "again"}
    )
    assert forked.status_code == 201, forked.text
    assert (await until_done(journal, "again")).outcome is Outcome.SUCCESS
    plan: dict[str, Any] = {"steps": [{"name": "one", "type": "infer", "input": "one"}]}
    planned = await client.post("/api/agents/echo/requests", json={**ASK, "mode": "plan", "plan": plan})
    assert planned.json()["content"] == "You said: one", planned.text
    listed = (await client.get("/api/loops", params={"roots_only": True})).json()["loops"]
    assert {"count", "buy", "again"} <= {one["loop_id"] for one in listed}
    assert (await client.get("/api/dead-letters")).json() == {"dead_letters": []}
    assert problem(await client.post("/api/dead-letters/7/requeue"))[0] == 404
    assert problem(await client.delete("/api/dead-letters/7"))[0] == 404
    assert problem(await client.delete("/api/dead-letters/seven"))[0] == 404


async def test_a_server_whose_journal_is_gone_is_not_ready(tmp_path: Path) -> None:
    async with process(tmp_path) as server, AsyncClient(base_url=server.url, timeout=PATIENCE) as client:
        assert (await client.get("/ready")).status_code == 200
        (tmp_path / "home" / "runs.db").unlink()
        answer = await client.get("/ready")
        assert answer.status_code == 503
        assert "the server's log says why" in answer.json()["reason"]
        assert str(tmp_path) not in answer.text
        server.process.send_signal(signal.SIGTERM)
        _, said = await server.ended()
        lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
        assert "is gone" in next(line["message"] for line in lines if line["event"] == "log")

"""The cluster of deploy/ on loopback: three nodes by its configuration, a worker, the API; one is killed."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from bench.nats.nodes import deployed
from httpx import AsyncClient

from flyball import Agent
from flyball.core.errors import FlyballError
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.accounts import Folder, Quota, Tenancy
from flyball.runtime.nats.accounts.system import system_account
from flyball.runtime.nats.connection import connect
from flyball.runtime.nats.identity import Role
from flyball.testing import ScriptedEngine
from tests.patience import PATIENCE

DEPLOY = Path(__file__).resolve().parent.parent.parent / "deploy"
ASK = {"messages": [{"role": "user", "content": "Hello"}]}


@asynccontextmanager
async def process(*command: str, **options: Any) -> AsyncGenerator[asyncio.subprocess.Process]:
    started = await asyncio.create_subprocess_exec(*command, **options)
    try:
        yield started
    finally:
        if started.returncode is None:
            started.kill()
        await started.wait()


@pytest.mark.slow
async def test_a_cluster_goes_on_without_one_of_its_nodes(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        nodes = await stack.enter_async_context(deployed(tmp_path, DEPLOY / "nats.conf", "secret"))
        servers = [f"nats://flyball:secret@127.0.0.1:{node.port}" for node in nodes]
        environment = {
            **os.environ,
            "FLYBALL_NATS": ",".join(servers),
            "FLYBALL_NATS_REPLICAS": "3",
            "FLYBALL_MODEL": "test:Hello to you.",
            "FLYBALL_HOME": str(tmp_path / "home"),
            "FLYBALL_ALLOW_MODEL_REQUESTS": "1",
        }
        ours: dict[str, Any] = {"cwd": DEPLOY / "agents", "env": environment}
        run = (sys.executable, "-m", "flyball")
        await stack.enter_async_context(
            process(*run, "worker", "served", **ours, stderr=asyncio.subprocess.DEVNULL)
        )
        api = await stack.enter_async_context(
            process(*run, "serve", "served", "--port", "0", "--quiet", **ours, stderr=asyncio.subprocess.PIPE)
        )
        assert api.stderr is not None
        async with asyncio.timeout(PATIENCE):
            line = (await api.stderr.readline()).decode()
        url = line.split(" at ")[1].split(",")[0]
        async with AsyncClient(base_url=url, timeout=PATIENCE) as client:
            answer = await client.post("/api/agents/assistant/requests", json=ASK, params={"loop_id": "one"})
            assert (answer.status_code, answer.json()["content"]) == (200, "Hello to you."), answer.text
            await nodes[0].kill()
            answer = await client.post("/api/agents/assistant/requests", json=ASK, params={"loop_id": "two"})
            assert (answer.status_code, answer.json()["content"]) == (200, "Hello to you."), answer.text
            listed = (await client.get("/api/loops")).json()["loops"]
            assert sorted(one["loop_id"] for one in listed) == ["one", "two"]


@pytest.mark.slow
async def test_a_tenant_is_added_to_a_cluster_that_runs_and_outlives_one_of_its_nodes(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "operator")
    folder.make("test")
    for file in (DEPLOY / "nats-tenants.conf", folder.path / "resolver.conf"):
        shutil.copy(file, tmp_path)
    agent = Agent(ScriptedEngine("One.", "Two."), name="counter")
    async with deployed(tmp_path, tmp_path / "nats-tenants.conf") as nodes, asyncio.timeout(PATIENCE):
        servers = tuple([f"nats://127.0.0.1:{node.port}" for node in nodes])
        options = NatsOptions(servers, replicas=3, patience=PATIENCE, credentials=folder.system_creds)
        while True:
            try:
                async with system_account(options) as system:
                    if await system.servers() == ["nats-1", "nats-2", "nats-3"]:
                        break
            except FlyballError:
                pass
            await asyncio.sleep(0.2)
        tenancy = Tenancy(folder, options)
        creds = await tenancy.add("acme", Quota(disk=2**30))
        for server in servers:  # each of them knows it
            alone = NatsOptions((server,), credentials=str(creds[Role.API]))
            await (await connect(alone)).aclose()
        with_all = NatsOptions(servers, credentials=str(creds[Role.ALL]), patience=PATIENCE)
        with_api = NatsOptions(servers[::-1], credentials=str(creds[Role.API]), patience=PATIENCE)
        async with (
            await NatsJournal.open(with_all) as journal,
            Crew(journal, [agent]),
            await NatsRuntime.open(with_api) as runtime,
        ):
            assert (journal.layout.replicas, journal.layout.apart) == (3, True)
            assert (await agent.run("?", runtime=runtime, loop_id="one")).output == "One."
            await nodes[0].kill()
            assert (await agent.run("?", runtime=runtime, loop_id="two")).output == "Two."
            assert await tenancy.change("acme", Quota(disk=2**31)) == ["nats-2", "nats-3"]
            (use,) = await tenancy.used()
            assert (use.tenant, use.quota.disk, use.streams) == ("acme", 2**31, 18)
            assert use.connections >= 2


@pytest.mark.slow
async def test_no_two_copies_of_a_stream_are_in_one_zone(tmp_path: Path) -> None:
    """Two nodes a zone, as docs/sizing.md has them: who loses a zone loses no majority."""
    zones = "121323"
    async with deployed(tmp_path, DEPLOY / "nats.conf", "secret", zones) as nodes:
        servers = tuple([f"nats://flyball:secret@127.0.0.1:{node.port}" for node in nodes])
        options = NatsOptions(servers, replicas=3, partitions=8, synced=True)
        async with await NatsJournal.open(options) as journal, await NatsRuntime.open(options):
            streams: list[Any] = await journal.connection.js.streams_info()
    assert len(streams) > 8
    for stream in streams:
        names = [stream.cluster.leader, *[one.name for one in stream.cluster.replicas]]
        assert sorted([zones[int(name.removeprefix("nats-")) - 1] for name in names]) == ["1", "2", "3"]

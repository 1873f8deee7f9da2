"""The cluster of deploy/ on loopback: three nodes by its configuration, a worker, the API; one is killed."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from flyball.runtime.nats import NatsJournal, NatsOptions
from flyball.runtime.nats.server.binary import find_binary
from tests.patience import PATIENCE

DEPLOY = Path(__file__).resolve().parent.parent.parent / "deploy"
ASK = {"messages": [{"role": "user", "content": "Hello"}]}


def free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()


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
    ports, routes = free_ports(3), free_ports(3)
    known = ", ".join([f'"nats://127.0.0.1:{port}"' for port in routes])
    async with AsyncExitStack() as stack:
        nodes: list[asyncio.subprocess.Process] = []
        for number, (port, route) in enumerate(zip(ports, routes, strict=True), 1):
            environment = {
                "NAME": f"nats-{number}",
                "ROUTES": f"[{known}]",
                "STORE": str(tmp_path / str(number)),
                "FLYBALL_NATS_PASSWORD": "secret",
            }
            command = [
                str(find_binary()),
                "--config",
                str(DEPLOY / "nats.conf"),
                "-a",
                "127.0.0.1",
                "-p",
                str(port),
            ]
            command += [
                "--cluster",
                f"nats://127.0.0.1:{route}",
                "-m",
                "0",
                "-l",
                str(tmp_path / f"{number}.log"),
            ]
            nodes.append(await stack.enter_async_context(process(*command, env=environment)))
        servers = [f"nats://flyball:secret@127.0.0.1:{port}" for port in ports]
        environment = {
            **os.environ,
            "FLYBALL_NATS": ",".join(servers),
            "FLYBALL_NATS_REPLICAS": "3",
            "FLYBALL_MODEL": "test:Hello to you.",
            "FLYBALL_HOME": str(tmp_path / "home"),
            "FLYBALL_ALLOW_MODEL_REQUESTS": "1",
        }
        await until_there(NatsOptions(tuple(servers), replicas=3))
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
            nodes[0].kill()
            await nodes[0].wait()
            answer = await client.post("/api/agents/assistant/requests", json=ASK, params={"loop_id": "two"})
            assert (answer.status_code, answer.json()["content"]) == (200, "Hello to you."), answer.text
            listed = (await client.get("/api/loops")).json()["loops"]
            assert sorted(one["loop_id"] for one in listed) == ["one", "two"]


async def until_there(options: NatsOptions) -> None:
    """Wait until the cluster keeps copies."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                async with await NatsJournal.open(options) as journal:
                    assert journal.layout.replicas == 3
                    return
            except Exception:
                await asyncio.sleep(0.2)

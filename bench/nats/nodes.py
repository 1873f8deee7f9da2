"""nats-servers for a measurement: one, or a cluster on loopback, synced as told, with their own counters."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.request import urlopen

from bench.nats.usage import cpu_seconds, resident_bytes
from flyball.runtime.nats import NatsOptions
from flyball.runtime.nats.server.binary import find_binary

Sync = Literal["always", "default"]
_PATIENCE = 30.0


class Used(NamedTuple):
    """What nodes used so far: CPU seconds, memory, bytes to disks, to and from clients, and other nodes."""

    cpu: float
    memory: int
    disk: int
    clients: int
    routes: int


class Node:
    """One server's process; it can be killed, and comes again with its data when it is started."""

    def __init__(self, name: str, conf: Path, monitor: int) -> None:
        self.name = name
        self._conf = conf
        self._monitor = f"http://127.0.0.1:{monitor}"
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it; it is not ready yet."""
        quiet = asyncio.subprocess.DEVNULL
        command = (str(find_binary()), "-c", str(self._conf))
        self._process = await asyncio.create_subprocess_exec(*command, stdout=quiet, stderr=quiet)

    async def kill(self) -> None:
        """End it at once, as a crash does."""
        if self._process is not None and self._process.returncode is None:
            self._process.kill()
            await self._process.wait()

    def used(self) -> Used:
        """What it used so far."""
        assert self._process is not None
        pid = self._process.pid
        io = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        all_of = self._asked("varz")
        routes = self._asked("routez").get("routes") or ()
        here, away = sum(one["in_bytes"] for one in routes), sum(one["out_bytes"] for one in routes)
        clients = all_of["in_bytes"] + all_of["out_bytes"] - here - away
        # What goes over a route is counted where it leaves: the other end has it too.
        return Used(cpu_seconds(pid), resident_bytes(pid), int(io["write_bytes"]), clients, away)

    def ready(self) -> bool:
        """Whether its streams can be used."""
        try:
            return self._asked("healthz")["status"] == "ok"
        except OSError:
            return False

    def _asked(self, what: str) -> dict[str, Any]:
        with urlopen(f"{self._monitor}/{what}", timeout=5) as answer:
            return json.load(answer)


class Nodes(NamedTuple):
    """Servers that are up, and how to come in."""

    nodes: Sequence[Node]
    options: NatsOptions

    def used(self) -> Used:
        """What all of them used so far."""
        return Used(*map(sum, zip(*[node.used() for node in self.nodes], strict=True)))


@asynccontextmanager
async def nodes(folder: Path, sync: Sync, number: int, partitions: int) -> AsyncGenerator[Nodes]:
    """So many servers, inside the block; as many copies of everything."""
    folder.mkdir(parents=True)  # noqa: ASYNC240 - nothing else is going on
    ports, routes, monitors = _free(number), _free(number), _free(number)
    started: list[Node] = []
    try:
        for n in range(number):
            conf = folder / f"{n}.conf"
            conf.write_text(
                _conf(folder / str(n), sync, n, port=ports[n], routes=routes, monitor=monitors[n])
            )
            started.append(Node(f"n{n}", conf, monitors[n]))
            await started[-1].start()
        await all_ready(started)
        servers = tuple([f"nats://127.0.0.1:{port}" for port in ports])
        yield Nodes(started, NatsOptions(servers, replicas=number, partitions=partitions))
    finally:
        for node in started:
            await node.kill()


async def all_ready(started: Sequence[Node]) -> None:
    """Wait until they can be used.

    Raises:
        TimeoutError: they cannot.
    """
    async with asyncio.timeout(_PATIENCE):
        while not all(node.ready() for node in started):  # noqa: ASYNC110 - there is no bell
            await asyncio.sleep(0.1)


def _conf(folder: Path, sync: Sync, number: int, *, port: int, routes: Sequence[int], monitor: int) -> str:
    lines = [
        f"listen: 127.0.0.1:{port}",
        f"http: 127.0.0.1:{monitor}",
        f"server_name: n{number}",
        f"log_file: {json.dumps(str(folder) + '.log')}",
        "max_payload: 8MB",
        f"jetstream {{ store_dir: {json.dumps(str(folder))}",
        "  sync_interval: always" if sync == "always" else "",
        "}",
    ]
    if len(routes) > 1:
        known = ", ".join([f'"nats://127.0.0.1:{route}"' for route in routes])
        lines.append(f"cluster {{ name: bench, listen: 127.0.0.1:{routes[number]}, routes: [{known}] }}")
    return "\n".join(lines) + "\n"


def _free(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()

"""nats-servers on loopback, for measurements and tests: one, or a cluster; each may go and come back.

`nodes` makes them by a configuration of its own, synced as told; `deployed` by one of deploy/.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, NamedTuple
from urllib.request import urlopen

from bench.nats.usage import cpu_seconds, resident_bytes
from flyball.runtime.nats import NatsOptions
from flyball.runtime.nats.server.binary import find_binary

Sync = Literal["always", "default"]
PATIENCE = 120.0
"""Seconds in which a server is ready, or never: what it takes is much less, unless the machine is busy."""
_LOOK = 0.05


class Used(NamedTuple):
    """What nodes used so far: CPU seconds, memory, bytes to disks, to and from clients, and other nodes."""

    cpu: float
    memory: int
    disk: int
    clients: int
    routes: int


class Node:
    """One server's process; it can be killed, and comes again with its data when it is started."""

    def __init__(
        self,
        name: str,
        arguments: Sequence[str],
        port: int,
        monitor: int,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`arguments` of nats-server; the ports are for clients, and for who asks how it is."""
        self.name = name
        self.port = port
        self._command = (str(find_binary()), *arguments)
        self.monitor = f"http://127.0.0.1:{monitor}"
        self._environment = environment
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Its process; None while it is down."""
        return self._process.pid if self._process is not None and self._process.returncode is None else None

    async def start(self) -> None:
        """Start it; it is not ready yet. One that is up stays as it is."""
        if self.pid is None:
            quiet = asyncio.subprocess.DEVNULL
            self._process = await asyncio.create_subprocess_exec(
                *self._command, stdout=quiet, stderr=quiet, env=self._environment
            )

    async def kill(self) -> None:
        """End it at once, as a crash does."""
        await self.end(signal.SIGKILL)

    async def end(self, how: signal.Signals) -> None:
        """Have it end by a signal, and wait until it has.

        SIGTERM: it hands over what it leads. SIGUSR2: before that its clients are sent away (lame duck).
        """
        if (pid := self.pid) is not None and self._process is not None:
            os.kill(pid, how)
            await self._process.wait()

    def used(self) -> Used:
        """What it used so far."""
        pid = self.pid
        assert pid is not None
        io = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        all_of = self._asked("varz")
        routes = self._asked("routez").get("routes") or ()
        here, away = sum(one["in_bytes"] for one in routes), sum(one["out_bytes"] for one in routes)
        clients = all_of["in_bytes"] + all_of["out_bytes"] - here - away
        # What goes over a route is counted where it leaves: the other end has it too.
        return Used(cpu_seconds(pid), resident_bytes(pid), int(io["write_bytes"]), clients, away)

    async def asked(self, what: str) -> dict[str, Any]:
        """What it tells of itself, such as `varz`, `jsz` or `healthz`.

        Raises:
            OSError: it is down, or not well.
        """
        return await asyncio.to_thread(self._asked, what)

    async def ready(self) -> bool:
        """Whether its streams can be used, and have caught up with what the others have."""
        try:
            return (await self.asked("healthz"))["status"] == "ok"
        except OSError:
            return False

    def _asked(self, what: str) -> dict[str, Any]:
        with urlopen(f"{self.monitor}/{what}", timeout=5) as answer:
            return json.load(answer)


class Nodes(NamedTuple):
    """Servers that were started, and how to come in."""

    nodes: Sequence[Node]
    options: NatsOptions

    def used(self) -> Used:
        """What all of them used so far."""
        return Used(*map(sum, zip(*[node.used() for node in self.nodes], strict=True)))

    def named(self, name: str) -> Node:
        """The node of a name."""
        (node,) = [node for node in self.nodes if node.name == name]
        return node

    async def meta_leader(self) -> Node:
        """Who leads the cluster: it decides where streams are. There is one, or one is waited for.

        Raises:
            TimeoutError: none is chosen.
        """
        async with asyncio.timeout(PATIENCE):
            while True:
                for node in self.nodes:
                    if node.pid is not None and await node.ready():
                        told = (await node.asked("jsz")).get("meta_cluster", {})
                        if name := told.get("leader"):
                            return self.named(name)
                await asyncio.sleep(_LOOK)


@asynccontextmanager
async def nodes(
    folder: Path, sync: Sync, number: int, partitions: int, stores: Sequence[Path] | None = None
) -> AsyncGenerator[Nodes]:
    """So many servers, inside the block; as many copies of everything.

    `stores`: the folder of each for what it keeps, if not beside its log.
    """
    folder.mkdir(parents=True)  # noqa: ASYNC240 - nothing else is going on
    ports, routes, monitors = free_ports(number), free_ports(number), free_ports(number)
    made: list[Node] = []
    for n in range(number):
        store = stores[n] if stores else folder / str(n)
        log, conf = folder / f"{n}.log", folder / f"{n}.conf"
        conf.write_text(_conf(n, store, log, sync, port=ports[n], routes=routes, monitor=monitors[n]))
        made.append(Node(f"n{n}", ("-c", str(conf)), ports[n], monitors[n]))
    servers = tuple([f"nats://127.0.0.1:{port}" for port in ports])
    async with _up(made):
        options = NatsOptions(
            servers, replicas=number, partitions=partitions, synced=True
        )  # or meant not to be
        yield Nodes(made, options)


@asynccontextmanager
async def deployed(
    folder: Path, config: Path, password: str = "", zones: Sequence[str] = ("1", "2", "3")
) -> AsyncGenerator[Sequence[Node]]:
    """Servers by a configuration of deploy/, one for each zone that is named, inside the block."""
    ports, routes, monitors = [free_ports(len(zones)) for _ in range(3)]
    known = ", ".join([f'"nats://127.0.0.1:{route}"' for route in routes])
    made: list[Node] = []
    for number, (port, route, monitor) in enumerate(zip(ports, routes, monitors, strict=True), 1):
        environment = {
            "NAME": f"nats-{number}",
            "ZONE": f'"zone:{zones[number - 1]}"',
            "ROUTES": f"[{known}]",
            "STORE": str(folder / str(number)),
            "STORE_SIZE": "50GB",
            "ACCOUNTS": str(folder / f"{number}-accounts"),
            "FLYBALL_NATS_PASSWORD": password,
        }
        arguments = ["--config", str(config), "-a", "127.0.0.1", "-p", str(port), "-m", str(monitor)]
        arguments += ["--cluster", f"nats://127.0.0.1:{route}", "-l", str(folder / f"{number}.log")]
        made.append(Node(f"nats-{number}", arguments, port, monitor, environment))
    async with _up(made):
        yield made


@asynccontextmanager
async def _up(made: Sequence[Node]) -> AsyncGenerator[None]:
    """Start servers, and have them all ready; they end with the block."""
    try:
        for node in made:
            await node.start()
        await all_ready(made)
        yield
    finally:
        for node in made:
            await node.kill()


async def all_ready(started: Sequence[Node]) -> None:
    """Wait until they can be used.

    Raises:
        TimeoutError: they cannot.
    """
    async with asyncio.timeout(PATIENCE):
        for node in started:
            while not await node.ready():  # noqa: ASYNC110 - there is no bell
                await asyncio.sleep(_LOOK)


def _conf(
    number: int, store: Path, log: Path, sync: Sync, *, port: int, routes: Sequence[int], monitor: int
) -> str:
    lines = [
        f"listen: 127.0.0.1:{port}",
        f"http: 127.0.0.1:{monitor}",
        f"server_name: n{number}",
        f"log_file: {json.dumps(str(log))}",
        "max_payload: 8MB",
        # A lame duck sends its clients away at once, one after the other.
        'lame_duck_grace_period: "100ms"',
        f"jetstream {{ store_dir: {json.dumps(str(store))}",
        "  sync_interval: always" if sync == "always" else "",
        "}",
    ]
    if len(routes) > 1:
        known = ", ".join([f'"nats://127.0.0.1:{route}"' for route in routes])
        lines.append(f"cluster {{ name: bench, listen: 127.0.0.1:{routes[number]}, routes: [{known}] }}")
    return "\n".join(lines) + "\n"


def free_ports(number: int) -> list[int]:
    """Ports of this machine that nobody has just now, each another."""
    sockets = [socket.socket() for _ in range(number)]
    try:
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
    finally:
        for one in sockets:
            one.close()

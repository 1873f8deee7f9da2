"""Requests over keep-alive connections, as fast as the server takes them; and what each costs it."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from bench.api.agents import ANSWER
from bench.api.serving import Serving, served
from bench.api.wire import Crowd, asked, connect, request
from bench.nats.usage import cpu_seconds

HERE = Path(__file__).resolve().parent


_TICK = 0.01
"""Seconds by which the system counts a process's time: what takes less is not told from nothing."""


class Cost(NamedTuple):
    """What a request takes: seconds of the processor, and of the clock."""

    cpu: float
    clock: float


class Case(NamedTuple):
    """A way to run the server, and what `System.handle` is measured over beside it."""

    name: str
    what: str
    log: bool = False
    tokens: bool = False
    memory: bool = False


CASES = (
    Case("memory", "journal in memory, no log", memory=True),
    Case("sqlite", "SQLite, no log"),
    Case("log", "SQLite, a line in the log for each", log=True),
    Case("tokens", "SQLite, the log, and tokens", log=True, tokens=True),
)


def lowest(costs: list[Cost]) -> Cost:
    """The lowest of the rounds: what else the machine does only adds to them."""
    return Cost(min(cost.cpu for cost in costs), min(cost.clock for cost in costs))


def over_http(case: Case, count: int, at_once: int, profile: Path | None = None) -> Cost:
    """A request to a server of its own."""
    with tempfile.TemporaryDirectory(prefix="flyball-bench-") as folder:
        options = {"log": case.log, "tokens": case.tokens, "memory": case.memory, "profile": profile}
        with served(Path(folder), **options) as server:
            _ask(server, max(count // 10, at_once), at_once)
            clock, cpu = time.perf_counter(), cpu_seconds(server.pid)
            _ask(server, count, at_once)
            cpu, clock = cpu_seconds(server.pid) - cpu, time.perf_counter() - clock
            return Cost(max(cpu, _TICK) / count, clock / count)


def _ask(server: Serving, count: int, at_once: int) -> None:
    """Have so many requests served, so many of them at once."""
    message = request("POST", "/api/agents/quick/requests", asked("How are you?"), server.token)
    crowd, sent, answered = Crowd(), 0, 0
    for _ in range(min(at_once, count)):
        crowd.send(connect(server.port), message)
        sent += 1
    while answered < count:
        for connection, reply in crowd.heard():
            if not reply.done:
                continue
            if reply.status != 200 or ANSWER.encode() not in reply.body:
                raise SystemExit(f"the server answered {reply.status}: {bytes(reply.body[:500])!r}")
            answered += 1
            if sent < count:
                crowd.send(connection, message)
                sent += 1
    crowd.leave()


def handled(case: Case, count: int, at_once: int) -> Cost:
    """A request to `System.handle` itself, in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="flyball-bench-") as folder:
        file = [] if case.memory else [str(Path(folder) / "runs.db")]
        command = [sys.executable, str(HERE / "direct.py"), str(count), str(at_once), *file]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"System.handle failed:\n{done.stderr[-2000:]}")
    return Cost(**json.loads(done.stdout))

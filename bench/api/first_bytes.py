"""How soon after the engine gave a piece its bytes are with the client, on the clock that both share."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from bench.api.serving import served
from bench.api.wire import Reply, asked, connect, once, request

Way: TypeAlias = Literal["floor", "POST", "GET"]

WAYS: tuple[Way, ...] = ("POST", "GET")

HERE = Path(__file__).resolve().parent
_EVERY = 0.005
"""Seconds between two pieces that are timed."""
_PIECE = re.compile(rb'"text":"(\d+) "')


class Delay(NamedTuple):
    """Seconds from the engine to the client: of the middle piece, and of the slowest but one in a hundred."""

    p50: float
    p99: float


def delays(pieces: int, others: int, every: float) -> dict[Way, Delay]:
    """The delays of a bare server and over both streams, while so many others are open that tell, too.

    Args:
        pieces: how many pieces are timed.
        others: how many other streams there are.
        every: seconds between two pieces of each of them.
    """
    found: dict[Way, Delay] = {}
    with _floor() as port, _others(port, others, every):
        found["floor"] = _timed(port, "floor", pieces)
    with (
        tempfile.TemporaryDirectory(prefix="flyball-bench-") as folder,
        served(Path(folder)) as server,
        _others(server.port, others, every),
    ):
        for way in WAYS:
            found[way] = _timed(server.port, way, pieces)
    return found


@contextmanager
def _floor() -> Generator[int]:
    command = [sys.executable, str(HERE / "floor.py")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        yield int(process.stdout.readline())
        process.kill()


@contextmanager
def _others(port: int, count: int, every: float) -> Generator[None]:
    if not count:
        yield
        return
    command = [sys.executable, str(HERE / "others.py"), str(port), str(count), str(every)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            raise SystemExit("the other streams did not begin")
        yield
        process.stdin.close()


def _timed(port: int, way: Way, pieces: int) -> Delay:
    found: list[float] = []
    with connect(port) as connection:
        if way != "GET":
            prompt = json.dumps({"pieces": pieces, "every": _EVERY})
            connection.sendall(request("POST", "/api/agents/teller/stream", asked(prompt)))
        else:
            prompt = json.dumps({"pieces": pieces, "every": _EVERY, "gate": "timed"})
            begun = once(port, request("POST", "/api/agents/teller/loops", asked(prompt))).json()
            connection.sendall(request("GET", f"/api/loops/{begun['loop_id']}/stream"))
        reply, seen = Reply(), 0
        while not reply.done:
            reply.feed(connection.recv(65536))
            now = time.monotonic_ns()
            if way == "GET" and not seen and b'"model_answered"' in reply.body:
                once(port, request("POST", "/api/agents/opener/requests", asked("timed")))
                seen = len(reply.body)
            for match in _PIECE.finditer(reply.body, seen):
                found.append((now - int(match[1])) / 1e9)
                seen = match.end()
    if len(found) != pieces:
        raise SystemExit(f"{len(found)} pieces came, of {pieces}")
    found.sort()
    return Delay(found[pieces // 2], found[pieces * 99 // 100])

"""Many who follow loops by server-sent events: what memory they take, and whether each was told all."""

from __future__ import annotations

import json
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.api.serving import Serving, served
from bench.api.wire import Crowd, Reply, asked, connect, once, request
from bench.nats.usage import cpu_seconds, resident_bytes

_SAMPLE = 0.05
"""Seconds between two looks at the server's memory."""


class Round(NamedTuple):
    """One round: the server's memory, in bytes, as it went on; and what it told to all together."""

    pieces: int
    before: int
    joined: int
    peak: int
    left: int
    frames: int
    cpu: float


def follow(loops: int, each: int, pieces: list[int]) -> list[Round]:
    """Rounds of joining, being told and leaving, on one server: so many loops, so many who follow each.

    Args:
        loops: how many loops there are.
        each: how many follow each of them.
        pieces: how many pieces an answer has, round by round.
    """
    with tempfile.TemporaryDirectory(prefix="flyball-bench-") as folder, served(Path(folder)) as server:
        for number in range(2):  # what a process takes once, it takes here
            _round(server, f"warm-{number}", loops, each, pieces[0])
        return [_round(server, f"gate-{number}", loops, each, n) for number, n in enumerate(pieces)]


def _round(server: Serving, gate: str, loops: int, each: int, pieces: int) -> Round:
    before = resident_bytes(server.pid)
    crowd = Crowd()
    for loop_id in _begun(server, gate, loops, pieces):
        for _ in range(each):
            crowd.send(connect(server.port), request("GET", f"/api/loops/{loop_id}/stream"))
    while not all(b'"model_answered"' in reply.body for reply in _of(crowd)):
        list(crowd.heard())
    joined = peak = resident_bytes(server.pid)
    cpu, looked = cpu_seconds(server.pid), time.monotonic()
    once(server.port, request("POST", "/api/agents/opener/requests", asked(gate)))
    while not all(reply.done for reply in _of(crowd)):
        list(crowd.heard())
        if time.monotonic() - looked > _SAMPLE:
            peak, looked = max(peak, resident_bytes(server.pid)), time.monotonic()
    peak, cpu = max(peak, resident_bytes(server.pid)), cpu_seconds(server.pid) - cpu
    bodies = Counter(bytes(reply.body) for reply in _of(crowd))
    frames = sum([check(body, pieces) * times for body, times in bodies.items()])
    crowd.leave()
    _until_left(server)
    return Round(pieces, before, joined, peak, resident_bytes(server.pid), frames, cpu)


def _of(crowd: Crowd) -> list[Reply]:
    return list(crowd.replies.values())


def _begun(server: Serving, gate: str, loops: int, pieces: int) -> list[str]:
    """Loops that wait at a gate."""
    body = asked(json.dumps({"gate": gate, "pieces": pieces}))
    message = request("POST", "/api/agents/teller/loops", body)
    return [once(server.port, message).json()["loop_id"] for _ in range(loops)]


def _until_left(server: Serving) -> None:
    """Wait until the server has seen that all are gone."""
    while b"\nflyball_http_streams 0.0\n" not in once(server.port, request("GET", "/metrics")).body:
        time.sleep(_SAMPLE)


def check(body: bytes, pieces: int) -> int:
    """Look whether somebody was told all of a loop, each thing once and in order; how many frames it took.

    Raises:
        SystemExit: it was not.
    """
    numbers: list[int] = []
    text, answer, last, frames = "", "", "", 0
    for name, data in told(body):
        frames += 1
        last = name
        if name == "event":
            numbers.append(data["number"])
            answer = _answer_in(data["event"]) or answer
        elif name == "piece" and data["stream"] == "text":
            text += data["text"]
    if numbers != list(range(1, len(numbers) + 1)) or last != "over":
        raise SystemExit(f"events were lost, doubled or out of order: {numbers}, and last {last!r}")
    if text != answer or text.count(" ") != pieces:
        raise SystemExit(f"told {text.count(' ')} pieces of {pieces}, which are not the recorded answer")
    return frames


def told(body: bytes) -> Iterator[tuple[str, Any]]:
    """The events of a stream: what each is called, and what it says. Heartbeats are left out."""
    for frame in body.split(b"\n\n"):
        fields = dict([line.split(b": ", 1) for line in frame.split(b"\n") if b": " in line])
        if b"data" in fields:
            yield fields[b"event"].decode(), json.loads(fields[b"data"])


def _answer_in(event: dict[str, Any]) -> str:
    """The text of an answer that was recorded; none where it is no answer."""
    if event["event"] != "model_answered":
        return ""
    return "".join([part["text"] for part in event["message"]["parts"] if part["kind"] == "text"])

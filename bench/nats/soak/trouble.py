"""Who is killed, and when: by how far the tools have got, so that it is always in the middle of things."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.nats.soak.crowd import KINDS, Crowd, name_of
from flyball.runtime.nats import EmbeddedServer

SERVER = -1
_EVERY_SO_OFTEN = 6
"""One kill in so many is the server's, and the last one always is."""
_LOOK = 0.02


class Kill(NamedTuple):
    """When so many tool calls have begun, this process is killed; `SERVER` is the server."""

    calls: int
    victim: int


def kills(number: int, calls: int, seed: int) -> list[Kill]:
    """The kills of a soak with so many tool calls: the same for the same seed."""
    chance = random.Random(seed)
    when = sorted([chance.randint(1, max(calls * 9 // 10, 1)) for _ in range(number)])
    victims = [
        SERVER
        if n % _EVERY_SO_OFTEN == _EVERY_SO_OFTEN - 1 or n == number - 1
        else chance.randrange(len(KINDS))
        for n in range(number)
    ]
    return [Kill(*one) for one in zip(when, victims, strict=True)]


async def make_trouble(
    plan: Sequence[Kill], notes: Path, server: EmbeddedServer, crowd: Crowd, killed: Counter[str]
) -> None:
    """Carry a plan out; counts what was killed."""
    for kill in plan:
        while _lines(notes) < kill.calls:  # noqa: ASYNC110 - other processes write it
            await asyncio.sleep(_LOOK)
        if kill.victim == SERVER:
            while (pid := _pid(server)) is None:  # noqa: ASYNC110 - it comes again by itself
                await asyncio.sleep(_LOOK)
            restarts = server.restarts
            os.kill(pid, signal.SIGKILL)
            killed["server"] += 1
            while server.restarts == restarts:  # noqa: ASYNC110 - likewise
                await asyncio.sleep(_LOOK)
        else:
            await crowd.kill(kill.victim)
            killed[name_of(KINDS[kill.victim])] += 1


def _pid(server: EmbeddedServer) -> int | None:
    """The server's process, once it listens."""
    try:
        return server.pid
    except IndexError:
        return None


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0

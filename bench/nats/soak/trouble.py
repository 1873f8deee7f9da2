"""Who is killed, and when: by how far the tools have got, so that it is always in the middle of things."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.nats.nodes import Node
from bench.nats.soak.crowd import KINDS, Crowd, name_of

SERVER = -1
_EVERY_SO_OFTEN = 6
"""One kill in so many is a server's, and the last one always is."""
_TWO = 4
"""One kill of a server in so many is of two at once, where there are three: all wait until they are back."""
_LONGEST = 8.0
"""Seconds that a node of several is down at most: about as long as an election takes."""
_LOOK = 0.02


class Kill(NamedTuple):
    """When so many tool calls have begun, this process is killed.

    `SERVER` are those of `nodes`, which are down for some seconds. A worker comes again at once.
    """

    calls: int
    victim: int
    nodes: tuple[int, ...] = ()
    seconds: float = 0.0


def kills(number: int, calls: int, seed: int, nodes: int = 1, first: int = 0) -> list[Kill]:
    """The kills of a soak with so many tool calls after the first ones: the same for the same seed."""
    chance = random.Random(seed)
    when = sorted([first + chance.randint(1, max(calls * 9 // 10, 1)) for _ in range(number)])
    found: list[Kill] = []
    servers = 0
    for n, at in enumerate(when):
        if n % _EVERY_SO_OFTEN != _EVERY_SO_OFTEN - 1 and n != number - 1:
            found.append(Kill(at, chance.randrange(len(KINDS))))
            continue
        servers += 1
        several = 2 if nodes > 2 and servers % _TWO == 0 else 1
        down = tuple(chance.sample(range(nodes), several))
        found.append(Kill(at, SERVER, down, chance.uniform(0, _LONGEST) if nodes > 1 else 0.0))
    return found


async def make_trouble(
    plan: Iterable[Kill], notes: Path, nodes: Sequence[Node], crowd: Crowd, killed: Counter[str]
) -> None:
    """Carry a plan out; counts what was killed. No node is left down, also by who is cancelled."""
    for kill in plan:
        while _lines(notes) < kill.calls:  # noqa: ASYNC110 - other processes write it
            await asyncio.sleep(_LOOK)
        if kill.victim != SERVER:
            killed[name_of(KINDS[kill.victim])] += 1  # also one that is not back when all is over
            await crowd.kill(kill.victim)
            continue
        down = [nodes[number] for number in kill.nodes]
        try:
            for node in down:
                killed["server"] += 1
                await node.kill()
            await asyncio.sleep(kill.seconds)
        finally:
            for node in down:
                await node.start()


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0

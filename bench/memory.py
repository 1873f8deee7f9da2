"""How much memory 1,000 runs at once take at their peak, beside the floor's.

Each peer is looked at in fresh processes, once as Python's allocators count it (tracemalloc) and once as the
operating system does (the resident set). A few runs go before, so that what is made once is not counted; they
are few, so that they leave no room behind which the thousand could use.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
from typing import Any, Literal, TypeAlias

import floor
import workloads as c

from bench import ROOT, flyball_peer
from bench.asking import CROWD_TURNS, WORKLOADS, check_answer
from bench.figures import Figures
from bench.peak import resident_peak, traced_peak
from bench.proof import prove
from bench.runs import PROOFS
from bench.timing import Effort

Name: TypeAlias = Literal["floor", "flyball"]
Way: TypeAlias = Literal["traced", "resident"]


async def traced(effort: Effort) -> Figures:
    """As Python's allocators count it."""
    return _both("traced", effort)


async def resident(effort: Effort) -> Figures:
    """As the operating system counts it: in whole pages, with what the allocators waste."""
    return _both("resident", effort)


def _both(way: Way, effort: Effort) -> Figures:
    times = range(effort.a_share(6).rounds)
    lowest = [min(in_fresh_process(name, way) for _ in times) for name in ("floor", "flyball")]
    return Figures(lowest[0], lowest[1], "bytes")


def in_fresh_process(name: str, way: Way) -> int:
    """`growth`, in a process of its own."""
    finished = subprocess.run(
        [sys.executable, "-m", "bench.memory", name, way], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    return int(finished.stdout)


async def growth(name: Name, way: Way) -> int:
    """By how many bytes this process grows, at the peak, while the runs of W5 are in flight."""
    workload = WORKLOADS["W5"]
    peer: Any = (floor if name == "floor" else flyball_peer).Peer(CROWD_TURNS)
    c.CONCURRENT = True
    for _ in range(10):
        await peer.tools()
    gc.collect()
    peak = traced_peak() if way == "traced" else resident_peak()
    await check_answer(workload.ask(peer), workload, workload.seen)
    grown = peak()
    if name == "flyball":
        await prove(peer.result, PROOFS["W5"])
    return grown


if __name__ == "__main__":
    print(asyncio.run(growth(sys.argv[1], sys.argv[2])))  # pyright: ignore[reportArgumentType]

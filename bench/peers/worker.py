"""One framework on one workload, in a process of its own: python -m bench.peers.worker MODULE ROW SAMPLE_NS

It says one JSON document a line: `ready` once the answer has been checked, a `figure` for each line that it
reads (how many samples a round has), and `done` when there are no more and the tool's runs have been counted.
A framework that has no such thing says `absent`; `void` tells why the figures do not count. Without a row it
says what it is, and ends.

This module runs in every framework's environment, so it imports no more than the workloads do.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import version
from types import ModuleType
from typing import Any, TextIO, TypeAlias

import workloads as c

from bench.asking import CROWD_TURNS, WORKLOADS, Void, calls_made, check_answer, check_calls
from bench.peak import resident_peak
from bench.timing import batch_size, one_round

Say: TypeAlias = Callable[[dict[str, Any]], None]


async def work(module: ModuleType, row: str, sample_ns: int, orders: TextIO, say: Say) -> None:
    """Measure a row as it is ordered, and answer."""
    try:
        if row == "memory":
            say({"ready": True})
            for _ in orders:
                say({"figure": await memory(module)})
            say({"done": True})
        else:
            await timed(module, row, sample_ns, orders, say)
    except Void as void:
        say({"void": str(void)})


async def timed(module: ModuleType, row: str, sample_ns: int, orders: TextIO, say: Say) -> None:
    """Check the workload's answer, then time it round by round.

    Raises:
        Void: an answer, a count or flyball's journal is not what it must be.
    """
    workload = WORKLOADS[row]
    c.CONCURRENT = workload.runs > 1
    peer = module.Peer(workload.turns)
    if row == "W3t" and not hasattr(peer, "structured_by_tool"):
        say({"absent": True})
        return
    call = workload.ask(peer)
    await check_answer(call, workload, workload.seen - apart(module))
    before = calls_made()
    # A thousand runs are a sample in any case; to find that out would take as long as to measure them.
    size, made = (1, 0) if workload.runs > 1 else await batch_size(call, sample_ns)
    say({"ready": True})
    for order in orders:
        samples = int(order)
        say({"figure": await one_round(call, size, samples)})
        made += samples * size
    check_calls(calls_made() - before, made * workload.runs * workload.turns)
    if module.__name__ == "bench.flyball_peer":
        from bench.runs import prove_last

        await prove_last(peer, row)
    say({"done": True})


async def memory(module: ModuleType) -> int:
    """By how many bytes this process grows, at the peak, while the runs of W5 are in flight.

    Raises:
        Void: they do not answer as they must.
    """
    workload = WORKLOADS["W5"]
    peer = module.Peer(CROWD_TURNS)
    c.CONCURRENT = True
    for _ in range(10):
        await peer.tools()
    gc.collect()
    peak = resident_peak()
    await check_answer(workload.ask(peer), workload, workload.seen - apart(module))
    return peak()


def apart(module: ModuleType) -> int:
    """How many of the messages a framework gives to its models in another way than as messages."""
    return getattr(module, "APART", 0)


def about(module: ModuleType) -> dict[str, Any]:
    """What is measured: the versions, how it is used, and how it is imported."""
    versions = {name: version(name) for name in module.DISTS}
    return {"versions": versions, "notes": module.NOTES, "import": module.IMPORT}


def main(arguments: Sequence[str]) -> None:
    """Answer on what was standard output; whatever a framework prints goes to standard error."""
    with os.fdopen(os.dup(1), "w") as answers:
        os.dup2(2, 1)

        def say(said: dict[str, Any]) -> None:
            answers.write(json.dumps(said) + "\n")
            answers.flush()

        module = import_module(arguments[0])
        if len(arguments) == 1:
            say(about(module))
        else:
            asyncio.run(work(module, arguments[1], int(arguments[2]), sys.stdin, say))


if __name__ == "__main__":
    main(sys.argv[1:])

"""What must not grow with a run's length: the cost of a turn, of a delta, and the journal's bytes for a turn.

What a run costs before its first turn is taken off, so that it cannot hide a growth; the shorter run is the
base, and both are flyball's.
"""

from __future__ import annotations

from bench.asking import Void, calls_made, check_calls
from bench.figures import Figures
from bench.flyball_peer import UNLIMITED, Peer
from bench.proof import Expected, prove
from bench.runs import events_of_run, tool_proof
from bench.timing import Effort, in_turns
from flyball.core.codec import encode_event

FEW_TURNS, MANY_TURNS = 20, 200
FEW_DELTAS, MANY_DELTAS = 1_000, 10_000


async def turns(effort: Effort) -> Figures:
    """The cost of a turn in a long run, beside a short one."""
    sizes = (0, FEW_TURNS, MANY_TURNS)
    peers = [Peer(size, limits=UNLIMITED) for size in sizes]
    before = calls_made()
    times = await in_turns([peer.tools for peer in peers], effort)
    check_calls(calls_made() - before, sum(timed.calls * n for timed, n in zip(times, sizes, strict=True)))
    for peer, size in zip(peers, sizes, strict=True):
        await prove(peer.result, tool_proof(size))
    none, few, many = [timed.ns for timed in times]
    return Figures((few - none) / FEW_TURNS, (many - none) / MANY_TURNS)


async def deltas(effort: Effort) -> Figures:
    """The cost of a delta in a long stream, beside a short one."""
    sizes = (1, FEW_DELTAS, MANY_DELTAS)
    pieces = [[f"tok{i % 10} " for i in range(size)] for size in sizes]
    peers = [Peer(0, deltas=some) for some in pieces]
    for peer, size in zip(peers, sizes, strict=True):
        if (seen := await peer.stream()) != size:
            raise Void(f"{seen} deltas of {size} came out of the stream")
    times = await in_turns([peer.stream for peer in peers], effort)
    for peer, some in zip(peers, pieces, strict=True):
        await prove(peer.result, Expected("".join(some), events_of_run()))
    one, few, many = [timed.ns for timed in times]
    return Figures((few - one) / (FEW_DELTAS - 1), (many - one) / (MANY_DELTAS - 1))


async def journal(_: Effort) -> Figures:
    """The journal's bytes for a turn of a long run, beside a short one."""
    none, few, many = [await _journal_size(size) for size in (0, FEW_TURNS, MANY_TURNS)]
    return Figures((few - none) / FEW_TURNS, (many - none) / MANY_TURNS, "bytes")


async def _journal_size(size: int) -> int:
    peer = Peer(size, limits=UNLIMITED)
    await peer.tools()
    await prove(peer.result, tool_proof(size))
    assert peer.result is not None
    return sum([len(encode_event(event)) for event in await peer.result.events()])

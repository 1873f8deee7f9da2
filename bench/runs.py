"""The workloads W1 to W6: flyball beside the floor.

Both are asked for the expected answer before they are timed. Afterwards the tool must have run as often as
the timed calls make it, and flyball's last run is proven from its journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import floor
import workloads as c

from bench import flyball_peer
from bench.asking import CROWD_TURNS, WORKLOADS, calls_made, check_answer, check_calls
from bench.figures import Figures
from bench.proof import Expected, prove, prove_same
from bench.timing import Effort, in_turns


def events_of_run(turns: int = 0) -> Mapping[str, int]:
    """What a run with so many tool turns leaves in its journal."""
    return {"Started": 1, "ModelAnswered": turns + 1, "ToolReturned": turns, "Ended": 1}


def tool_proof(turns: int) -> Expected:
    """What a run with so many tool turns must have left: turn n adds n and 1."""
    return Expected(c.ANSWER, events_of_run(turns), tuple(range(1, turns + 1)))


_TYPED = Expected(c.REPORT, {**events_of_run(), "TurnSettled": 1}, kind=c.Report)
_TEN = tool_proof(c.TURNS)

PROOFS: Mapping[str, Expected] = {
    "W1": tool_proof(0),
    "W2": _TEN,
    "W2t": _TEN,
    "W3": _TYPED,
    "W3t": _TYPED,
    "W4": Expected(c.STREAMED, events_of_run()),
    "W5": tool_proof(CROWD_TURNS),
    "W6": tool_proof(0),
}
"""What a run of each workload must have left in flyball's journal."""


async def measure(name: str, effort: Effort) -> Figures:
    """Measure one workload.

    Raises:
        Void: an answer, a count or the journal is not what it must be.
    """
    workload = WORKLOADS[name]
    c.CONCURRENT = workload.runs > 1
    peer = flyball_peer.Peer(workload.turns)
    ask_floor = workload.ask_floor or workload.ask
    subjects = [ask_floor(floor.Peer(workload.turns)), workload.ask(peer)]
    await check_answer(subjects[0], workload, workload.seen if workload.floor_says else 0)
    await check_answer(subjects[1], workload, workload.seen)
    before = calls_made()
    if workload.runs > 1:
        effort = effort.a_share(6)
    times = await in_turns(subjects, effort)
    check_calls(calls_made() - before, sum(timed.calls for timed in times) * workload.runs * workload.turns)
    await prove_last(peer, name)
    return Figures(times[0].ns, times[1].ns)


w1, w2, w2t, w3, w3t, w4, w5, w6 = [partial(measure, name) for name in WORKLOADS]


async def prove_last(peer: flyball_peer.Peer, name: str) -> None:
    """Prove the peer's last run of a workload from its journal.

    Raises:
        Void: it cannot be proven.
    """
    await prove(peer.result, PROOFS[name])
    if name == "W4":
        await check_stream(peer)


async def check_stream(peer: flyball_peer.Peer) -> None:
    """Compare the journal of a streamed run with that of a plain one.

    Raises:
        Void: they differ.
    """
    journals: list[Any] = []
    for ask in (peer.stream, peer.streamed_whole):
        await ask()
        assert peer.result is not None
        journals.append(await peer.result.events())
    prove_same(*journals)

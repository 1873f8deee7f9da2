"""The workloads W1 to W6: flyball beside the floor.

Both are asked for the expected answer before they are timed. Afterwards the tool must have run as often as
the timed calls make it, and flyball's last run is proven from its journal.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import floor
import workloads as c

from bench import flyball_peer
from bench.figures import Figures
from bench.proof import Expected, Void, prove, prove_same
from bench.timing import Call, Effort, in_turns

CROWD = 1000
"""How many runs of W5 are in flight together."""
CROWD_TURNS = 3

Ask: TypeAlias = Callable[[Any], Call]
"""Gives what is called to have a peer do the workload once."""


class Workload(NamedTuple):
    """One workload: how a peer is asked for it, and what must come of it.

    `turns` is how many tool turns the model asks for; `runs` how many runs one call makes; `seen` how many
    messages the model is given last (the floor's model does not always say, `floor_says`).
    """

    ask: Ask
    answer: object
    proof: Expected
    turns: int = 0
    runs: int = 1
    seen: int = 2
    ask_floor: Ask | None = None
    floor_says: bool = True


def events_of_run(turns: int = 0) -> Mapping[str, int]:
    """What a run with so many tool turns leaves in its journal."""
    return {"Started": 1, "ModelAnswered": turns + 1, "ToolReturned": turns, "Ended": 1}


def tool_proof(turns: int) -> Expected:
    """What a run with so many tool turns must have left: turn n adds n and 1."""
    return Expected(c.ANSWER, events_of_run(turns), tuple(range(1, turns + 1)))


def crowd(peer: Any) -> Call:
    """Many runs at once."""

    async def together() -> list[str]:
        return await asyncio.gather(*[peer.tools() for _ in range(CROWD)])

    return together


def long_conversation(peer: Any) -> Call:
    """One reply after many messages, which are made once."""
    return partial(peer.history, peer.prior())


def calls_made() -> int:
    """How often the tool has run."""
    return c.calls  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


_TYPED = Workload(
    attrgetter("structured"),
    c.REPORT,
    Expected(c.REPORT, {**events_of_run(), "TurnSettled": 1}, kind=c.Report),
    floor_says=False,
)
_TEN = Workload(attrgetter("tools"), c.ANSWER, tool_proof(c.TURNS), c.TURNS, seen=2 + 2 * c.TURNS)

WORKLOADS: Mapping[str, Workload] = {
    "W1": Workload(attrgetter("text"), c.ANSWER, tool_proof(0)),
    "W2": _TEN,
    "W2t": _TEN._replace(ask=attrgetter("tools_timeout"), ask_floor=attrgetter("tools")),
    "W3": _TYPED,
    "W3t": _TYPED._replace(ask=attrgetter("structured_by_tool"), ask_floor=attrgetter("structured")),
    "W4": Workload(attrgetter("stream"), c.N_DELTAS, Expected(c.STREAMED, events_of_run()), floor_says=False),
    "W5": Workload(
        crowd, [c.ANSWER] * CROWD, tool_proof(CROWD_TURNS), CROWD_TURNS, CROWD, 2 + 2 * CROWD_TURNS
    ),
    "W6": Workload(long_conversation, c.ANSWER, tool_proof(0), seen=2 + c.N_HISTORY),
}


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
    await prove(peer.result, workload.proof)
    if name == "W4":
        await check_stream(peer)
    return Figures(times[0].ns, times[1].ns)


w1, w2, w2t, w3, w3t, w4, w5, w6 = [partial(measure, name) for name in WORKLOADS]


async def check_answer(call: Call, workload: Workload, seen: int) -> None:
    """Do the workload once, and look at what came of it.

    Raises:
        Void: another answer, other tool calls, or another number of messages than expected.
    """
    before, c.seen = calls_made(), 0
    answer = await call()
    if answer != workload.answer:
        raise Void(f"the answer is {answer!r:.200}, not {workload.answer!r:.200}")
    check_calls(calls_made() - before, workload.runs * workload.turns)
    if c.seen != seen:
        raise Void(f"the model was given {c.seen} messages, not {seen}")


def check_calls(made: int, wanted: int) -> None:
    """Compare how often the tool ran.

    Raises:
        Void: not as often as it must.
    """
    if made != wanted:
        raise Void(f"the tool ran {made} times, not {wanted}")


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

"""What a framework is asked for, W1 to W6, and what must come of it. Nothing of flyball is imported here.

Whoever is measured gives the expected answer before it is timed, and its tool must have run as often as it
was asked to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

import workloads as c

from bench.timing import Call

CROWD = 1000
"""How many runs of W5 are in flight together."""
CROWD_TURNS = 3

Ask: TypeAlias = Callable[[Any], Call]
"""Gives what is called to have a peer do the workload once."""


class Void(Exception):
    """A measurement does not count; the message says why."""


class Workload(NamedTuple):
    """One workload: how a peer is asked for it, and what must come of it.

    `turns` is how many tool turns the model asks for; `runs` how many runs one call makes; `seen` how many
    messages the model is given last (the floor's model does not always say, `floor_says`).
    """

    ask: Ask
    answer: object
    turns: int = 0
    runs: int = 1
    seen: int = 2
    ask_floor: Ask | None = None
    floor_says: bool = True


def crowd(peer: Any) -> Call:
    """Many runs at once."""

    async def together() -> list[str]:
        return await asyncio.gather(*[peer.tools() for _ in range(CROWD)])

    return together


def long_conversation(peer: Any) -> Call:
    """One reply after many messages, which are made once."""
    return partial(peer.history, peer.prior())


_TYPED = Workload(attrgetter("structured"), c.REPORT, floor_says=False)
_TEN = Workload(attrgetter("tools"), c.ANSWER, c.TURNS, seen=2 + 2 * c.TURNS)

WORKLOADS: Mapping[str, Workload] = {
    "W1": Workload(attrgetter("text"), c.ANSWER),
    "W2": _TEN,
    "W2t": _TEN._replace(ask=attrgetter("tools_timeout"), ask_floor=attrgetter("tools")),
    "W3": _TYPED,
    "W3t": _TYPED._replace(ask=attrgetter("structured_by_tool"), ask_floor=attrgetter("structured")),
    "W4": Workload(attrgetter("stream"), c.N_DELTAS, floor_says=False),
    "W5": Workload(crowd, [c.ANSWER] * CROWD, CROWD_TURNS, CROWD, 2 + 2 * CROWD_TURNS),
    "W6": Workload(long_conversation, c.ANSWER, seen=2 + c.N_HISTORY),
}


def calls_made() -> int:
    """How often the tool has run."""
    return c.calls  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


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

"""CPU time of several things, taken in turns in one process, so that whatever disturbs one disturbs all.

A single call may take a microsecond, so a sample is a batch of calls. A round takes some samples of each
subject and keeps their median; the figure is the lowest median of all rounds: what the work costs when
nothing else is in the way. The garbage collector stays on, as users have it.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Sequence
from statistics import median
from time import process_time_ns
from typing import Any, NamedTuple, TypeAlias

Call: TypeAlias = Callable[[], Awaitable[Any]]
Clock: TypeAlias = Callable[[], int]
"""Tells nanoseconds."""


class Effort(NamedTuple):
    """How much is measured: rounds, samples of each subject in a round, and how long a sample is at least."""

    rounds: int
    samples: int
    sample_ns: int

    def a_share(self, part: int) -> Effort:
        """Less of it, for what takes long: one in `part` of the rounds, three at least, of three samples."""
        return Effort(max(3, self.rounds // part), 3, self.sample_ns)


class Timed(NamedTuple):
    """What one call costs, in nanoseconds, and how many calls were made to find out."""

    ns: float
    calls: int


async def in_turns(subjects: Sequence[Call], effort: Effort, clock: Clock = process_time_ns) -> list[Timed]:
    """Time the subjects in turns; one figure each."""
    batches: list[int] = []
    calls: list[int] = []
    for subject in subjects:
        size, made = await batch_size(subject, effort.sample_ns, clock)
        batches.append(size)
        calls.append(made)
    lowest = [math.inf] * len(subjects)
    for _ in range(effort.rounds):
        for n, subject in enumerate(subjects):
            lowest[n] = min(lowest[n], await one_round(subject, batches[n], effort.samples, clock))
            calls[n] += effort.samples * batches[n]
    return [Timed(ns, made) for ns, made in zip(lowest, calls, strict=True)]


async def batch_size(subject: Call, sample_ns: int, clock: Clock = process_time_ns) -> tuple[int, int]:
    """How many calls make a sample long enough, and how many it took to find that out."""
    size, made = 1, 0
    while True:
        took = await _sample(subject, size, clock) * size
        made += size
        if took >= sample_ns:
            return size, made
        size = max(size + 1, math.ceil(size * min(10.0, 1.1 * sample_ns / max(took, 1.0))))


async def one_round(subject: Call, size: int, samples: int, clock: Clock = process_time_ns) -> float:
    """What a call costs in one round: the median of some samples of `size` calls each."""
    return median([await _sample(subject, size, clock) for _ in range(samples)])


async def _sample(subject: Call, calls: int, clock: Clock) -> float:
    began = clock()
    for _ in range(calls):
        await subject()
    # The event loop has its turn, in the time of whoever left it something to clear up.
    await asyncio.sleep(0)
    return (clock() - began) / calls

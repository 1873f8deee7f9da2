"""How figures are taken: in turns, the lowest of the rounds' medians. A clock of our own tells the time."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, repeat

from bench.timing import Call, Effort, in_turns


class Stage:
    """A clock that only moves when a subject takes its time."""

    def __init__(self) -> None:
        self.now = 0
        self.said: list[str] = []

    def clock(self) -> int:
        return self.now

    def subject(self, name: str, takes: Iterable[int]) -> Call:
        durations = iter(takes)

        async def call() -> None:
            self.now += next(durations)
            self.said.append(name)

        return call


async def test_the_figure_is_the_lowest_of_the_medians() -> None:
    stage = Stage()
    # One call to find the batch's size, then two rounds of three samples: medians 30 and 20.
    call = stage.subject("a", [100, 10, 30, 90, 20, 20, 80])
    (timed,) = await in_turns([call], Effort(rounds=2, samples=3, sample_ns=100), stage.clock)
    assert timed.ns == 20
    assert timed.calls == 7


async def test_subjects_take_turns_round_by_round() -> None:
    stage = Stage()
    calls = [stage.subject("a", repeat(100)), stage.subject("b", repeat(100))]
    await in_turns(calls, Effort(rounds=3, samples=2, sample_ns=100), stage.clock)
    assert "".join(stage.said) == "ab" + "aabb" * 3


async def test_quick_calls_are_taken_in_batches_and_all_of_them_counted() -> None:
    stage = Stage()
    call = stage.subject("a", repeat(1))
    (timed,) = await in_turns([call], Effort(rounds=1, samples=1, sample_ns=1000), stage.clock)
    assert timed.ns == 1
    assert timed.calls == len(stage.said) >= 2000


async def test_one_slow_call_does_not_end_up_in_the_figure() -> None:
    stage = Stage()
    call = stage.subject("a", chain([100], [100, 10_000, 100] * 4))
    (timed,) = await in_turns([call], Effort(rounds=4, samples=3, sample_ns=100), stage.clock)
    assert timed.ns == 100

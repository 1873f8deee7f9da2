"""`make soak`, on a small scale, and that its verdict sees whatever does not hold."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from bench.nats.soak.command import main
from bench.nats.soak.crowd import KINDS
from bench.nats.soak.growth import Sample, judged
from bench.nats.soak.trouble import SERVER, kills
from bench.nats.soak.verdict import Ran, ran_times, too_many, wrong_with
from bench.nats.soak.work import CALLS, PROMPT, Notes, make_agent

from flyball.core.events import Ended, Event, Outcome, ToolReturned
from flyball.core.messages import ResultKind

LOOP = "loop-1"


@pytest.fixture
async def whole(tmp_path: Path) -> tuple[list[Event], Ran]:
    """A loop's events as they have to be, and what its tools wrote down."""
    notes = tmp_path / "notes"
    result = await make_agent().run(PROMPT, loop_id=LOOP, deps=Notes(notes))
    return await result.events(), ran_times(notes.read_text().splitlines())


def test_a_loop_as_it_has_to_be_is_right(whole: tuple[list[Event], Ran]) -> None:
    events, ran = whole
    assert wrong_with(LOOP, events, ran) == []
    assert sorted(ran.values()) == [1] * len(CALLS)
    repeated = {call: 3 if call[0] == "step" else 1 for call in ran}
    assert wrong_with(LOOP, events, repeated) == [], "a step may physically run again"


Change = Callable[[list[Event]], list[Event]]


def _returned(events: list[Event], number: int) -> ToolReturned:
    return [event for event in events if isinstance(event, ToolReturned)][number]


def _changed(events: list[Event], old: Event, new: Event) -> list[Event]:
    return [new if event is old else event for event in events]


def _with_status(events: list[Event], number: int, status: ResultKind) -> list[Event]:
    old = _returned(events, number)
    result = msgspec.structs.replace(old.result, status=status, content=None, error="?")
    return _changed(events, old, msgspec.structs.replace(old, result=result))


def _failed(events: list[Event]) -> list[Event]:
    return [*events[:-1], Ended(events[-1].at, Outcome.FAILED)]


def _without_one(events: list[Event]) -> list[Event]:
    return [event for event in events if event is not _returned(events, 1)]


CHANGES: dict[str, tuple[Change, str]] = {
    "none": (lambda _: [], "it is not there"),
    "open": (lambda events: events[:-1], "it is not complete: at end"),
    "failed": (_failed, "Ended, does not fit"),
    "ended twice": (lambda events: [*events, events[-1]], "Ended, does not fit"),
    "begun twice": (lambda events: [events[0], *events], "Started, does not fit"),
    "doubled": (lambda events: events[:3] + events[2:], "ToolReturned, does not fit"),
    "lost": (_without_one, "does not fit"),
    "interrupted step": (lambda events: _with_status(events, 0, ResultKind.INTERRUPTED), "call_0 came to"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_does_not_hold_is_seen(whole: tuple[list[Event], Ran], name: str) -> None:
    events, ran = whole
    change, said = CHANGES[name]
    assert said in "; ".join(wrong_with(LOOP, change(events), ran))


def test_what_may_start_once_may_be_interrupted_and_not_repeated(whole: tuple[list[Event], Ran]) -> None:
    events, ran = whole
    assert wrong_with(LOOP, _with_status(events, 2, ResultKind.INTERRUPTED), ran) == []
    twice = {call: 2 if call[2] == "call_2" else 1 for call in ran}
    assert wrong_with(LOOP, events, twice) == ["call_2 may start once, and physically ran 2 times"]
    never = {call: times for call, times in ran.items() if call[2] != "call_3"}
    assert wrong_with(LOOP, events, never) == ["call_3 has a result, and never ran"]


@pytest.mark.parametrize(
    ("loops", "repeated", "interrupted", "cut_off", "said"),
    [
        (100, 0, 0, 0, []),
        (100, 40, 40, 40, []),
        (100, 40, 40, None, []),
        (100, 1, 0, 0, ["1 calls were repeated, and 0"]),
        (100, 0, 1, 0, ["1 calls were interrupted, and 0"]),
        (100, 41, 0, 40, ["41 calls were repeated, and 40"]),
        (100, 50_000, 41, 40, ["50000 calls were repeated", "41 calls were interrupted"]),
        (100, 0, 200, 4000, ["of 200 calls that may start once, 200 were interrupted"]),
        (100, 0, 101, None, ["of 200 calls that may start once, 101 were interrupted"]),
    ],
)
def test_more_than_killing_explains_is_seen(
    loops: int, repeated: int, interrupted: int, cut_off: int | None, said: list[str]
) -> None:
    wrong = too_many(loops, repeated, interrupted, cut_off)
    assert len(wrong) == len(said)
    assert all(one.startswith(begins) for one, begins in zip(wrong, said, strict=True)), wrong


def test_the_same_seed_makes_the_same_trouble() -> None:
    plan = kills(40, 5000, 7)
    assert plan == kills(40, 5000, 7) != kills(40, 5000, 8)
    assert [kill.calls for kill in plan] == sorted(kill.calls for kill in plan)
    assert {kill.victim for kill in plan} == {SERVER, *range(len(KINDS))}
    assert plan[-1].victim == SERVER
    assert all(1 <= kill.calls <= 4500 for kill in plan), "in the middle of things"


def test_nodes_go_down_one_at_a_time_and_now_and_then_two() -> None:
    down = [kill.nodes for kill in kills(200, 5000, 1, nodes=3) if kill.victim == SERVER]
    assert {len(nodes) for nodes in down} == {1, 2}
    assert {node for nodes in down for node in nodes} == {0, 1, 2}
    assert {kill.nodes for kill in kills(200, 5000, 1) if kill.victim == SERVER} == {(0,)}
    later = kills(40, 5000, 7, nodes=3, first=5000)
    assert [kill.calls for kill in later] == [kill.calls + 5000 for kill in kills(40, 5000, 7, nodes=3)]


def _grown(worker: float = 0.0, server: float = 0.0, consumers: int = 0) -> list[bool]:
    """Whether each stays flat, if it grows by so much with every look."""
    samples = [
        Sample(10 * n, int(50e6 + worker * n), 60e6 + server * n, 20 + consumers * n) for n in range(90)
    ]
    return [row.flat for row in judged(samples)]


def test_what_grows_is_seen() -> None:
    assert _grown() == [True, True, True]
    assert _grown(worker=500e3) == [False, True, True]
    assert _grown(server=100e3) == [True, True, True], "10 kB for each of ten loops: it keeps them"
    assert _grown(server=2e6) == [True, False, True]
    assert _grown(consumers=1) == [True, True, False]
    assert judged([Sample(1, 1, 1, 1)]) == [], "too few to tell"


@pytest.mark.slow
def test_loops_come_to_their_end_whoever_is_killed(tmp_path: Path) -> None:
    out = StringIO()
    small = ["--loops", "20", "--kills", "2", "--seconds", "60", "--seed", "3"]
    assert main([*small, "--folder", str(tmp_path)], out) == 0, out.getvalue()
    said = out.getvalue()
    assert "20 of 5 tool calls" in said
    assert "killed      2 (" in said
    assert "1 server" in said

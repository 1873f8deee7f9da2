"""`make sizing`: one seed has one result, nothing is lost whatever dies, queues are as theory has them."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from random import Random

import pytest
from bench.sizing.clock import Clock, Process, Running
from bench.sizing.command import main
from bench.sizing.measured import FACTOR, MEASURED, SOAK_LOST, as_measured, lost, off, soak
from bench.sizing.plan import Failure, Plan
from bench.sizing.region import Region
from bench.sizing.report import simulate
from bench.sizing.stations import Station
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

SMALL = Plan(
    partitions=4, nodes=3, crews=3, rate=15.0, calls=2, seconds=4.0, model=0.3, tool=0.1, hold=3.0, room=8
)
TROUBLE = st.builds(
    Failure,
    st.floats(0.0, 8.0),
    st.sampled_from(["worker", "node", "zone"]),
    st.integers(0, 8),
    st.floats(0.1, 20.0),
)


def _plan(failures: list[Failure], seed: int, apart: bool, replicas: int, pending: int) -> Plan:
    return replace(
        SMALL,
        failures=tuple(failures),
        seed=seed,
        apart=apart,
        replicas=replicas,
        max_ack_pending=pending,
    )


PLANS = st.builds(
    _plan,
    st.lists(TROUBLE, max_size=6),
    st.integers(0, 1000),
    st.booleans(),
    st.sampled_from([1, 3]),
    st.sampled_from([4, 10_000]),
)


@given(PLANS)
def test_whatever_dies_nothing_is_lost_and_each_result_is_there_once(plan: Plan) -> None:
    region = Region(plan)
    region.run()
    assert region.loops
    assert all(loop.ended is not None for loop in region.loops)
    assert all(loop.journal == list(range(2 * plan.calls + 3)) for loop in region.loops)
    assert max(post.most for post in region.posts.values()) <= plan.max_ack_pending


@given(PLANS)
def test_the_same_plan_comes_to_the_same(plan: Plan) -> None:
    assert simulate(plan) == simulate(plan)


def test_another_seed_is_another_chance() -> None:
    assert simulate(SMALL) != simulate(replace(SMALL, seed=2))


def test_what_is_checked_is_seen() -> None:
    region = Region(SMALL)
    region.run()
    region.loops[0].journal.append(0)
    with pytest.raises(AssertionError, match="loop 0 recorded"):
        region.check()
    region.loops[0].ended = None
    with pytest.raises(AssertionError, match="loop 0 is lost"):
        region.check()


@pytest.mark.parametrize(("load", "servers"), [(0.5, 1), (0.8, 1), (0.7, 2)])
def test_a_queue_is_as_theory_has_it(load: float, servers: int) -> None:
    clock, chance, station = Clock(), Random(1), Station(servers)
    stays: list[float] = []

    def customer() -> Process:
        began = clock.now
        yield clock.until(station.take(clock.now, chance.expovariate(1.0)))
        stays.append(clock.now - began)

    def arrivals() -> Process:
        for _ in range(60_000):
            yield clock.until(clock.now + chance.expovariate(load * servers))
            Running(customer(), lambda: None)

    Running(arrivals(), lambda: None)
    clock.run()
    # M/M/1: 1 / (1 - load); of M/M/2 the same with its square.
    assert sum(stays) / len(stays) == pytest.approx(1 / (1 - load**servers), rel=0.08)
    assert station.busy / servers / clock.now == pytest.approx(load, rel=0.03)


def test_a_worker_that_dies_costs_the_hold_and_a_repetition() -> None:
    died = simulate(replace(SMALL, failures=(Failure(2.0, "worker", 1, 1.0),)))
    assert simulate(SMALL).repeated == 0
    assert died.repeated > 0
    assert 2 / 3 * SMALL.hold <= died.slowest <= 2 * SMALL.hold
    assert died.stall == 0


def test_a_node_that_dies_costs_an_election() -> None:
    died = simulate(replace(SMALL, failures=(Failure(2.0, "node", 0, 60.0),)))
    least, most = SMALL.election
    assert least <= died.stall <= most
    alone = simulate(replace(SMALL, replicas=1, failures=(Failure(2.0, "node", 0, 60.0),)))
    assert alone.stall >= 60, "with one copy there is nobody else"


def test_the_wire_limits_before_the_journals_do() -> None:
    report = simulate(replace(SMALL, partitions=64, rate=100.0))
    assert report.wire > 4 * report.journal


@pytest.mark.slow
def test_it_is_as_far_off_as_is_said() -> None:
    for one in MEASURED:
        assert off(one, simulate(as_measured(one)).rate) <= FACTOR, one
    assert 1 / FACTOR <= lost(soak()) / SOAK_LOST <= FACTOR


def test_the_command_prints_each_case(tmp_path: Path) -> None:
    out, file = StringIO(), tmp_path / "figures.json"
    assert main(["--quick", "--json", str(file)], out) == 0
    cases = json.loads(file.read_text())
    assert list(cases) == ["steady", "a worker dies", "a node dies", "a zone dies"]
    assert all(case in out.getvalue() for case in cases)
    assert len(cases["steady"]["nodes"]) == 6


@pytest.mark.slow
def test_the_command_compares_with_what_was_measured() -> None:
    out = StringIO()
    assert main(["--measured", "--quick"], out) == 0
    assert "calls lost with a worker" in out.getvalue()


def test_copies_need_nodes() -> None:
    with pytest.raises(ValueError, match="2 nodes: too few"):
        Plan(nodes=2)

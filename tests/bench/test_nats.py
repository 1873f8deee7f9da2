"""`make bench-nats`, on a small scale: it measures what it says, on a real server."""

from __future__ import annotations

import json
import os
from io import StringIO
from pathlib import Path

import pytest
from bench.nats.command import best, main
from bench.nats.floor import Steps
from bench.nats.paused import Paused
from bench.nats.speed import Speed
from bench.nats.table import BUDGET, Pair
from bench.nats.usage import Cores, Meter, cpu_seconds, machine, resident_bytes
from bench.nats.work import check, make_agent
from msgspec.structs import replace

from flyball.core.events import ToolReturned

CORES = Cores(1.0, 0.5, 0.1, 0.3, 0.1)


def pair(one: float, spread: float, flyball: float, *, judged: bool = True) -> Pair:
    speed = Speed(10, int(10 * flyball), 100, 200, 10.0, CORES)
    return Pair(2, judged, _steps(one), _steps(spread), speed)


def _steps(rate: float) -> Steps:
    return Steps(int(10 * rate), 10.0, CORES)


def test_flyball_is_held_against_the_faster_floor() -> None:
    assert pair(100, 200, 80).ratio == pytest.approx(0.4)
    assert pair(100, 200, 80).met
    assert not pair(100, 201, 80).met
    assert pair(100, 201, 80, judged=False).met


def test_the_best_of_each_counts() -> None:
    both = best([pair(100, 200, 60), pair(300, 100, 50)])
    assert (both.one.rate, both.spread.rate, both.flyball.rate) == (300, 200, 60)


def paused(latencies: list[float], worker: list[int]) -> Paused:
    return Paused(10, len(latencies), 1.0, latencies, [0.001], worker, [1, 2, 3], CORES)


def test_the_slowest_loop_and_the_largest_worker_decide() -> None:
    assert paused([0.02, 0.1], [100, 105, 110]).met
    assert not paused([0.02, 0.11], [100, 105, 110]).met
    assert not paused([0.02, 0.1], [100, 105, 111]).met
    ordered = paused([n / 1000 for n in range(100)], [1, 1, 1])
    assert (ordered.part(0.5), ordered.part(0.99)) == (0.050, 0.099)


def test_what_was_used_is_counted() -> None:
    mine = os.getpid()
    meter, before, began = Meter([mine], mine), cpu_seconds(mine), machine()
    while cpu_seconds(mine) - before < 0.2:
        sum(range(100_000))
    cores = meter.cores(1.0)
    assert min(cores.clients, cores.server) >= 0.15, "but for a few ticks"
    assert machine().busy - began.busy >= 0.15
    assert resident_bytes(mine) > 5_000_000


async def test_a_loop_that_did_not_do_its_work_voids_it() -> None:
    events = await (await make_agent().run("Add.", loop_id="x")).events()
    check("x", events)
    with pytest.raises(RuntimeError, match="loop x came to"):
        check("x", events[:-2])
    last = [event for event in events if isinstance(event, ToolReturned)][-1]
    other = replace(last, result=replace(last.result, content=7))
    with pytest.raises(RuntimeError, match="loop x came to done"):
        check("x", [other if event is last else event for event in events])


@pytest.mark.slow
def test_both_are_measured_on_one_server(tmp_path: Path) -> None:
    out, file, profile = StringIO(), tmp_path / "figures.json", tmp_path / "profile"
    small = ["--loops", "4", "--seconds", "0.3", "--messages", "200", "--processes", "1"]
    code = main([*small, "--json", str(file), "--profile", str(profile)], out)
    assert code == 0, "one process has no budget"
    (row,) = json.loads(file.read_text())["rows"]
    assert row["flyball"]["loops"] == 4
    assert row["flyball"]["events"] == 4 * 13
    assert row["flyball"]["appends"] >= 4
    assert row["flyball"]["wire"] >= 4
    assert 0 < row["one"]["steps"] <= 200
    assert row["ratio"] == pytest.approx(
        row["flyball"]["rate"] / max(row[floor]["rate"] for floor in ("one", "spread"))
    )
    assert "events of flyball's journals" in out.getvalue()
    assert "13.0 events" in out.getvalue()
    assert "function calls" in profile.read_text()


@pytest.mark.slow
def test_loops_that_wait_are_resumed(tmp_path: Path) -> None:
    out, file = StringIO(), tmp_path / "figures.json"
    code = main(["--paused", "30", "--resumed", "8", "--json", str(file)], out)
    figures = json.loads(file.read_text())["paused"]
    assert figures["loops"] == 30
    assert 7 <= len(figures["latencies"]) <= 8, "the first loop, which finds the worker ready, does not count"
    assert all(0 < latency < 30 for latency in figures["latencies"])
    met = max(figures["latencies"]) <= 0.1 and max(figures["worker"]) <= 1.1 * figures["worker"][0]
    assert code == (0 if met else 1)
    assert "30 loops that wait" in out.getvalue()


def test_the_budget_is_that_of_the_issue() -> None:
    assert BUDGET == 0.40


@pytest.mark.slow
def test_one_partition_is_measured_with_each_way_of_syncing(tmp_path: Path) -> None:
    out, file = StringIO(), tmp_path / "figures.json"
    small = ["--partition", "--seconds", "0.3", "--callers", "2", "--elections", "1", "--json", str(file)]
    assert main(small, out) == 0
    said = json.loads(file.read_text())
    assert {(row["sync"], row["replicas"], row["nearby"]) for row in said["rows"]} >= {
        ("default", 1, True),
        ("always", 1, True),
        ("always", 3, True),
    }
    for row in said["rows"]:
        assert row["appends"] == pytest.approx(12, abs=4), "what is under way at the edges counts, too"
        assert row["steps"] > row["appends"] + 2
        assert min(row["journal_bytes"], row["client_bytes"], row["rate"]) > 0
        assert (row["route_bytes"] > 0) == (row["replicas"] > 1)
    assert all(0 < stall < 60 for stall in said["elections"])

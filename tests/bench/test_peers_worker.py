"""A worker checks before it times and counts after it; the command hears what it says, or its last words."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from bench.asking import calls_made
from bench.flyball_peer import c as workloads
from bench.peers.frameworks import FLYBALL, Framework
from bench.peers.rounds import Effort, Subject, lowest, measure
from bench.peers.rows import ROWS, Row
from bench.peers.worker import work
from bench.peers.workers import SLOW_NS, About, Result, Worker

from bench import flyball_peer

ONCE = Effort(processes=1, rounds=1, samples=1, sample_ns=1)
ROW = {row.name: row for row in ROWS}
PYTHON = Path(sys.executable)


async def answers(
    row: str, *, peer: Any = flyball_peer.Peer, orders: str = "2\n1\n", **more: Any
) -> list[Any]:
    """What a worker says when it is given orders."""
    said: list[Any] = []
    given: Any = SimpleNamespace(__name__="given", Peer=peer, **more)
    await work(given, row, 1, io.StringIO(orders), said.append)
    return said


def kinds(said: list[dict[str, Any]]) -> list[str]:
    return [next(iter(one)) for one in said]


@pytest.mark.parametrize("row", [row.name for row in ROWS if row.kind == "time" and row.name != "W5"])
async def test_a_figure_is_given_for_each_order(row: str) -> None:
    said = await answers(row)
    assert kinds(said) == ["ready", "figure", "figure", "done"]
    assert all(one["figure"] > 0 for one in said[1:3])


async def test_a_thousand_runs_are_measured_one_by_one() -> None:
    before = calls_made()
    assert kinds(await answers("W5", orders="1\n")) == ["ready", "figure", "done"]
    assert calls_made() - before == 2 * 1000 * 3  # the check, and one sample of one call


async def test_instructions_that_are_no_message_are_known() -> None:
    class Apart(flyball_peer.Peer):
        async def text(self) -> str:
            answer = await super().text()
            workloads.seen -= 1
            return answer

    assert kinds(await answers("W1", peer=Apart)) == ["void"]
    assert kinds(await answers("W1", peer=Apart, APART=1)) == ["ready", "figure", "figure", "done"]


async def test_who_has_no_output_tool_is_absent() -> None:
    class Without:
        def __init__(self, turns: int) -> None: ...

    assert await answers("W3t", peer=Without) == [{"absent": True}]


async def test_a_wrong_answer_is_never_timed() -> None:
    class Wrong(flyball_peer.Peer):
        async def text(self) -> str:
            await super().text()
            return "43"

    assert await answers("W1", peer=Wrong) == [{"void": "the answer is '43', not 'The answer is 42.'"}]


async def test_tools_that_no_longer_run_once_time_is_taken_are_noticed() -> None:
    class Lazy(flyball_peer.Peer):
        asked = 0

        async def tools(self) -> str:
            self.asked += 1
            return workloads.ANSWER if self.asked > 2 else await super().tools()

    said = await answers("W2", peer=Lazy)
    assert kinds(said) == ["ready", "figure", "figure", "void"]
    assert said[-1]["void"] == "the tool ran 10 times, not 40"


async def test_flyball_is_proven_from_its_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    class Forgetful(flyball_peer.Peer):
        async def text(self) -> str:
            answer = await super().text()
            self.result = None
            return answer

    monkeypatch.setattr(flyball_peer, "Peer", Forgetful)
    said: list[Any] = []
    await work(flyball_peer, "W1", 1, io.StringIO("1\n"), said.append)
    assert said[-1] == {"void": "no run has ended"}


@pytest.mark.slow
def test_memory_is_what_the_runs_add() -> None:
    figure = measure(ROW["memory"], [subject("flyball", FLYBALL.module)], ONCE)["flyball"].figure
    assert figure is not None
    assert figure > 1_000_000


# What the command sees of it: real processes.


def subject(name: str, module: str) -> Subject:
    return Subject(Framework(name, module, None), PYTHON, About({}, "", "import json"))


@pytest.mark.integration
def test_frameworks_take_turns_and_one_that_fails_does_not_stop_the_others() -> None:
    subjects = [
        subject("flyball", FLYBALL.module),
        subject("twin", FLYBALL.module),
        subject("gone", "no_such_peer"),
    ]
    results = measure(ROW["W1"], subjects, Effort(processes=2, rounds=2, samples=1, sample_ns=1000))
    for name in ("flyball", "twin"):
        assert results[name].figure
        assert not results[name].void
    assert results["gone"] == Result(
        void="its process failed: ModuleNotFoundError: No module named 'no_such_peer'"
    )


@pytest.mark.integration
def test_imports_are_measured_in_processes_of_their_own() -> None:
    wrong = subject("wrong", "json")._replace(about=About({}, "", "import no_such_peer"))
    results = measure(ROW["import"], [subject("right", "json"), wrong], ONCE)
    assert results["right"].figure
    assert (
        results["wrong"].void == "it cannot be imported: ModuleNotFoundError: No module named 'no_such_peer'"
    )


@pytest.mark.integration
def test_a_worker_that_ended_is_asked_without_harm() -> None:
    with Worker(Framework("gone", "no_such_peer", None), PYTHON, "W1", 1) as worker:
        worker.wait_until_ready()
        worker.ask(1)
        worker.end()
        assert worker.result.void.startswith("its process failed")


@pytest.mark.integration
def test_a_worker_that_dies_while_it_is_asked_is_heard_of() -> None:
    with Worker(FLYBALL, PYTHON, "W1", 1) as worker:
        worker.wait_until_ready()
        worker.ask(1)
        assert worker.result.figure
        worker.kill()
        worker.ask(1)
        assert worker.result == Result(void="its process failed: it ended without a word")


@pytest.mark.integration
def test_who_is_far_from_the_fastest_is_asked_once() -> None:
    with Worker(FLYBALL, PYTHON, "W1", 1) as worker:
        worker.wait_until_ready()
        worker.result = Result(SLOW_NS + 1.0)
        worker.ask(1)
        assert worker.result.figure == SLOW_NS + 1.0
        worker.end()
        assert not worker.result.void


def test_of_several_processes_the_lowest_figures_count() -> None:
    several = [
        {"a": Result(2.0), "b": Result(), "c": Result(1.0)},
        {"a": Result(1.0), "b": Result(), "c": Result(void="tampered")},
        {"a": Result(3.0), "b": Result(), "c": Result(1.0)},
    ]
    assert lowest(several) == {"a": Result(1.0), "b": Result(), "c": Result(void="tampered")}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_takes_long_is_measured_less(row: Row) -> None:
    effort = Effort(processes=3, rounds=6, samples=5, sample_ns=4).on(row)
    if row.name == "W5":
        assert effort == (1, 3, 1, 4)
    elif row.name == "memory":
        assert effort == (1, 1, 1, 4)
    else:
        assert effort == (3, 6, 5, 4)

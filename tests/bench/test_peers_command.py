"""The command: what it prints and writes, which targets it holds flyball to, and what its exit code says."""

# ruff: noqa: RUF001, E501 - the multiplication sign is meant, and the table is wide

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest
from bench.peers import command
from bench.peers.environments import Unavailable
from bench.peers.frameworks import FLYBALL, PEERS, Framework
from bench.peers.outcomes import outcomes_of
from bench.peers.progress import Progress
from bench.peers.rounds import Effort, Results, Subject
from bench.peers.rows import ROWS, Row, chosen_rows
from bench.peers.table import amount, times
from bench.peers.workers import About, Result
from inline_snapshot import snapshot

NAMES = [FLYBALL.name, *[peer.name for peer in PEERS]]


class World:
    """Stands in for the environments and for the processes: which peers there are, and what is measured."""

    def __init__(self) -> None:
        self.missing: set[str] = set()
        self.results: dict[str, dict[str, Result]] = {}
        self.efforts: list[Effort] = []

    def python_of(self, framework: Framework, folder: Path) -> Path:
        if framework.name in self.missing:
            raise Unavailable(f"{framework.name}: cannot install it: no such version")
        return Path(sys.executable)

    def measure(self, row: Row, subjects: list[Subject], effort: Effort) -> Results:
        self.efforts.append(effort)
        said = self.results.get(row.name, {})
        figures = {name: Result(20e3 * (number * 20 or 1)) for number, name in enumerate(NAMES)}
        measured = {one.framework.name for one in subjects}
        return {name: said.get(name, figures[name]) for name in NAMES if name in measured}


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> World:
    world = World()

    def about(framework: Framework, python: Path) -> About:
        return About({framework.name: "1.0"}, f"how {framework.name} is used", "import json")

    monkeypatch.setattr(command, "python_of", world.python_of)
    monkeypatch.setattr(command, "measure", world.measure)
    monkeypatch.setattr(command, "about", about)
    monkeypatch.setattr(command.platform, "python_version", lambda: "3.11.0")
    return world


def test_the_targets_are_those_that_were_agreed() -> None:
    assert {row.name: row.target for row in ROWS} == {
        "W1": 15, "W2": 15, "W3": 8, "W3t": 8, "W4": 8, "W5": 8, "W6": 15, "memory": None, "import": None,
    }  # fmt: skip


def test_the_table(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    world.results["W3t"] = {name: Result() for name in NAMES[2:]} | {"flyball": Result(60e3)}
    world.results["W6"] = {"agno": Result(void="the model was given 2002 messages, not 2003")}
    assert command.main([]) == 1
    printed = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert "\n".join(printed) == snapshot("""\
Python 3.11.0 · flyball 1.0 · pydantic-ai 1.0 · openai-agents 1.0 · agno 1.0 · agent-framework 1.0

row     what                  flyball  pydantic-ai  openai-agents      agno  agent-framework  × fastest peer  target
W1      text                  20.0 µs       400 µs         800 µs  1,200 µs         1,600 µs             20×     15×  ✓
W2      tools: ten turns      20.0 µs       400 µs         800 µs  1,200 µs         1,600 µs             20×     15×  ✓
W3      typed: native         20.0 µs       400 µs         800 µs  1,200 µs         1,600 µs             20×      8×  ✓
W3t     typed: output tool    60.0 µs       400 µs              -         -                -            6.6×      8×  ✗
W4      stream: 1,000 deltas  20.0 µs       400 µs         800 µs  1,200 µs         1,600 µs             20×      8×  ✓
W5      1,000 runs at once    20.0 µs       400 µs         800 µs  1,200 µs         1,600 µs             20×      8×  ✓
W6      after 2,000 messages  20.0 µs       400 µs         800 µs      VOID         1,600 µs             20×     15×  VOID
memory  of W5, at the peak     0.0 MB       0.4 MB         0.8 MB    1.2 MB           1.6 MB             20×
import  of the framework       0.0 ms       0.4 ms         0.8 ms    1.2 ms           1.6 ms             20×
void: W6, agno: the model was given 2002 messages, not 2003
target missed: W3t (6.6× of 8×)\
""")


def test_all_targets_met(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([]) == 0
    assert capsys.readouterr().out.endswith("\nall targets met\n")


def test_typed_output_is_held_against_the_peers_fastest_way(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.results["W3"] = {"pydantic-ai": Result(150e3)}
    assert command.main(["--only", "W3t"]) == 1
    assert capsys.readouterr().out.endswith("target missed: W3 (7.5× of 8×), W3t (7.5× of 8×)\n")


def test_a_target_is_met_when_it_is_reached() -> None:
    (row,) = chosen_rows(["W1"])
    for theirs, verdict in ((15.0, "met"), (14.99, "missed")):
        (outcome,) = outcomes_of([row], {"W1": {"flyball": Result(1.0), "agno": Result(theirs)}})
        assert outcome.verdict == verdict
    (alone,) = outcomes_of([row], {"W1": {"flyball": Result(1.0)}})
    assert (alone.verdict, alone.times) == ("shown", None)


def test_a_peer_that_cannot_be_installed_is_a_line_and_the_others_are_measured(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.missing = {"agno"}
    assert command.main(["--only", "W1"]) == 1
    out = capsys.readouterr().out
    assert out.endswith("not measured: agno: cannot install it: no such version\n")
    assert "agent-framework" in out.splitlines()[2]
    assert "agno" not in out.splitlines()[2]


def test_a_void_figure_fails_even_where_there_is_no_target(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    world.results["memory"] = {"agno": Result(void="tampered")}
    assert command.main(["--only", "memory"]) == 1
    assert capsys.readouterr().out.endswith("void: memory, agno: tampered\n")


def test_the_figures_can_be_written_to_a_file(world: World, tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    assert command.main(["--quick", "--only", "w1", "--peer", "agno", "--json", str(file)]) == 0
    assert json.loads(file.read_text()) == {
        "on": {"Python": "3.11.0"},
        "effort": {"processes": 1, "rounds": 3, "samples": 3, "sample_ns": 2_000_000},
        "frameworks": {
            "flyball": {"versions": {"flyball": "1.0"}, "notes": "how flyball is used"},
            "agno": {"versions": {"agno": "1.0"}, "notes": "how agno is used"},
        },
        "not measured": [],
        "rows": [
            {
                "name": "W1",
                "what": "text",
                "unit": "ns",
                "figures": {"flyball": 20e3, "agno": 1200e3},
                "void": {},
                "fastest peer": "agno",
                "times": 60.0,
                "target": 15,
                "verdict": "met",
            }
        ],
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--only", "W9"], "there is no row 'w9'"), (["--peer", "crew"], "there is no peer 'crew'")],
)
def test_what_there_is_not_is_refused(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main(arguments)
    assert refused.value.code == 2
    assert said in capsys.readouterr().err


def test_the_steps_are_told_line_by_line_where_no_terminal_is(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    command.main(["--only", "W1", "--peer", "agno"])
    first, second, third = capsys.readouterr().err.splitlines()
    assert first == "1 of 3  flyball"
    assert second.startswith("2 of 3  agno")
    assert third == "3 of 3  W1: text"


def test_in_a_terminal_one_line_moves_and_is_cleared() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Terminal()
    with Progress(2, out) as progress:
        progress.step("W1: text")
    assert out.getvalue() == "\r\033[2K1 of 2  W1: text\r\033[2K"


def test_figures_of_a_kind_have_one_unit() -> None:
    assert amount(15_300, "time") == "15.3 µs"
    assert amount(37_954_972_000, "time") == "37,954,972 µs"
    assert amount(8.8e6, "memory") == "8.8 MB"
    assert amount(1.759e9, "import") == "1,759 ms"
    assert (times(None), times(15.0), times(14.99)) == ("", "15×", "14.9×")

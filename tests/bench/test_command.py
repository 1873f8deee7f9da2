"""The command: which rows it runs, how a row's process answers, and what its exit code says."""

# ruff: noqa: RUF001 - the multiplication sign is meant

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from bench.command import lowest, main, outcome_of
from bench.figures import Figures
from bench.rows import ROWS, Row, chosen
from bench.table import Outcome

from tests.patience import PATIENCE

RUN = Path(__file__).resolve().parents[2] / "bench" / "run.py"


@pytest.fixture(autouse=True)
def ratios(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """The ratios that the rows' processes are made to answer; 1 where nothing is said, void where it is 0."""
    said: dict[str, float] = {}

    def answer(row: Row, *, quick: bool) -> Outcome:
        ratio = said.get(row.name, 1.0)
        return Outcome(row, Figures(100.0, 100.0 * ratio)) if ratio else Outcome(row, None, "tampered")

    monkeypatch.setattr("bench.command._in_fresh_process", answer)
    return said


def test_the_budgets_are_those_that_were_agreed() -> None:
    assert {row.name: row.budget for row in ROWS} == {
        "W1": 15, "W2": 5, "W2t": 7, "W3": 2.5, "W3t": 2.5, "W4": 5,
        "W5": None, "W5-mem": 2.5, "W5-rss": 2.5, "W6": None,
        "import": 1.5, "sqlite": 2, "sqlite-full": 2, "turns": 1.2, "deltas": 1.2, "journal": 1.1,
    }  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_can_be_measured(row: Row) -> None:
    module, function = row.where.split(":")
    assert callable(getattr(import_module(f"bench.{module}"), function))


def test_rows_are_chosen_by_name() -> None:
    assert chosen([]) == list(ROWS)
    assert [row.name for row in chosen(["w2", "IMPORT"])] == ["W2", "import"]
    assert [row.name for row in chosen(["W5"])] == ["W5", "W5-mem", "W5-rss"]
    assert [row.name for row in chosen(["sqlite-full"])] == ["sqlite-full"]
    with pytest.raises(ValueError, match="there is no row 'w9'; there are W1, W2, W2t"):
        chosen(["W1", "W9"])


def test_all_within_budget(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.endswith("all within budget\n")


def test_a_missed_budget_is_named_last(ratios: dict[str, float], capsys: pytest.CaptureFixture[str]) -> None:
    ratios["W2"] = 5.5
    assert main(["--quick"]) == 1
    assert capsys.readouterr().out.endswith("over budget: W2 (5.50× of 5×)\n")
    assert main(["--only", "W1"]) == 0


def test_a_void_row_fails_even_where_there_is_no_budget(
    ratios: dict[str, float], capsys: pytest.CaptureFixture[str]
) -> None:
    ratios["W6"] = 0
    assert main([]) == 1
    assert "VOID" in (out := capsys.readouterr().out)
    assert out.endswith("void: W6: tampered\n")


def test_what_has_no_budget_only_shows(ratios: dict[str, float]) -> None:
    ratios["W6"] = 1000
    assert main(["--only", "W6"]) == 0


def test_a_row_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        main(["--only", "W9"])
    assert refused.value.code == 2
    assert "there is no row 'w9'" in capsys.readouterr().err


def test_the_figures_can_be_written_to_a_file(tmp_path: Path, ratios: dict[str, float]) -> None:
    ratios["W1"] = 12
    file = tmp_path / "figures.json"
    main(["--only", "W1", "--json", str(file)])
    (row,) = json.loads(file.read_text())["rows"]
    assert row == {
        "name": "W1", "what": "one prompt, one text reply", "budget": 15, "where": "runs:w1", "processes": 3,
        "base": 100.0, "flyball": 1200.0, "unit": "ns", "ratio": 12.0, "verdict": "within", "void": None,
    }  # fmt: skip


def test_what_a_rows_process_says_is_read() -> None:
    row = ROWS[0]
    assert outcome_of(row, {"base": 1.0, "flyball": 2.0, "unit": "ns"}).ratio == 2.0
    assert outcome_of(row, {"void": "tampered"}) == Outcome(row, None, "tampered")


def test_of_several_processes_the_lowest_figures_count() -> None:
    row = ROWS[0]
    outcomes = [Outcome(row, Figures(2.0, 30.0)), Outcome(row, Figures(1.0, 40.0))]
    assert lowest(outcomes) == Outcome(row, Figures(1.0, 30.0))
    void = Outcome(row, None, "tampered")
    assert lowest([*outcomes, void]) == void


@pytest.mark.integration
def test_the_whole_command_runs(tmp_path: Path) -> None:
    file = tmp_path / "figures.json"
    finished = subprocess.run(
        [sys.executable, str(RUN), "--quick", "--only", "journal", "--json", str(file)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=PATIENCE,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr
    (row,) = json.loads(file.read_text())["rows"]
    assert row["verdict"] == "within"
    assert row["unit"] == "bytes"

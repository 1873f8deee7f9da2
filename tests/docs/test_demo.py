"""The demo runs to its end, and shows what it promises: a tool, a typed object, a stream, what happened."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from flyball.inference.permission import VARIABLE
from flyball.models import SMALL, pull
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[2]


def demo(model: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "demo/run.py"],
        cwd=ROOT,
        env={**os.environ, "FLYBALL_MODEL": model, "COLUMNS": "120", **environment},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,  # it loads a model, and asks it several times
        check=False,
    )


@pytest.fixture
def scripted(tmp_path: Path) -> str:
    """A path that brings the model `demo`, as an installed package would."""
    info = tmp_path / "demo_model-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: demo-model\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[flyball.engines]\ndemo = tests.docs.demo_model:engine_for\n")
    return os.pathsep.join([str(ROOT / "src"), str(ROOT), str(tmp_path)])


def test_it_calls_a_tool_gives_an_object_streams_and_shows_its_course(scripted: str) -> None:
    finished = demo("demo:any", PYTHONPATH=scripted)
    assert (finished.returncode, finished.stderr) == (0, "")
    typed, rest = finished.stdout.split("a streamed answer")
    streamed, modes = rest.split("a schema, a vote, a plan")
    assert "> Do I need an umbrella in Paris today?" in typed
    assert "Forecast(city='Paris', temperature=12, umbrella=True)" in typed
    steps = [line for line in typed.splitlines() if line.lstrip().startswith("+")]
    expected = ("◆ model call 1", "▸ weather", "◆ model call 2", "✔ complete")
    for step, what in zip(steps, expected, strict=True):
        assert what in step
    assert '{"city":"Paris"} → In Paris it is 12 degrees' in steps[1]
    assert "40 → 20" in steps[0]
    assert "> In one short sentence" in streamed
    assert "It keeps its speed." in streamed
    assert "◆ model call 1" in streamed
    assert "✔ complete" in streamed
    assert [line.split()[0] for line in modes.splitlines() if "model call" in line] == [
        "structured",
        "redundant",
        "plan",
    ]
    assert modes.count('{"urgent":true}') == 2
    assert "(100% agree)" in modes
    assert "3 model calls" in modes


def test_what_goes_wrong_is_one_line_with_its_code() -> None:
    finished = demo("local:nothing-like-it")
    assert finished.returncode == 1
    (line,) = finished.stderr.splitlines()
    assert line.startswith("CONFIG_UNKNOWN_MODEL: ")


@pytest.mark.slow
def test_it_runs_on_a_model_of_this_machine() -> None:
    pull(SMALL)
    finished = demo(f"local:{SMALL.name}", **{VARIABLE: "1"})
    assert (finished.returncode, finished.stderr) == (0, "")
    assert "Forecast(city=" in finished.stdout
    assert finished.stdout.count("✔ complete") == 2

"""What is not marked begins no process, what is marked may; and files are in memory where they find room."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import in_memory, tiers

NOTHING = (sys.executable, "-c", "")


def test_who_is_not_marked_begins_no_process() -> None:
    told = "test_who_is_not_marked_begins_no_process begins a process: mark it"
    with pytest.raises(RuntimeError, match=told):
        subprocess.run(NOTHING, check=True)
    with pytest.raises(RuntimeError, match=told):
        asyncio.run(asyncio.create_subprocess_exec(*NOTHING))
    with pytest.raises(RuntimeError, match=told):
        os.fork()


@pytest.mark.integration
def test_who_is_marked_may() -> None:
    subprocess.run(NOTHING, check=True)


def test_who_has_a_fixture_that_begins_one_is_marked(request: pytest.FixtureRequest) -> None:
    items = {item.nodeid: item for item in request.session.items}
    for nodeid, item in items.items():
        if "/adapters/http/" in nodeid or "process" in getattr(item, "fixturenames", ()):
            assert item.get_closest_marker("integration"), nodeid


def test_folders_that_are_named_are_there() -> None:
    assert [place for place in tiers._WHOLE if not place.exists()] == []  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("variable", ["TMPDIR", "PYTEST_DEBUG_TEMPROOT"])
def test_files_are_where_somebody_says(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TMPDIR", "PYTEST_DEBUG_TEMPROOT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, "/elsewhere")
    in_memory.keep_in_memory()
    assert os.environ.get("PYTEST_DEBUG_TEMPROOT", "/elsewhere") == "/elsewhere"


def test_a_memory_that_is_small_or_not_there_is_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("TMPDIR", "PYTEST_DEBUG_TEMPROOT"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(in_memory, "_MEMORY", tmp_path / "nowhere")
    in_memory.keep_in_memory()
    assert "PYTEST_DEBUG_TEMPROOT" not in os.environ
    monkeypatch.setattr(in_memory, "_MEMORY", tmp_path)
    monkeypatch.setattr(in_memory, "_ROOM", 2**62)
    in_memory.keep_in_memory()
    assert "PYTEST_DEBUG_TEMPROOT" not in os.environ
    monkeypatch.setattr(in_memory, "_ROOM", 1)
    in_memory.keep_in_memory()
    assert os.environ["PYTEST_DEBUG_TEMPROOT"] == str(tmp_path)

"""A real process is killed while it tells what it has recorded: nothing is told twice, and it goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from flyball import SQLiteJournal
from flyball.core.events import Event
from flyball.orchestrate.projections.runtime_events import runtime_events
from tests.patience import PATIENCE
from tests.runtime.sqlite.watched_child import LOOP

PLACES = (
    "run_started",
    "turn_started",
    "model_requested",
    "model_responded",
    "tool_called",
    "tool_ended",
    "turn_ended",
    "run_completed",
)


def run(folder: Path, dies: str = "nowhere") -> int:
    command = [sys.executable, "-m", "tests.runtime.sqlite.watched_child", str(folder), dies]
    return subprocess.run(command, timeout=PATIENCE, check=False).returncode


async def recorded(folder: Path) -> list[Event]:
    async with SQLiteJournal(folder / "runs.db") as journal:
        return await journal.read(LOOP)


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_what_a_killed_process_had_not_told_is_told_by_nobody(place: str, tmp_path: Path) -> None:
    log = tmp_path / "told"
    log.touch()
    assert run(tmp_path, place) == -signal.SIGKILL
    before = asyncio.run(recorded(tmp_path))
    first = log.read_text().splitlines()
    assert place not in first
    assert run(tmp_path) == 0
    told = log.read_text().splitlines()
    events = [event.type for event in runtime_events(asyncio.run(recorded(tmp_path)))]
    assert not Counter(told) - Counter(events), "nothing is told twice"
    rest = iter(events)
    assert all(one in rest for one in told), "what is told is told in order"
    later = len(list(runtime_events(before)))
    assert told[len(first) :] == events[later:], "a resumed run tells all that happens from then on"
    assert (told[-1:] == ["run_completed"]) is (place != "run_completed")

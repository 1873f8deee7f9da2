"""A real process is killed with SIGKILL before and after every append, and the run is resumed each time."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from flyball.core.errors import LoopNotFound
from flyball.core.events import ToolReturned
from flyball.core.messages import ResultKind
from flyball.runtime.sqlite import SQLiteJournal
from tests.patience import PATIENCE
from tests.runtime.sqlite.crash_child import LOOP, PROMPT, TOOLS, agent

POINTS = {"three turns": 18, "one turn": 14}
"""How many moments there are at the most before and after the appends of each run."""


def killed_at(folder: Path, shape: str, points: int) -> list[bool]:
    """Run a process for each point; whether each was killed rather than finished."""
    command = [sys.executable, "-m", "tests.runtime.sqlite.crash_child", str(folder), shape, str(points)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert ended.returncode == 0, ended.stderr
    statuses = [int(line) for line in ended.stdout.splitlines()]
    assert len(statuses) == points
    assert set(statuses) == {0, -signal.SIGKILL}, ended.stderr
    return [status != 0 for status in statuses]


async def finish(folder: Path, shape: str) -> tuple[str, list[ToolReturned]]:
    """Resume what is recorded, as the next process would; begin if nothing is."""
    async with SQLiteJournal(folder / "runs.db") as journal:
        bound = agent(folder, shape)
        try:
            result = await bound.resume(LOOP, journal)
        except LoopNotFound:
            result = await bound.run(PROMPT, journal=journal, loop_id=LOOP)
        replayed = await bound.replay(LOOP, journal)
        assert replayed.messages == result.messages
        returned = [event for event in await result.events() if isinstance(event, ToolReturned)]
        return result.output, returned


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["three turns", "one turn"])
def test_a_run_killed_at_any_point_is_finished_by_resume(shape: str, tmp_path: Path) -> None:
    points = range(POINTS[shape] + 1)
    for point in points:
        (tmp_path / str(point)).mkdir()
    killed = killed_at(tmp_path, shape, len(points))
    # The points reach from the first append to beyond the last. (Results that come together share an append,
    # so a run with concurrent calls may have a few points less.)
    assert all(killed[:10])
    assert not killed[-1]
    for point in points:
        output, returned = asyncio.run(finish(tmp_path / str(point), shape))
        assert output == "all done", point
        check_results(tmp_path / str(point), returned, point)


def check_results(folder: Path, returned: list[ToolReturned], point: int) -> None:
    recorded = Counter(event.result.name for event in returned)
    assert all(recorded[name] == 1 for name in TOOLS if name != "pay"), (point, recorded)
    assert recorded["pay"] <= 1
    lines = (folder / "effects").read_text().splitlines()
    ran = Counter(line.split()[0] for line in lines)
    assert ran["pay"] <= 1, (point, ran)
    # Whatever ran twice could tell: the key it was given is the same.
    assert len(set(lines)) == len({line.split()[0] for line in lines})
    statuses = {event.result.name: event.result.status for event in returned}
    if "pay" not in recorded:
        assert ran["pay"] <= 1  # it was interrupted: the history says so, and no result is recorded
    else:
        assert statuses["pay"] is ResultKind.RETURN
        assert ran["pay"] == 1

"""Processes that run a flow are killed before and after every append: its own, and of the loops under it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from flyball.core.events import Event, StepEnded
from flyball.orchestrate.flow_machine import fold
from flyball.orchestrate.projections import normal_form
from flyball.runtime.sqlite import SQLiteJournal
from tests.runtime.sqlite.crash_child import LOOP, PROMPT, flow
from tests.runtime.sqlite.test_crash_points import killed_at

MOMENTS = 44
"""More than there are before and after the appends of the flow and of its three loops."""


def noted(folder: Path) -> list[str]:
    effects = folder / "effects"
    return effects.read_text().splitlines() if effects.exists() else []


async def finish(folder: Path) -> list[list[Event]]:
    """Run the flow again, as the next process would; what it leaves in the journals."""
    async with SQLiteJournal(folder / "runs.db") as journal:
        events = await journal.read(LOOP)
        recorded = [event.path for event in events if isinstance(event, StepEnded)]
        names = {fold(events[:1]).flow.steps[int(path)].name for path in recorded if "." not in path}
        before = noted(folder)
        result = await flow(folder).run(PROMPT, journal=journal, loop_id=LOOP)
        assert result.output == "[14, 49]"
        assert not names & set(noted(folder)[len(before) :]), "a step whose output is recorded was run again"
        assert sorted(set(noted(folder))) == ["both", "count", "double", "square"]
        assert result.usage.requests == 3
        loops = sorted(await journal.loops())
        assert loops == [LOOP, f"{LOOP}-s0", f"{LOOP}-s1", f"{LOOP}-s1-h1"]
        steps = [event.path for event in await result.events() if isinstance(event, StepEnded)]
        assert len(steps) == len(set(steps)) == 7
        return [normal_form(await journal.read(loop_id)) for loop_id in loops]


@pytest.mark.slow
def test_a_flow_killed_at_any_point_goes_on_where_it_stood(tmp_path: Path) -> None:
    folders = [tmp_path / str(point) for point in range(MOMENTS + 1)]
    for folder in folders:
        folder.mkdir()
    killed = killed_at(tmp_path, "flow", len(folders))
    assert all(killed[:30])
    assert not killed[-1], "the points do not reach to the end"
    ends = [asyncio.run(finish(folder)) for folder in folders]
    assert all(end == ends[-1] for end in ends)

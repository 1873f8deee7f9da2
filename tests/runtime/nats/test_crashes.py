"""Crews end before and after everything that they do: every history comes out the same.

What there is to do is found by a run that nobody disturbs. The cases of a part run side by side, each in an
account of its own.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from flyball.core.events import Event, ToolReturned, ToolStarted
from flyball.core.messages import ResultKind
from flyball.orchestrate.projections import normal_form
from flyball.runtime.nats import NatsOptions, connection
from flyball.runtime.nats.crew import ALL
from tests.runtime.nats.accounts import accounts
from tests.runtime.nats.crashing import Doom, Reference, Story, lived
from tests.runtime.nats.reference_loops import ONCE, Approved, SideBySide, Unanswered

AT_ONCE = 16
"""How many cases run side by side: more of them only wait for each other."""
PARTS = [(SideBySide(), 3), (Approved(), 3), (Unanswered(), 2)]
OWN = {"fly.j.begin", "fly.j.ended", "agent.request", "+ACK loop"}
"""What every loop has the loop worker do."""


@pytest.mark.parametrize(
    ("reference", "part", "of"),
    [
        pytest.param(reference, part, of, id=f"{type(reference).__name__}-{part}")
        for reference, of in PARTS
        for part in range(of)
    ],
)
async def test_every_history_comes_out_the_same(
    reference: Reference, part: int, of: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Who asks on a closed line notices it when the attempt is over: the dead are not waited for that long.
    monkeypatch.setattr(connection, "_ATTEMPT", 2.0)
    async with accounts(tmp_path / "server", AT_ONCE + 1) as (quiet, *several):
        calm = await lived(quiet, reference, None, "calm")
        check_points(reference, calm)
        cases = iter(calm.dooms()[part::of])
        wrong: list[str] = []

        async def work_off(options: NatsOptions) -> None:
            for doom in cases:
                name = f"{doom.victim} dies {doom.moment} {doom.number}, {what(calm, doom)}"
                try:
                    check_story(await lived(options, reference, doom, "-".join(map(str, doom))), calm, doom)
                except Exception as error:
                    wrong.append(f"{name}: {reason(error)}")
                    return  # what it left behind would disturb the next one here

        await asyncio.gather(*map(work_off, several))
    assert not wrong, "\n".join(wrong)


@pytest.mark.xfail(
    strict=True,
    reason="given again to another worker, a signal that was recorded is refused as one that came before",
)
async def test_who_signals_is_told_that_it_was_taken_also_if_the_worker_died_then(tmp_path: Path) -> None:
    reference = Approved()
    async with accounts(tmp_path / "server", 2) as (quiet, other):
        calm = await lived(quiet, reference, None, "calm")
        assert reference.taken
        did = [point.what for point in calm.first("loop").points]
        doom = Doom("loop", did.index("fly.j.signalreceived") + 1, "after")
        check_story(await lived(other, reference, doom, "loop"), calm, doom)
        assert reference.taken


def reason(error: Any) -> str:
    """Why a case went wrong, in a line or two."""
    several: tuple[Any, ...] = getattr(error, "exceptions", ())
    return "; ".join(map(reason, several)) or f"{type(error).__name__}: {error}"


def what(calm: Story, doom: Doom) -> str:
    """What a crew does where it is to die."""
    return calm.first(doom.victim).points[doom.number - 1].what


def check_points(reference: Reference, calm: Story) -> None:
    """See to it that what there is to do was found."""
    found = {kind: [point.what for point in calm.first(kind).points] for kind in ALL}
    tools = not isinstance(reference, Unanswered)
    assert set(found["loop"]) >= OWN | ({"tool.execute"} if tools else set[str]()), found
    assert set(found["model"]) >= {"model call", "agent.response", "+ACK model"}, found
    if isinstance(reference, SideBySide):
        assert set(found["loop"]) >= {"instructions", "delivery"}, found
        assert set(found["tools"]) >= {"$KV.CLAIMS", "look", "launch", "tool.result"}, found
    else:
        assert "agent.schedule" in found["loop"], found
        assert ("fly.j.signalreceived" in found["loop"]) is tools, found
    least = {SideBySide: 30, Approved: 25, Unanswered: 12}[type(reference)]  # pyright: ignore[reportArgumentType]
    assert sum(map(len, found.values())) >= least, found


def check_story(story: Story, calm: Story, doom: Doom) -> None:
    """See to it that nobody notices, afterwards, that a crew died."""
    died = story.first(doom.victim)
    # Where its last word was the last that anybody waited for, all was over before it could die of it.
    reached = doom.moment == "after" and len(died.points) == doom.number
    assert died.dead or reached, f"it did not die, and did {[point.what for point in died.points]}"
    assert story.end == calm.end
    assert not story.dead
    returned = [event.result.call_id for event in story.events if isinstance(event, ToolReturned)]
    assert len(returned) == len(set(returned)), "a result is there twice"
    begun = [(event.turn, event.index) for event in story.events if isinstance(event, ToolStarted)]
    assert len(begun) == len(set(begun)), "a start is there twice"
    for name, times in calm.world.done.items():
        assert story.world.done[name] <= times + 1, f"{name} was done {story.world.done[name]} times"
    claimed = any(point.what == "$KV.CLAIMS" for point in died.points)
    told = any(point.what == "tool.result" and ONCE.encode() in point.data for point in died.points)
    events = story.events
    if claimed and not told:
        # It may or may not have had its effect, and the model is told so.
        events = undisturbed(events, calm.events)
    else:
        assert story.world.done["launch"] == calm.world.done["launch"]
    assert story.world.done["launch"] <= 1
    assert normal_form(events) == normal_form(calm.events)


def undisturbed(events: list[Event], calm: list[Event]) -> list[Event]:
    """Events with the result of the call that may start once as it would have been, which it was not."""
    (mine,) = [event for event in events if is_once(event)]
    (theirs,) = [event for event in calm if is_once(event)]
    assert isinstance(mine, ToolReturned)
    assert isinstance(theirs, ToolReturned)
    assert mine.result.status is ResultKind.INTERRUPTED
    return [replace(mine, result=theirs.result) if event is mine else event for event in events]


def is_once(event: Event) -> bool:
    return isinstance(event, ToolReturned) and event.result.call_id == ONCE

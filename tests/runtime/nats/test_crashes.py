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
from flyball.runtime.nats.entry import decode_entry
from tests.runtime.nats.crashing import APART, TOGETHER, Crews, Doom, Life, Point, Reference, Story, lived
from tests.runtime.nats.reference_loops import ONCE, Approved, Asked, SideBySide, Unanswered
from tests.runtime.nats.side_by_side import accounts

AT_ONCE = 16
"""How many cases run side by side: more of them only wait for each other."""
PARTS: dict[str, tuple[Reference, Crews, int]] = {
    "tools side by side": (SideBySide(), APART, 4),
    "tools side by side, in one process": (SideBySide(), TOGETHER, 1),
    "approved": (Approved(), APART, 2),
    "approved, in one process": (Approved(), TOGETHER, 1),
    "unanswered": (Unanswered(), APART, 1),
    "asked": (Asked(), APART, 4),
    "asked, in one process": (Asked(), TOGETHER, 2),
}
"""Loops, who carries them on, and into how many parts their cases are divided."""
FIRST = "tools side by side"
LEAST = {
    "tools side by side": {
        *("fly.j.begin", "fly.j.toolreturned", "fly.j.ended", "agent.request", "agent.response"),
        *("tool.execute", "tool.result", "$KV.CLAIMS", "instructions", "delivery", "model call", "look"),
        *("launch", "+ACK loop", "+ACK model", "+ACK tool-look", "+ACK tool-launch"),
    },
    "tools side by side, in one process": {
        *("fly.j.begin", "fly.j.toolreturned", "fly.j.ended", "$KV.CLAIMS", "instructions", "delivery"),
        *("model call", "look", "launch", "+ACK loop"),
    },
    "approved": {
        *("fly.j.begin", "fly.j.signalreceived", "fly.j.ended", "agent.schedule", "agent.request"),
        *("agent.response", "tool.execute", "tool.result", "model call", "pay", "a reply"),
        *("+ACK loop", "+ACK model", "+ACK tool-pay"),
    },
    "approved, in one process": {
        *("fly.j.begin", "fly.j.signalreceived", "fly.j.ended", "agent.schedule", "model call", "pay"),
        *("a reply", "+ACK loop"),
    },
    "unanswered": {
        *("fly.j.begin", "fly.j.ended", "agent.schedule", "agent.request", "agent.response", "model call"),
        *("+ACK loop", "+ACK model"),
    },
    "asked": {
        *("fly.j.begin", "fly.j.childstarted", "fly.j.childended", "fly.j.ended", "agent.task"),
        *("agent.request", "agent.response", "tool.execute", "tool.result", "model call", "look"),
        *("+ACK loop", "+ACK model", "+ACK tool-look", "+ACK tool-guide"),
    },
    "asked, in one process": {
        *("fly.j.begin", "fly.j.childstarted", "fly.j.childended", "fly.j.ended", "agent.task"),
        *("tool.result", "model call", "look", "+ACK loop"),
    },
}
"""What must be among what is done, at least."""
BESIDE = (
    "$KV.AGENT_",
    "agent.created",
    "agent.complete",
    "agent.cancelled",
    "agent.context",
    "+ACK projector",
    "begun",
)
"""What is written off the loop's way, now and then: how often depends on the time that things take."""
PASSING = ("fly.d", "fly.x")
"""What is said in passing, and may be lost."""


@pytest.mark.parametrize(
    ("name", "part"),
    [(name, part) for name, (_, _, of) in PARTS.items() for part in range(of)],
)
async def test_every_history_comes_out_the_same(
    name: str, part: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reference, crews, of = PARTS[name]
    # Who asks on a closed line notices it when the attempt is over: the dead are not waited for that long.
    monkeypatch.setattr(connection, "_ATTEMPT", 2.0)
    async with accounts(tmp_path / "server", AT_ONCE + 1) as (quiet, *several):
        calm = await lived(quiet, reference, None, "calm", crews=crews)
        done = {point.what for lives in calm.lives.values() for point in lives[0].points}
        assert done >= LEAST[name], f"not found: {LEAST[name] - done}"
        cases = iter(list(enumerate(dooms_of(name, calm)))[part::of])
        wrong: list[str] = []

        async def work_off(options: NatsOptions) -> None:
            for number, doom in cases:
                try:
                    story = await lived(options, reference, doom, f"case-{number}", crews=crews)
                    check_story(story, calm, doom)
                except Exception as error:
                    wrong.append(f"{' '.join(map(str, doom))}: {reason(error)}")
                    return  # what it left behind would disturb the next one here

        await asyncio.gather(*map(work_off, several))
    assert not wrong, "\n".join(wrong)


def dooms_of(name: str, calm: Story) -> list[Doom]:
    """The cases of a loop. What is the same for all loops is gone through with the first one."""
    dooms = calm.dooms()
    return [doom for doom in dooms if name == FIRST or not doom.what.startswith((*BESIDE, *PASSING))]


async def test_who_signals_is_told_that_it_was_taken_also_if_the_worker_died_then(tmp_path: Path) -> None:
    reference, doom = Approved(), Doom("loop", "fly.j.signalreceived", 1, "after")
    async with accounts(tmp_path / "server", 2) as (quiet, other):
        calm = await lived(quiet, reference, None, "calm")
        assert reference.taken
        check_story(await lived(other, reference, doom, "loop"), calm, doom)
        assert reference.taken


def reason(error: Any) -> str:
    """Why a case went wrong, in a line or two."""
    several: tuple[Any, ...] = getattr(error, "exceptions", ())
    return "; ".join(map(reason, several)) or f"{type(error).__name__}: {error}"


def check_story(story: Story, calm: Story, doom: Doom) -> None:
    """See to it that nobody notices, afterwards, that a crew died."""
    died = story.first(doom.victim)
    assert died.dead or has_done(died, doom) or may_not_come(died, doom), (
        f"it did not die, and did {[point.what for point in died.points]}"
    )
    assert story.end == calm.end
    assert not story.dead
    assert sorted(story.announced) == sorted(calm.announced), "others were told twice, or not at all"
    assert story.stage == calm.stage
    returned = [event.result.call_id for event in story.events if isinstance(event, ToolReturned)]
    assert len(returned) == len(set(returned)), "a result is there twice"
    begun = [(event.turn, event.index) for event in story.events if isinstance(event, ToolStarted)]
    assert len(begun) == len(set(begun)), "a start is there twice"
    for name, times in calm.world.done.items():
        assert story.world.done[name] <= 2 * times, f"{name} was done {story.world.done[name]} times"
    events = story.events
    if any(point.what == "$KV.CLAIMS" for point in died.points) and not any(map(tells_of_once, died.points)):
        # It may or may not have had its effect, and the model is told so.
        events = undisturbed(events, calm.events)
    else:
        assert story.world.done["launch"] == calm.world.done["launch"]
    assert story.world.done["launch"] <= 1
    assert normal_form(events) == normal_form(calm.events)


def has_done(life: Life, doom: Doom) -> bool:
    """Whether a crew did that after which it was to die: if nobody waited for more, it was over before."""
    return doom.moment == "after" and [point.what for point in life.points].count(doom.what) == doom.time


def may_not_come(life: Life, doom: Doom) -> bool:
    """Whether a crew need not have come to where it was to die.

    What is done once is done in every run. Twice, it may be by chance: whoever appends at the same moment as
    somebody else does it again. And what is beside the way comes as often as there is time for it.
    """
    often = [point.what for point in life.points].count(doom.what)
    return doom.what.startswith(BESIDE) or 0 < often < doom.time


def tells_of_once(point: Point) -> bool:
    """Whether something said is the result of the call that may start once."""
    if point.what.startswith("fly.j."):
        entry = decode_entry(point.data, point.what)
        return any(b'"tool_returned"' in bytes(raw) and ONCE.encode() in bytes(raw) for raw in entry.events)
    return point.what == "tool.result" and ONCE.encode() in point.data


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

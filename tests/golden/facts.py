"""Golden journals: what a release has written, and what it took it to mean. Later ones must mean the same.

    python -m tests.golden.facts       # adds those that are not kept yet, under the version of the format

What is kept is never made anew, nor changed: it is what a release wrote then. A new kind of event needs a run
that has it, in `courses` or among the scenarios, and then this.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw, Struct

from flyball.core.codec import encode_event
from flyball.core.errors import FlyballError
from flyball.core.events import VERSION, Event
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.machines import fold, stage
from flyball.orchestrate.permissions import owner_of
from flyball.orchestrate.projections import violations
from flyball.orchestrate.projections.said import said_in
from flyball.orchestrate.projections.summary import answer_of

FOLDER = Path(__file__).parent
Record: TypeAlias = Callable[[Journal], Awaitable[None]]
"""Has something happen in a journal."""


class Golden(Struct, frozen=True):
    """A journal as it was written, and what it came to."""

    name: str
    events: list[Raw]
    came_to: dict[str, Any]


def facts(events: list[Event]) -> dict[str, Any]:
    """What a journal comes to, in words that outlive the fields of a state.

    What is kept has those that there were when it was made.
    """
    state = fold(events)
    told: dict[str, Any] = {
        "at": state.at,
        "outcome": state.outcome,
        "error": None if state.error is None else state.error.code,
        "answer": answer_of(state),
        "usage": state.usage,
        "children": list(state.children),
        "said": said_in(state),
        "stage": stage(state),
        "loop_id": state.loop_id,
        "parent": state.parent_loop_id,
        "owner": owner_of(state.metadata),
        "metadata": state.metadata,
    }
    if not isinstance(state, FlowState):
        told |= {"turn": state.turn, "iterations": state.iterations, "attempt": state.attempt}
        told |= {"identity": state.identity, "violations": violations(events)}
    return msgspec.json.decode(msgspec.json.encode(told))


async def _recorded(runs: dict[str, Record]) -> list[Golden]:
    made: list[Golden] = []
    for name, record in runs.items():
        journal = MemoryJournal()
        await record(journal)
        for number, loop_id in enumerate(await journal.loops()):
            events = await journal.read(loop_id)
            written = [Raw(encode_event(event)) for event in events]
            made.append(Golden(f"{name}: {number}", written, facts(events)))
    return made


def _runs() -> dict[str, Record]:
    """All that is recorded, by name."""
    from tests.golden.courses import COURSES
    from tests.orchestrate.scenario import Scenario
    from tests.orchestrate.scenarios import SCENARIOS

    def recording(scenario: Scenario) -> Record:
        async def record(journal: Journal) -> None:
            try:
                await scenario.make().run(scenario.prompt, journal=journal, **scenario.options)
            except FlyballError as error:
                if error.code != scenario.code:
                    raise

        return record

    runs = {scenario.name: recording(scenario) for scenario in SCENARIOS}
    return runs | {course.name: course.record for course in COURSES}


def kept(file: Path) -> list[Golden]:
    """The golden journals in a file."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [msgspec.json.decode(line, type=Golden) for line in lines]


def main() -> None:
    """Add the golden journals of this version that are not kept yet."""
    file = FOLDER / f"v{VERSION}.jsonl"
    known = {golden.name.rpartition(": ")[0] for golden in kept(file)}
    missing = {name: record for name, record in _runs().items() if name not in known}
    with file.open("ab") as out:
        out.writelines([msgspec.json.encode(one) + b"\n" for one in asyncio.run(_recorded(missing))])


if __name__ == "__main__":
    main()

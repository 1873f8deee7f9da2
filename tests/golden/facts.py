"""Golden journals: what a release has written, and what it took it to mean. Later ones must mean the same.

    python -m tests.golden.facts       # writes those of this release, under the version of the format

They are made anew only for a new version of the format; those of older ones stay as they are.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from flyball.core.codec import encode_event
from flyball.core.errors import FlyballError
from flyball.core.events import VERSION, Event
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.machines import fold
from flyball.orchestrate.projections.said import said_in
from flyball.orchestrate.projections.summary import answer_of

FOLDER = Path(__file__).parent


class Golden(Struct, frozen=True):
    """A journal as it was written, and what it came to."""

    name: str
    events: list[Raw]
    came_to: dict[str, Any]


def facts(events: list[Event]) -> dict[str, Any]:
    """What a journal comes to, in words that outlive the fields of a state."""
    state = fold(events)
    told: dict[str, Any] = {
        "at": state.at,
        "outcome": state.outcome,
        "error": None if state.error is None else state.error.code,
        "answer": answer_of(state),
        "usage": state.usage,
        "children": list(state.children),
        "said": said_in(state),
    }
    if not isinstance(state, FlowState):
        told |= {"turn": state.turn, "iterations": state.iterations, "attempt": state.attempt}
    return msgspec.json.decode(msgspec.json.encode(told))


async def _made() -> list[Golden]:
    from tests.orchestrate.scenarios import SCENARIOS

    made: list[Golden] = []
    for scenario in SCENARIOS:
        journal = MemoryJournal()
        try:
            await scenario.make().run(scenario.prompt, journal=journal, **scenario.options)
        except FlyballError as error:
            if error.code != scenario.code:
                raise
        for loop_id in await journal.loops():
            events = await journal.read(loop_id)
            written = [Raw(encode_event(event)) for event in events]
            made.append(Golden(f"{scenario.name}: {len(made)}", written, facts(events)))
    return made


def main() -> None:
    """Write the golden journals of this version."""
    file = FOLDER / f"v{VERSION}.jsonl"
    file.write_bytes(b"".join([msgspec.json.encode(one) + b"\n" for one in asyncio.run(_made())]))


if __name__ == "__main__":
    main()

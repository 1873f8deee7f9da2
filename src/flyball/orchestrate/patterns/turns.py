"""The turns of a conversation, found again in a journal."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from msgspec import Struct

from flyball.core.events import Outcome, Started
from flyball.core.messages import Message, user
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.recorded import load
from flyball.orchestrate.requesting import recorded_output
from flyball.orchestrate.schema_output import SchemaOutput


class Turn(Struct, frozen=True):
    """One turn: what the user said, after what, and what came of it (None: nothing, or nothing yet)."""

    loop_id: str
    said: Message
    history: tuple[Message, ...]
    answer: str | None
    is_over: bool
    output: Any
    """The schema that the answer is held to, if it is."""
    metadata: dict[str, Any] | None

    @property
    def session(self) -> dict[str, Any] | None:
        """What was decided in the session when the turn began."""
        return (self.metadata or {}).get("session")


async def turns_of(journal: Journal, session_id: str) -> AsyncGenerator[Turn]:
    """The turns of a session, in their order. The last one may not be over."""
    number = 1
    while await journal.read(loop_id := f"{session_id}-t{number}"):
        events, state = await load(journal, loop_id)
        started = events[0]
        assert isinstance(started, Started), "a loop begins so"
        output = recorded_output(state.spec.output)
        done = state.at == "done"
        yield Turn(
            loop_id,
            started.prompt or user(""),
            tuple(started.history),
            state.answer if done and state.outcome is Outcome.SUCCESS else None,
            done,
            output.schema if isinstance(output, SchemaOutput) else None,
            started.metadata,
        )
        number += 1

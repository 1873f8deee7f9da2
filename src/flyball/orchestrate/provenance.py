"""Provenance: what a loop was begun with that its spec does not say, and who began it.

Whoever begins loops for a person notes it in their metadata, under one key; other notes may stand there
beside it. Loops of programs that note nothing have what their specs tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins
from msgspec.structs import replace

from flyball.core.events import Event, Forked
from flyball.orchestrate.machines import AnyState
from flyball.orchestrate.state import State

KEY = "flyball"
"""Where it stands in a loop's metadata."""


class Provenance(Struct, frozen=True, omit_defaults=True):
    """The model string that a loop was begun with, and the process that began it (`standing.this_process`).

    Either is empty where nobody said so.
    """

    model: str = ""
    process: str = ""

    def metadata(self) -> dict[str, Any]:
        """As metadata of a loop that is begun."""
        return {KEY: to_builtins(self)}


def provenance_of(events: Sequence[Event], state: AnyState) -> Provenance:
    """What a loop was begun with; one of another program, as far as its spec tells.

    Of the events only those that say that it is a fork are looked at.
    """
    try:
        noted = convert((state.metadata or {}).get(KEY, {}), Provenance)
    except ValidationError:
        noted = Provenance()
    if not isinstance(state, State):
        return noted
    forked = any(isinstance(event, Forked) for event in events)
    # A fork may be of another model than the loop whose metadata it has.
    return replace(noted, model=state.spec.model if forked or not noted.model else noted.model)

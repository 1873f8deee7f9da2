"""Call ids that differ over a whole history: some providers want that, and not all models give it.

Who records an answer looks at its calls' ids beside those of the turns before, and gives new ones where
they were used already. So the journal, the history and the tools all speak of the same ids.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from msgspec.structs import replace

from flyball.core.events import Event, ModelAnswered
from flyball.core.messages import Part, ToolCall


def told_apart(event: Event, used: AbstractSet[str]) -> Event:
    """The event, with other ids for calls whose ids are used already; it notes which."""
    if type(event) is not ModelAnswered:
        return event
    message, parts = event.message, event.message.parts
    if len(parts) == 1 and (type(parts[0]) is not ToolCall or parts[0].id not in used):
        return event  # the usual answer
    if used.isdisjoint([call.id for call in message.tool_calls]):
        return event
    taken = {*used, *(call.id for call in message.tool_calls)}
    notes: list[str] = list(event.notes)
    made: list[Part] = []
    for part in parts:
        if type(part) is ToolCall and part.id in used:
            number = event.turn
            while f"{part.id}~{number}" in taken:
                number += 1
            identifier = f"{part.id}~{number}"
            taken.add(identifier)
            notes.append(f"the call id {part.id!r} was used before and is now {identifier!r}")
            made.append(replace(part, id=identifier))
        else:
            made.append(part)
    return replace(event, message=replace(message, parts=tuple(made)), notes=tuple(notes))

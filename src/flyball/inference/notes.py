"""What wrappers say in a message's `extra`: how an answer came about, and nothing that was said.

Nothing of it is for a model: who compares messages, or sends them on, may leave it out (`without_notes`).
"""

from __future__ import annotations

from msgspec.structs import replace

from flyball.core.messages import Message

ATTEMPTS = "attempts"
"""The tries that failed before: see `flyball.inference.attempts`. It is in the details of errors, too."""
CACHED = "cached"
"""It came from a cache: `usage` is what it used when it was given first."""
ROUTE = "route"
"""Where a router sent the call: `name`, and what it was decided by."""
NOTES = (ATTEMPTS, CACHED, ROUTE)


def without_notes(message: Message) -> Message:
    """A message without what wrappers noted in it; the same one if they did not."""
    if message.extra is None or not any(note in message.extra for note in NOTES):
        return message
    extra = {name: value for name, value in message.extra.items() if name not in NOTES}
    return replace(message, extra=extra or None)

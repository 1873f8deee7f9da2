"""What a turn sends, where that is not the history itself. Part of the machine, and as pure.

Interceptors change what is sent, and not what was said. They begin from the history each time and come to
much the same; so what is recorded is only in what they differ from what was sent last, with what has been
said since. That is the base of a turn's edits.
"""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.edits import Edit, edited
from flyball.core.messages import Message
from flyball.orchestrate.state import State


def base(state: State) -> Sequence[Message]:
    """What a turn's edits are against: what was sent last with what came since, or the history."""
    if state.sent is None:
        return state.history
    return [*state.sent, *state.history[state.seen :]]


def send(state: State, edits: Sequence[Edit]) -> None:
    """Take a turn's edits: `state.sent` is what goes out, or None if that is the history."""
    history = state.history
    if not edits and state.sent is None:
        return
    sent = edited(base(state), edits)
    state.sent, state.seen = (None, 0) if sent == history else (sent, len(history))

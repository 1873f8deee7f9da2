"""What a turn sends, where that is not the history itself. Part of the machine, and as pure.

Processors and interceptors change what is sent, and not what was said.
"""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.edits import Edit, edited
from flyball.core.messages import Message
from flyball.orchestrate.compacted import remembered
from flyball.orchestrate.state import State
from flyball.orchestrate.version import brought_up, version_of


def outgoing(state: State) -> list[Message]:
    """The messages of a turn's request."""
    return state.history if state.sent is None else state.sent.messages


def base(state: State) -> Sequence[Message]:
    """What a turn's edits are against: what was sent last with what came since, or what is remembered."""
    return remembered(state) if state.sent is None else brought_up(state.sent, state.history)


def send(state: State, edits: Sequence[Edit]) -> None:
    """Take a turn's edits: `state.sent` is what goes out, or None if that is the history."""
    if edits or state.sent is not None or state.compaction is not None:
        state.sent = version_of(state.history, edited(base(state), edits))

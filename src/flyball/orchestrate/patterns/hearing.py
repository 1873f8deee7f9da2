"""Pagantic's stream handler on the agents of a flow."""

from __future__ import annotations

from flyball.inference.handler import HandlerTap
from flyball.inference.stream import Finish, StreamEvent, StreamHandler
from flyball.orchestrate.flow.doing import Hear


def heard_by(handler: StreamHandler) -> Hear:
    """A handler as somebody who hears the pieces of answers. Each model call is an answer of its own."""
    taps: dict[str, HandlerTap] = {}

    def hear(loop_id: str, piece: StreamEvent) -> None:
        tap = taps.get(loop_id)
        if tap is None:
            tap = taps[loop_id] = HandlerTap(handler)
        tap.feed(piece)
        if type(piece) is Finish:
            del taps[loop_id]

    return hear

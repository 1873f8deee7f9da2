"""Server-sent events as bytes: what is told of a loop, each with the id that one can come back with."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct

from flyball.adapters.http.problems import problem_of
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import Stage
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.followed import Recorded

MEDIA_TYPE = "text/event-stream"
HEARTBEAT = b": still here\n\n"

_encode = msgspec.json.Encoder().encode
_LINE_ENDS = tuple([(end.encode(), rb"\u%04x" % ord(end)) for end in "\x85\u2028\u2029"])
"""Line ends for some readers of streams, though not by the standard: JSON has another way to write them."""


class Over(Struct, frozen=True):
    """The last thing that is told of a loop: it is over, and stands so."""

    loop_id: str
    stage: Stage


def frame(name: str, document: Any, identifier: str = "") -> bytes:
    """One event. JSON is written in one line, so that nothing in it can be taken for another event."""
    data = document if isinstance(document, bytes) else _encode(document)
    if not data.isascii():
        for character, escaped in _LINE_ENDS:
            data = data.replace(character, escaped)
    head = f"id: {identifier}\nevent: {name}\ndata: " if identifier else f"event: {name}\ndata: "
    return b"%s%s\n\n" % (head.encode(), data)


def told(item: Recorded | StreamEvent, identifier: str) -> bytes:
    """Something that is told of a loop: an event of its journal, or a piece of an answer."""
    return frame("event" if isinstance(item, Recorded) else "piece", item, identifier)


def failed(error: SystemError) -> bytes:
    """That no more can be told, and why."""
    return frame("problem", problem_of(error))

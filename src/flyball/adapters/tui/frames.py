"""Server-sent events, as they come out of a connection: bytes in, events out. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct


class Frame(Struct, frozen=True):
    """One event of a stream: what it is, its document, and the id that one can come back with."""

    event: str
    data: bytes
    id: str = ""


class Frames:
    """Cuts bytes into events. A line may be as long as it likes: each byte is looked at once."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._seen = 0

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The events that are complete with these bytes. Comments, such as that it still lives, are none."""
        buffer = self._buffer
        buffer += chunk
        begin = 0
        while (end := buffer.find(b"\n\n", max(begin, self._seen))) >= 0:
            frame = _frame(bytes(buffer[begin:end]))
            begin = self._seen = end + 2
            if frame is not None:
                yield frame
        del buffer[:begin]
        self._seen = max(0, len(buffer) - 1)


def _frame(block: bytes) -> Frame | None:
    fields: dict[bytes, bytes] = {}
    for line in block.split(b"\n"):
        name, _, value = line.partition(b":")
        fields[name] = value.removeprefix(b" ")
    if b"data" not in fields:
        return None
    return Frame(fields.get(b"event", b"message").decode(), fields[b"data"], fields.get(b"id", b"").decode())

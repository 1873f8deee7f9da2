"""Server-sent events: the data of each, out of bytes that may be cut anywhere."""

from __future__ import annotations

from flyball.core.errors import UnexpectedModelBehavior

LONGEST = 64 * 1024 * 1024
"""Bytes of one event: a server that never ends one would fill the memory."""


class EventReader:
    """Takes the bytes of a stream and gives the data of each event that is complete.

    What it gives hangs on the bytes alone, and not on how they were cut. Lines end with LF, CRLF or CR;
    comments and all fields but `data` are passed over: the vendors say what an event is in its data. An event
    that nothing ended (the stream broke off) is not given.
    """

    __slots__ = ("_after_cr", "_begun", "_data", "_open", "_size")

    def __init__(self) -> None:
        self._open: list[bytes] = []
        """The pieces of the line that has not ended."""
        self._data: list[bytes] = []
        """The data lines of the event that has not ended."""
        self._size = 0
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that end in this chunk.

        Raises:
            UnexpectedModelBehavior: an event is longer than `LONGEST`.
        """
        if b"\r" in chunk or self._after_cr:
            chunk = self._with_plain_ends(chunk)
        if b"\n" not in chunk:
            self._keep(chunk)
            return []
        first, *lines = chunk.split(b"\n")
        if self._open:
            first = b"".join((*self._open, first))
            self._open.clear()
        last = lines.pop()
        found: list[bytes] = []
        for line in (first, *lines):
            self._take(line, found)
        self._size = sum(map(len, self._data))
        self._keep(last)
        return found

    def _take(self, line: bytes, found: list[bytes]) -> None:
        if not self._begun:
            self._begun = True
            line = line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            if self._data:
                found.append(self._data[0] if len(self._data) == 1 else b"\n".join(self._data))
                self._data.clear()
        elif line.startswith(b"data:"):
            self._data.append(line[6:] if line[5:6] == b" " else line[5:])
        elif line == b"data":
            self._data.append(b"")

    def _keep(self, piece: bytes) -> None:
        if piece:
            self._open.append(piece)
            self._size += len(piece)
            if self._size > LONGEST:
                raise UnexpectedModelBehavior(
                    f"the server sent an event of more than {LONGEST:,} bytes and did not end it",
                    body=bytes(self._open[0][:200]).decode("utf-8", "replace"),
                )

    def _with_plain_ends(self, chunk: bytes) -> bytes:
        if self._after_cr and chunk.startswith(b"\n"):
            # The second half of a CRLF that was cut in two: its line has ended.
            chunk = chunk[1:]
            self._after_cr = False
        if chunk:
            self._after_cr = chunk.endswith(b"\r")
        return chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")

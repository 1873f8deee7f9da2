"""Server-sent events: the data of each, out of bytes that may be cut anywhere."""

from __future__ import annotations

from flyball.core.errors import UnexpectedModelBehavior

LONGEST = 64 * 1024 * 1024
"""Bytes of one event: a server that never ends one would fill the memory."""

_MARK = b"\xef\xbb\xbf"


class EventReader:
    """Takes the bytes of a stream and gives the data of each event that is complete.

    What it gives hangs on the bytes alone, and not on how they were cut. Lines end with LF, CRLF or CR;
    comments and all fields but `data` are passed over: the vendors say what an event is in its data. An event
    that nothing ended (the stream broke off) is not given.
    """

    __slots__ = ("_after_cr", "_begun", "_open", "_size")

    def __init__(self) -> None:
        self._open: list[bytes] = []
        """The pieces of the event that has not ended."""
        self._size = 0
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that end in this chunk.

        Raises:
            UnexpectedModelBehavior: an event is longer than `LONGEST`.
        """
        if self._after_cr or b"\r" in chunk:
            chunk = self._with_plain_ends(chunk)
        opened = self._open
        if b"\n\n" not in chunk and not (opened and chunk[:1] == b"\n" and opened[-1].endswith(b"\n")):
            if chunk:
                self._keep(chunk)
            return []
        if opened:
            chunk = b"".join((*opened, chunk))
            opened.clear()
        if not self._begun:
            self._begun = True
            chunk = chunk.removeprefix(_MARK)
        # An event ends with an empty line.
        end = chunk.rfind(b"\n\n")
        rest, whole = chunk[end + 2 :], chunk[:end]
        self._size = 0
        if rest:
            self._keep(rest)
        if whole.startswith(b"data: "):
            # What nearly all events of a model's stream are: a line of data, and nothing else.
            plain = whole[6:].split(b"\n\ndata: ")
            if whole.count(b"\n") == 2 * len(plain) - 2:
                return plain
        return [data for event in whole.split(b"\n\n") if (data := _data(event)) is not None]

    def _keep(self, piece: bytes) -> None:
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


def _data(event: bytes) -> bytes | None:
    """The data of an event, its lines joined; None where it has none."""
    lines = [
        line[6:] if line[5:6] == b" " else line[5:]
        for line in event.split(b"\n")
        if line.startswith(b"data:") or line == b"data"
    ]
    return b"\n".join(lines) if lines else None

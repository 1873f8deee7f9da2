"""How it went with a program: what it said besides messages, why it is over, and how it ended."""

from __future__ import annotations

from collections import deque

ENDED = "it ended"
_LINES, _LINE = 20, 4_000


class Course:
    """Written by who speaks with the program, read by who tells what went wrong.

    `garbage` is the last that it wrote to stdout and was no message; `over` why there are no more, and
    empty while there are, or where it is us who end it; `code` its exit code.
    """

    def __init__(self) -> None:
        self.garbage = ""
        self.over = ""
        self.stopping = False
        self.code: int | None = None
        self._lines: deque[str] = deque(maxlen=_LINES)
        self._rest = ""

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines of its stderr."""
        return (*self._lines, self._rest) if self._rest.strip() else tuple(self._lines)

    def hear(self, text: str) -> None:
        """Take in what it wrote to stderr."""
        *lines, self._rest = (self._rest + text).split("\n")
        self._lines.extend([line[:_LINE] for line in lines if line.strip()])
        self._rest = self._rest[:_LINE]

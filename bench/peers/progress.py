"""What the command is doing: a line that moves in a terminal, a line a step elsewhere; on standard error."""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TextIO


class Progress:
    """Tells the steps. In a terminal the line is cleared at the end."""

    def __init__(self, steps: int, out: TextIO | None = None) -> None:
        self._steps, self._taken = steps, 0
        self._out = sys.stderr if out is None else out

    def step(self, what: str) -> None:
        """Say what comes next."""
        self._taken += 1
        line = f"{self._taken} of {self._steps}  {what}"
        self._write(f"\r\033[2K{line}" if self._out.isatty() else f"{line}\n")

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._out.isatty():
            self._write("\r\033[2K")

    def _write(self, text: str) -> None:
        self._out.write(text)
        self._out.flush()

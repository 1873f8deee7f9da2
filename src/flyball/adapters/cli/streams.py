"""The standard streams, where they are closed, or cannot be written any more."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from io import TextIOWrapper


class _Stdout(TextIOWrapper):
    """Remembers why it could not be written: whoever gets the error cannot tell whose it is."""

    fault: OSError | None = None

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            self.fault = error
            raise

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            self.fault = error
            raise


class _Stderr(TextIOWrapper):
    """Loses what is written to a terminal that is closed: who draws there would wait for it for ever."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            if error.errno != errno.EIO:
                raise


def take_streams() -> None:
    """Have all three streams, and let none of them fail for a character that it cannot write.

    One that is closed has its number taken, so that no file gets it: reading there is the end, what is
    written to stdout fails, and what is written to stderr is lost, because nobody could be told.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _take(number, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            stream = os.fdopen(number, "r" if name == "stdin" else "w", encoding="utf-8", closefd=False)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
    _have("stdout", _Stdout)
    _have("stderr", _Stderr)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")


def _have(name: str, kind: type[TextIOWrapper]) -> None:
    """Write a stream by one of these kinds, unless somebody has put something else in its place."""
    stream = getattr(sys, name)
    if stream is getattr(sys, f"__{name}__") and type(stream) is TextIOWrapper:
        stream.flush()
        encoding, lines, at_once = stream.encoding, stream.line_buffering, stream.write_through
        stream = kind(stream.detach(), encoding, line_buffering=lines, write_through=at_once)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def _take(number: int, how: int) -> None:
    opened = os.open(os.devnull, how)
    if opened != number:
        os.dup2(opened, number)
        os.close(opened)


def stdout_fault() -> OSError | None:
    """Why stdout could not be written, if it could not."""
    return getattr(sys.stdout, "fault", None)


def give_up_stdout() -> None:
    """Throw away what stdout still holds: it has nowhere to go, and Python must not try again at its end."""
    _take(sys.stdout.fileno(), os.O_WRONLY)


@contextmanager
def wire() -> Generator[tuple[int, int]]:
    """Have stdin and stdout for a protocol alone: the descriptors to read from, and to write to.

    Within the block whoever reads stdin finds its end, and what anybody prints, children and libraries too,
    goes to stderr.
    """
    sys.stdout.flush()
    reading, writing = os.dup(0), os.dup(1)
    try:
        _take(0, os.O_RDONLY)
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield reading, writing
    finally:
        if sys.__stdout__ is not None:
            sys.__stdout__.flush()  # what was printed by who had it before goes to stderr, too
        os.dup2(reading, 0)
        os.dup2(writing, 1)
        os.close(writing)  # the other one may have a thread that still reads

"""What is shown, and where: the answer on stdout, what is about it on stderr, colour only on a terminal."""

from __future__ import annotations

import re
import sys
from functools import cache
from typing import TYPE_CHECKING, Any

import msgspec

from flyball.core.harmless import harmless

if TYPE_CHECKING:
    from rich.console import Console

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def plain(text: str) -> str:
    """Text that does nothing to a terminal but to be read: no escape sequences, no control characters.

    What else is not to be seen, or turns what is read around, has a mark: see `harmless`.
    """
    return harmless(text if text.isprintable() else _CONTROLS.sub("", _ESCAPES.sub("", text)))


def one_line(text: str, limit: int = 0) -> str:
    """Text on one line, cut where it is longer than the limit."""
    line = " ".join(plain(text).split())
    return f"{line[: limit - 1]}…" if limit and len(line) > limit else line


def write_json(document: Any) -> None:
    """Print a document as JSON."""
    encoded = msgspec.json.format(msgspec.json.encode(document, enc_hook=str), indent=2)
    sys.stdout.write(encoded.decode("utf-8", "replace") + "\n")


@cache
def _console(stderr: bool, stream: Any) -> Console:
    from rich.console import Console

    class Screen(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to whoever called: rich itself would end the process."""
            raise  # noqa: PLE0704 - rich calls this while the error is being handled

    plainly: dict[str, Any] = {"highlight": False, "markup": False, "emoji": False, "file": stream}
    console = Screen(stderr=stderr, **plainly)
    # What is no terminal has no width: lines stay whole, for whoever reads them next.
    return console if console.is_terminal else Screen(stderr=stderr, width=160, no_color=True, **plainly)


def out() -> Console:
    """The console of stdout."""
    return _console(False, sys.stdout)  # noqa: FBT003


def err() -> Console:
    """The console of stderr."""
    return _console(True, sys.stderr)  # noqa: FBT003

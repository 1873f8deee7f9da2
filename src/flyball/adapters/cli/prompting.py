"""The prompt, from where a shell user expects it to come: the words, stdin, or both."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from flyball.core.errors import UserError

STDIN = "\x00stdin"
"""Stands for the word `-`, which is otherwise taken for an option. No argument of a process holds a NUL."""


def prompt_of(words: Sequence[str]) -> str:
    """The prompt that was typed, with what stdin holds.

    Words are joined by spaces. `-` is where stdin goes; without it, what is piped in comes after the words.

    Raises:
        UserError: there is no prompt, or stdin is no text.
    """
    if STDIN in words:
        piped = _stdin()
        said = " ".join([word for word in words if word != STDIN])
    else:
        piped = "" if sys.stdin is None or sys.stdin.isatty() else _stdin()  # pyright: ignore[reportUnnecessaryComparison] - it may be closed
        said = " ".join(words)
    prompt = "\n\n".join([text for text in (said.strip(), piped.strip("\r\n")) if text.strip()])
    if not prompt:
        raise UserError('there is no prompt: flyball ask "…", or text on stdin')
    return prompt


def _stdin() -> str:
    stream = getattr(sys.stdin, "buffer", None)
    if stream is None:
        return sys.stdin.read()
    data: bytes = stream.read()
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UserError(
            f"stdin is no text: byte {error.start} is {data[error.start]:#04x}, which is no UTF-8"
        ) from None

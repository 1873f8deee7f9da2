"""Patterns of file names, such as `**/*.md`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator


def matching(pattern: str) -> re.Pattern[str]:
    """What matches the paths that a pattern means, with `/` between their parts.

    `*` and `?` stand for anything within a part, `[ab]` for one of several characters, `**` for any parts. A
    pattern without a `/` means files of this name in any folder.
    """
    whole = pattern if "/" in pattern else f"**/{pattern}"
    return re.compile("".join(_translated(whole.removeprefix("./"))) + r"\Z", re.DOTALL)


_PIECE = re.compile(
    r"(?P<folders>\*\*/)|(?P<rest>\*\*)|(?P<any>\*)|(?P<one>\?)|\[(?P<no>!?)(?P<of>\]?[^\]/]*)\]|.", re.DOTALL
)


def _translated(pattern: str) -> Iterator[str]:
    for piece in _PIECE.finditer(pattern):
        if piece["folders"]:
            yield r"(?:[^/]+/)*"
        elif piece["rest"]:
            yield r".*"
        elif piece["any"]:
            yield r"[^/]*"
        elif piece["one"]:
            yield r"[^/]"
        elif piece["of"] is not None:
            inner = (
                piece["of"].replace("\\", r"\\").replace("]", r"\]").replace("[", r"\[").replace("^", r"\^")
            )
            yield rf"(?!/)[{'^' if piece['no'] else ''}{inner}]" if inner else re.escape(piece[0])
        else:
            yield re.escape(piece[0])

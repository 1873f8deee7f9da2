"""A short text that a regular expression matches: for schemas with a `pattern`.

It walks the tree that Python's own `re` parses, takes the least of every choice, and believes nothing: what
does not match in the end is not given.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any
from warnings import catch_warnings, simplefilter

_ALPHABET = "a0A-_. @/" + "".join(map(chr, range(33, 127)))
_CATEGORIES: dict[str, Callable[[str], bool]] = {
    "CATEGORY_DIGIT": str.isdecimal,
    "CATEGORY_NOT_DIGIT": lambda char: not char.isdecimal(),
    "CATEGORY_SPACE": str.isspace,
    "CATEGORY_NOT_SPACE": lambda char: not char.isspace(),
    "CATEGORY_WORD": lambda char: char.isalnum() or char == "_",
    "CATEGORY_NOT_WORD": lambda char: not (char.isalnum() or char == "_"),
}
_MOST_TRIES = 64
_LONGEST = 10_000


def shortest_match(pattern: str, min_length: int = 0, max_length: int | None = None) -> str | None:
    """A text within these lengths that the pattern matches somewhere, as short as the search finds.

    None where it finds none: the pattern is not one that Python reads, or asks for more than it tries
    (assertions that look around are not followed, only checked).
    """
    try:
        with catch_warnings():
            # What Python may read differently one day is no concern of the schema's author.
            simplefilter("ignore")
            compiled = re.compile(pattern)
            tree: Sequence[Any] = import_module("re._parser").parse(pattern)
    except (re.error, ImportError, RecursionError, OverflowError):
        return None
    for more in range(min(min_length, _MOST_TRIES) + 3):
        text = _Walk(more).text(tree)
        if text is None:
            return None
        # What is not anchored may stand in a longer text.
        for candidate in (text, text.ljust(min_length, "a"), text.rjust(min_length, "a")):
            if len(candidate) < min_length or (max_length is not None and len(candidate) > max_length):
                continue
            if compiled.search(candidate):
                return candidate
    return None


class _Walk:
    """One walk over a parsed pattern, with every repetition taken `more` times above its least."""

    def __init__(self, more: int) -> None:
        self._more = more
        self._groups: dict[int, str] = {}

    def text(self, tree: Iterable[Any]) -> str | None:
        pieces: list[str] = []
        for node in tree:
            piece = self._piece(str(node[0]), node[1])
            if piece is None:
                return None
            pieces.append(piece)
        return "".join(pieces)

    def _piece(self, kind: str, value: Any) -> str | None:
        match kind:
            case "LITERAL":
                return chr(value)
            case "NOT_LITERAL":
                return next(char for char in _ALPHABET if char != chr(value))
            case "ANY":
                return "a"
            case "IN":
                return _member(value)
            case "AT" | "ASSERT" | "ASSERT_NOT":
                return ""
            case "BRANCH":
                return self._branch(value[1])
            case "SUBPATTERN":
                return self._group(value[0], value[-1])
            case "ATOMIC_GROUP":
                return self.text(value)
            case "GROUPREF":
                return self._groups.get(value, "")
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                least, most, body = value
                once = self.text(body)
                times = min(int(most), least + self._more)
                return None if once is None or len(once) * times > _LONGEST else once * times
            case _:
                return None

    def _branch(self, branches: Iterable[Any]) -> str | None:
        texts = [text for branch in branches if (text := self.text(branch)) is not None]
        return min(texts, key=len, default=None)

    def _group(self, number: int | None, body: Iterable[Any]) -> str | None:
        text = self.text(body)
        if number is not None and text is not None:
            self._groups[number] = text
        return text


def _member(items: Sequence[Any]) -> str | None:
    """The first plain character of a set such as `[^a-f0-9]`; else the first that the set names itself."""
    negated = str(items[0][0]) == "NEGATE"
    members = items[1:] if negated else items
    named = [
        chr(value[0] if str(kind) == "RANGE" else value) for kind, value in members if str(kind) != "CATEGORY"
    ]
    candidates = _ALPHABET if negated else _ALPHABET + "".join(named) + " \n"
    return next((char for char in candidates if _in(char, members) is not negated), None)


def _in(char: str, members: Iterable[Any]) -> bool:
    for kind, value in members:
        match str(kind):
            case "LITERAL" if char == chr(value):
                return True
            case "RANGE" if value[0] <= ord(char) <= value[1]:
                return True
            case "CATEGORY" if _CATEGORIES[str(value)](char):
                return True
            case _:
                pass
    return False

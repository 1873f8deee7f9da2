"""A text in plain letters, as filters read it, and where in the text these stand.

What only looks like another letter becomes that one (full-width and styled letters, Cyrillic and Greek ones
of the same look), accents and strokes are left out, digits, hyphens and spaces of any kind become the plain
ones, and what cannot be seen is gone. A long dash stays one: it may stand before a number, and in it. Each
character is folded by itself, so that its place is known.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate
from unicodedata import category, decimal, normalize

from flyball.core.marks import with_few_marks
from flyball.validate.filters.alike import ALIKE

_WORD = re.compile(r"[^\W_]+")
_ODD = re.compile("[^\t\n -~]")
"""What is not plain already."""
_MOST_KNOWN = 20_000
"""How many characters' foldings are remembered: a text may have any of a million."""

_UNSEEN = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""What is not to be shown where it is not known: Unicode's Default_Ignorable_Code_Point, of any category."""
LONG_DASH = "\u2014"
_LONG_DASHES = "\u2014\u2015\u2e3a\u2e3b"
_LINES = "\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"


class _Folding(dict[int, str]):
    """What each character becomes, by its code; worked out when it is first seen."""

    def __init__(self, invisible: str = "", *, accents: bool = False) -> None:
        super().__init__()
        self._invisible = invisible
        self._accents = accents

    def __missing__(self, code: int) -> str:
        found = self._folded(chr(code))
        if len(self) < _MOST_KNOWN:
            self[code] = found
        return found

    def _folded(self, char: str) -> str:
        if char in "\t\n":
            return char
        if char in _LINES:
            return "\n"
        if _UNSEEN.match(char) or category(char) in ("Cf", "Cc"):
            return self._invisible
        if self._accents and normalize("NFKC", char) == char and category(char) != "Mn":
            return ALIKE.get(char, char)
        return "".join([_plain_one(one, self._invisible) for one in normalize("NFKD", char)])


def _plain_one(char: str, invisible: str) -> str:
    kind = category(char)
    if kind in ("Mn", "Me"):
        return ""
    if kind == "Zs" or char == "\u2800":
        return " "
    if kind == "Nd":
        return str(decimal(char))
    if kind == "Pd":
        return LONG_DASH if char in _LONG_DASHES else "-"
    return invisible if kind == "Cf" else ALIKE.get(char, char)


_FOLDED = _Folding()
_APART = _Folding(" ")
_SPELT = _Folding(accents=True)


def is_plain(text: str) -> bool:
    """Whether a text is in plain letters as it is: then `plain` gives it back."""
    return text.isascii() and _ODD.search(text) is None


def plain(text: str) -> str:
    """The text in plain letters: those that only look like others become these; invisible ones are gone."""
    return text if is_plain(text) else text.translate(_FOLDED)


def plain_apart(text: str) -> str:
    """The same, but with a space where something cannot be seen: it may stand between words, too."""
    return text if is_plain(text) else text.translate(_APART)


class Places:
    """Where the characters of `plain(text)` stand in the text."""

    def __init__(self, text: str) -> None:
        self._ends = list(accumulate([len(_FOLDED[ord(char)]) for char in text]))

    def span(self, start: int, stop: int) -> tuple[int, int]:
        """The part of the text that a part of the plain one, which is not empty, was made of."""
        return bisect_right(self._ends, start), bisect_right(self._ends, stop - 1) + 1


def words(text: str) -> tuple[str, ...]:
    """The words of a text, in small letters, without what stands between them. Accents stay."""
    spelt = text if is_plain(text) else normalize("NFC", with_few_marks(text)).translate(_SPELT)
    return tuple([word.casefold() for word in _WORD.findall(spelt)])

"""The words of a text: what they are, which of them say nothing, and how many two texts share. Pure.

Words are compared folded: without case and without accents. What words are is decided by spaces and
punctuation; no language's grammar is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from unicodedata import combining, normalize

_WORD = re.compile(r"\w+")

COMMON: frozenset[str] = frozenset(
    _WORD.findall("""
        a about an and any are as at be been but by can could did do does for from had has have he her his how
        i if in into is it its me my no not of on or our she should so than that the their them then there
        these they this to us was we were what when where which who whom why will with would you your
    """)
)
"""English words that say nothing about what is asked."""


def words_in(text: str) -> Iterator[str]:
    """The words of a text, as they are written and in their order."""
    return (found[0] for found in _WORD.finditer(text))


def folded(word: str) -> str:
    """A word without case and accents. Folding twice changes nothing more."""
    if word.isascii():
        return word.lower()
    parted = normalize("NFKD", word.casefold())
    return normalize("NFKC", "".join([one for one in parted if not combining(one)]).casefold())


def terms(text: str, common: Collection[str] = COMMON) -> frozenset[str]:
    """The folded words that a text is about: without the common ones; empty if there is none."""
    return frozenset([word for word in map(folded, words_in(text)) if word and word not in common])


def overlap(wanted: Collection[str], text: str) -> float:
    """Which part of the wanted terms stand in a text: from 0.0, none, to 1.0, all. Without any, 0.0."""
    if not wanted:
        return 0.0
    there = {folded(word) for word in words_in(text)}
    return sum(1 for term in wanted if term in there) / len(wanted)

"""The words of a question, as a search for SQLite's FTS5. Pure.

Anybody may have written the question. Only its words get through, each as a text in quotes: what would be an
operator, a column or a bracket to FTS5 is then none.
"""

from __future__ import annotations

from collections.abc import Collection

from flyball.core.words import COMMON, words_in

MOST = 64
"""How many words are searched for; of more, the longest, which are the rarest."""


def search_for(query: str, common: Collection[str] = COMMON) -> str:
    """A search for any of a question's words, without the common ones; empty if there is none."""
    found = {word.lower(): word for word in words_in(query)}  # FTS5 folds them in its own way
    words = [word for lower, word in found.items() if lower not in common]
    if len(words) > MOST:
        words = sorted(words, key=len, reverse=True)[:MOST]
    return " OR ".join([f'"{word}"' for word in words])

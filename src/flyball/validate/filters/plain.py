"""A text in plain letters, as filters read it."""

from __future__ import annotations

import re
from unicodedata import normalize

_WORD = re.compile(r"[^\W_]+")
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]")


def plain(text: str) -> str:
    """The text in plain letters: those that only look like others become these; invisible ones are gone."""
    return text if text.isascii() else _INVISIBLE.sub("", normalize("NFKC", text))


def words(text: str) -> tuple[str, ...]:
    """The words of a text, in small letters, without what stands between them."""
    return tuple([word.casefold() for word in _WORD.findall(plain(text))])

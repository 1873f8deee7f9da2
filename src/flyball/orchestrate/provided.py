"""What a context provider gave: the texts of its messages, and what they were made of, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from flyball.core.encodable import clean_text
from flyball.core.messages import Message, Text

MOST = 10
"""How many sources are named; of more it is said how many."""
LONGEST = 200
"""How many characters of a source's name are told."""


def texts_of(messages: Any) -> tuple[str, ...]:
    """The texts of messages that a provider gave, without those that have no word in them.

    Raises:
        TypeError: they are no messages, or carry something else than text.
    """
    if not isinstance(messages, list | tuple):
        raise TypeError(f"build() gave a {type(messages).__name__}: it must give a list of messages")
    texts: list[str] = []
    for message in cast("list[object]", messages):
        if not isinstance(message, Message):
            raise TypeError(f"build() gave a {type(message).__name__} among the messages")
        for part in message.parts:
            if type(part) is not Text:
                raise TypeError(f"build() gave a message with a {type(part).__name__}: it must give text")
        text = clean_text(message.text)
        texts += [text] if text.strip() else []
    return tuple(texts)


def sources_of(messages: list[Message]) -> str:
    """What messages were made of, with the scores, on one line; empty where they do not say."""
    found: list[str] = []
    for message in messages:
        sources: Any = (message.extra or {}).get("sources")
        if isinstance(sources, list | tuple):
            found += [_named(source) for source in cast("list[object]", sources)]
    more = f" and {len(found) - MOST} more" if len(found) > MOST else ""
    return ", ".join(found[:MOST]) + more


def relevance_of(messages: list[Message]) -> float | None:
    """How relevant what a provider gave is, from 0 to 1, as far as it says so: the best of its messages.

    Nothing is relevant where nothing was found.
    """
    said: list[Any] = [(message.extra or {}).get("relevance") for message in messages]
    numbers = [float(one) for one in said if isinstance(one, int | float) and 0 <= one <= 1]
    return max(numbers, default=None if messages else 0.0)


def _named(given: object) -> str:
    if not isinstance(given, Mapping):
        return _short(str(given))
    source = cast("Mapping[str, Any]", given)
    name, score = _short(str(source.get("source", "?"))), source.get("score")
    return f"{name} ({score:.3g})" if isinstance(score, int | float) else name


def _short(name: str) -> str:
    """A name on one line, and not too long for it."""
    line = " ".join(clean_text(name).split())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]}…"

"""A list of messages in other words than it was said: what is sent, or what reached the model.

Whoever changes messages begins from the original each time, and comes to much the same. So what is recorded
is only in what they differ from the version before, with what is new since: that is the base of their edits.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from flyball.core.messages import Message


class Version(Struct, frozen=True):
    """The messages as they were last, and how many of the original went into them."""

    messages: list[Message]
    covers: int


def version_of(original: Sequence[Message], messages: Sequence[Message]) -> Version | None:
    """A version of the original; None if it is the original itself."""
    return None if messages == original else Version(list(messages), len(original))


def brought_up(version: Version | None, original: Sequence[Message]) -> Sequence[Message]:
    """The version with what is new in the original since."""
    if version is None:
        return original
    return [*version.messages, *original[version.covers :]]

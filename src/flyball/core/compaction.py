"""Compaction: that fewer words are to be sent than were said, and by how much they then were."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class CompactionStrategy(StrEnum):
    """What made a context smaller: gollem's three words for it."""

    AUTO_SUMMARY = "auto_summary"
    """A model has summed up what was said."""
    HISTORY_PROCESSOR = "history_processor"
    """A history processor has left something out."""
    EMERGENCY_TRUNCATION = "emergency_truncation"
    """It was too much for the model, and less was sent."""


class ContextCompaction(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """What one compaction came to. The tokens are estimates, or the provider's count where that is larger.

    `strategy` is one of `CompactionStrategy`, and `by` the name of the feature that did it.
    """

    strategy: str
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    by: str = ""


class CompactionPlan(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True, gc=False):
    """That a model is to sum up what was said: all of the history between its head and message `stop`.

    `messages` and `tokens` are what would be sent without that.
    """

    stop: int
    messages: int
    tokens: int

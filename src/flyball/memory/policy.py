"""MemoryPolicy: how much a conversation remembers, what goes first, and what outlives it."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.memory.windows import positive


class EvictionStrategy(StrEnum):
    """What a full buffer leaves out."""

    FIFO = "fifo"
    """The oldest exchange."""
    LRU = "lru"
    """The exchange that was recalled, or said, the longest ago."""
    NONE = "none"
    """Nothing: a full buffer refuses what is said next."""


class MemoryPolicy(Struct, frozen=True):
    """How a conversation's memories are kept.

    Args:
        max_messages: how many messages are kept at the most, the system message aside; None: any number.
        eviction_strategy: what goes when it is full: `fifo`, `lru` or `none`.
        persist_conversation: whether a snapshot has the messages.
        persist_session: whether a snapshot has the session state.
        ephemeral_context: whether what was looked up for a turn is forgotten with it.

    Raises:
        UserError: something that cannot be.
    """

    max_messages: int | None = None
    eviction_strategy: EvictionStrategy | str = EvictionStrategy.FIFO
    persist_conversation: bool = True
    persist_session: bool = True
    ephemeral_context: bool = True

    def __post_init__(self) -> None:
        if self.max_messages is not None:
            positive(self.max_messages, "MemoryPolicy", "messages")
        if self.eviction_strategy not in tuple(EvictionStrategy):
            known = ", ".join(EvictionStrategy)
            raise UserError(f"eviction_strategy is one of {known}, not {self.eviction_strategy!r}")

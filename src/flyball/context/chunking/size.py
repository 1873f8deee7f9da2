"""ChunkSize: how large chunks are."""

from __future__ import annotations

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.core.tokens import TokenEstimator, by_bytes


class ChunkSize(Struct, frozen=True):
    """How many tokens a chunk has at most, and how many of the end of the one before it begins with again.

    `overlap` repeats whole words (lines, of code), and only what stands in the same section or definition.
    `estimator` says how many tokens a text has; a tokenizer's function will do.
    """

    max_tokens: int = 256
    overlap: int = 32
    estimator: TokenEstimator = by_bytes

    def __post_init__(self) -> None:
        if self.max_tokens < 1:
            raise UserError(f"max_tokens={self.max_tokens} must be 1 at least")
        if not 0 <= self.overlap < self.max_tokens:
            raise UserError(
                f"overlap={self.overlap} must be 0 at least, and less than max_tokens={self.max_tokens}"
            )

    def fits(self, text: str) -> bool:
        """Whether a text is not too large for a chunk."""
        return self.estimator(text) <= self.max_tokens


DEFAULT = ChunkSize()

"""The compactors that come with flyball: by tokens, and by messages."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.messages import Message
from flyball.core.settings import ModelSettings
from flyball.core.tokens import TokenEstimator, by_bytes
from flyball.inference.engine import Engine
from flyball.memory.compactor import INSTRUCTIONS, Compactor
from flyball.memory.windows import positive


class AutoContext(Compactor):
    """Sums up the older messages once what is sent has more than `max_tokens` tokens.

    The first messages (the system message and the user's first) and the last `keep_last_n` stay as they are;
    one more does where a tool call would be parted from its result.
    """

    name = "auto_context"

    def __init__(
        self,
        max_tokens: int,
        keep_last_n: int = 4,
        summary_model: str | Engine | None = None,
        *,
        estimator: TokenEstimator = by_bytes,
        instructions: str = INSTRUCTIONS,
        settings: ModelSettings | None = None,
    ) -> None:
        super().__init__(summary_model, estimator=estimator, instructions=instructions, settings=settings)
        self.summary_model = summary_model
        self.max_tokens = positive(max_tokens, "AutoContext", "tokens")
        self.keep_last_n = positive(keep_last_n, "AutoContext", "messages to keep")

    def keeps(self, messages: Sequence[Message], tokens: int) -> int | None:
        """See `Compactor.keeps`."""
        return self.keep_last_n if tokens > self.max_tokens else None


class SummaryMemory(Compactor):
    """Sums up the older messages once more than `max_messages` would be sent; the newer half of them stays.

    So a summary is made once in a while, and not in every turn.
    """

    name = "summary_memory"

    def __init__(
        self,
        model: str | Engine | None = None,
        max_messages: int = 20,
        *,
        estimator: TokenEstimator = by_bytes,
        instructions: str = INSTRUCTIONS,
        settings: ModelSettings | None = None,
    ) -> None:
        super().__init__(model, estimator=estimator, instructions=instructions, settings=settings)
        self.max_messages = positive(max_messages, "SummaryMemory", "messages")

    def keeps(self, messages: Sequence[Message], tokens: int) -> int | None:
        """See `Compactor.keeps`."""
        return max(self.max_messages // 2, 1) if len(messages) > self.max_messages else None

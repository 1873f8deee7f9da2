"""Compactor: when a model is asked to sum up what was said, and how much of it stays as it was.

The summary is made once, and lasts: from then on it is sent in the place of what it sums up. The history
itself stays whole.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.core.messages import Message
from flyball.core.settings import ModelSettings
from flyball.core.tokens import TokenEstimator, by_bytes
from flyball.inference.engine import Engine

INSTRUCTIONS = (
    "You sum up a conversation between a user and an assistant, so that the assistant can go on from your "
    "summary alone. Keep what was asked for and decided, names, numbers, identifiers and other facts that "
    "may be needed, what tools gave, what was tried and failed, and what is still to be done. Leave out "
    "greetings and repetitions. Answer with the summary and nothing else."
)


class Compactor(Feature, ABC):
    """Has a model sum up the older part of a conversation when `keeps` says so. An agent has one at most.

    Args:
        model: the model that sums up; without it, the agent's own.
        estimator: how tokens are counted, where no provider has.
        instructions: what that model is told; it is then given the conversation as text.
        settings: its temperature, tokens and the like.

    Raises:
        UserError: the instructions are no text, or empty; the estimator is no function.
    """

    name = "compactor"

    def __init__(
        self,
        model: str | Engine | None = None,
        *,
        estimator: TokenEstimator = by_bytes,
        instructions: str = INSTRUCTIONS,
        settings: ModelSettings | None = None,
    ) -> None:
        kind = type(self).__name__
        if not isinstance(instructions, str) or not instructions:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"{kind}'s instructions are text that is not empty, not {instructions!r}")
        if not callable(estimator):
            raise UserError(f"{kind}'s estimator is a function from a text to its tokens, not {estimator!r}")
        self.model = model
        self.estimator = estimator
        self.instructions = instructions
        self.settings = settings or ModelSettings()

    @abstractmethod
    def keeps(self, messages: Sequence[Message], tokens: int) -> int | None:
        """How many of the last messages stay as they are while the rest is summed up; None to leave all.

        `messages` are what would be sent, before processors and interceptors, and `tokens` how many they
        have: the estimate, or what the provider has counted since the last compaction, where that is more.
        """

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

"""Windows: the last of a history, by how many pairs of messages it has, or by how many tokens."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.cutting import cut_at, head_of, leads_on, tail_of
from flyball.core.errors import UserError
from flyball.core.messages import Message, Role
from flyball.core.tokens import TokenEstimator, by_bytes, estimate_tokens
from flyball.memory.processor import HistoryProcessor


class SlidingWindow(HistoryProcessor):
    """Sends the last pairs of what was said to the model and what it answered, and what is said now.

    The leading system message stays. Where the window would begin with an answer, it begins with what the
    user had said last before that; where it would begin with the results of tools, with the calls.
    """

    def __init__(self, pairs: int) -> None:
        self.pairs = positive(pairs, "SlidingWindow", "pairs of messages")
        super().__init__(self._window, "sliding_window")

    def _window(self, messages: Sequence[Message]) -> list[Message]:
        first = len(messages) - 1 - 2 * self.pairs
        return tail_of(messages, cut_at(messages, max(first, 0)))


class TokenBudget(HistoryProcessor):
    """Leaves out the oldest messages until the rest has no more than so many tokens.

    The leading system message stays, and so does what is said now, with the calls that it answers and what
    the user has asked: they are sent even where they alone have more.
    """

    def __init__(self, max_tokens: int, estimator: TokenEstimator = by_bytes) -> None:
        self.max_tokens = positive(max_tokens, "TokenBudget", "tokens")
        self.estimator = estimator
        super().__init__(self._within, "token_budget")

    def _within(self, messages: Sequence[Message]) -> list[Message]:
        return within(messages, self.max_tokens, self.estimator)


def within(messages: Sequence[Message], max_tokens: int, estimator: TokenEstimator) -> list[Message]:
    """The most of a valid history's end that has no more tokens than this; at the least its last exchange."""
    counted = [estimate_tokens((message,), estimator) for message in messages]
    lead, last = head_of(messages) - 1, cut_at(messages, len(messages) - 1)
    kept, rest, asked = sum(counted[:lead]), sum(counted[lead:]), 0
    for index in range(lead, last):
        role = messages[index].role
        said = role is Role.USER
        before = asked + counted[index - 1] if said and leads_on(messages[index]) else 0
        needed = kept + rest + (before if said else asked)
        if role is not Role.TOOL and needed <= max_tokens:
            return tail_of(messages, index)
        rest -= counted[index]
        if said:
            asked = before + counted[index]
    return tail_of(messages, last)


def positive(given: int, what: str, unit: str) -> int:
    """A number of something, at least 1.

    Raises:
        UserError: it is none.
    """
    if type(given) is not int or given < 1:
        raise UserError(f"{what} takes a number of {unit}, at least 1, not {given!r}")
    return given

"""Recall: what was said in a run before it was summed up, found again by its words.

    Agent(..., features=[AutoContext(50_000), Knowledge(recall, when="compaction", max_tokens=1500)])

A summary leaves things out, and the journal does not: what the user says next may be about something that is
only there. Nothing is kept for it: the messages are the run's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from flyball.core.context import RunContext
from flyball.core.messages import Message, Role
from flyball.core.tokens import by_bytes
from flyball.core.truncation import truncate_text
from flyball.core.words import COMMON, folded, terms, words_in

_TOKENS = 1500
_LONGEST = 400
"""Tokens of one message that are recalled."""


class Recall:
    """Finds what was said by the words that a question shares with it. See `KnowledgeBase`.

    Of equal shares, what was said last comes first. What was found is told in the order in which it was said.
    Takes time in proportion to what was said.
    """

    def __init__(self, messages: Sequence[Message], max_tokens: int = _TOKENS) -> None:
        self._said = [(one.role, _text(one)) for one in messages if one.role is not Role.SYSTEM]
        self._most = max_tokens

    def retrieve(self, query: str) -> str:
        """What was said that has to do with a question; empty if nothing has."""
        wanted = terms(query, COMMON)
        shared = [len(wanted & frozenset(map(folded, words_in(text)))) for _, text in self._said]
        sharing = [index for index, count in enumerate(shared) if count]
        found, used = list[int](), 0
        lines = [f"{role.value}: {truncate_text(text, _LONGEST)}" for role, text in self._said]
        for index in sorted(sharing, key=lambda one: (-shared[one], -one)):
            used += by_bytes(lines[index])
            if used > self._most:
                break
            found.append(index)
        return "\n".join([lines[index] for index in sorted(found)])

    def store(self, content: str) -> None:
        """Nothing is to be kept: the journal has it."""


def recall(context: RunContext[Any]) -> Recall:
    """What a run may recall: for `Knowledge(recall, when="compaction")`."""
    return Recall(context.messages)


def _text(message: Message) -> str:
    results = [f"{result.name} gave {result.text}" for result in message.tool_results]
    calls = [f"{call.name} {call.args_json}" for call in message.tool_calls]
    return "\n".join([text for text in (message.text, *calls, *results) if text.strip()])

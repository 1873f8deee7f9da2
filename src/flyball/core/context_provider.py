"""ContextProvider: whoever gives the messages that help with a question."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from flyball.core.messages import Message


@runtime_checkable
class ContextProvider(Protocol):
    """What a loop wants of retrieval, and all of it: a question in, messages out.

    It stands here, below those who offer it and those who use it, so that neither knows the other: how things
    are found may change without a loop noticing, and in a test anything with a `build` will do.
    """

    async def build(self, query: str) -> list[Message]:
        """The messages that help with a question, of text only; none if nothing does.

        What was found may stand in a message's `extra`, under `sources`: see `flyball.context.builder`.
        """
        ...

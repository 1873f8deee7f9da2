"""KnowledgeBase: whatever can be asked for text that helps with a question."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Protocol, runtime_checkable


@runtime_checkable
class KnowledgeBase(Protocol):
    """A place where knowledge is: documents, a graph, a memory service, whatever there is.

    Both methods may be async or not; one that is not is called in the loop's own task, so it should be quick.
    """

    def retrieve(self, query: str) -> str | Awaitable[str]:
        """Text that helps with a question; an empty one if nothing does."""
        ...

    def store(self, content: str) -> Awaitable[None] | None:
        """Keep text, so that it is found later. It may be told the same twice: after a crash, it is."""
        ...

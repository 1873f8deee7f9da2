"""StaticKnowledgeBase: always the same knowledge, and a record of what was to be kept. For tests."""

from __future__ import annotations

from threading import Lock


class StaticKnowledgeBase:
    """Says the same to every question. What it is told does not change that, and can be read as `stored`."""

    __slots__ = ("_lock", "_stored", "context")

    def __init__(self, context: str = "") -> None:
        self.context = context
        self._lock = Lock()
        self._stored: list[str] = []

    def retrieve(self, query: str) -> str:
        """See `KnowledgeBase.retrieve`."""
        return self.context

    def store(self, content: str) -> None:
        """See `KnowledgeBase.store`."""
        with self._lock:
            self._stored.append(content)

    @property
    def stored(self) -> tuple[str, ...]:
        """What it was told, in that order."""
        with self._lock:
            return tuple(self._stored)

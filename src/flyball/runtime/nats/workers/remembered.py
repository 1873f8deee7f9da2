"""The last names that were noted, as many as there is room for."""

from __future__ import annotations


class Remembered:
    """Names, of which the oldest are forgotten."""

    def __init__(self, most: int = 10_000) -> None:
        self._most = most
        self._names: dict[str, None] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._names

    def add(self, name: str) -> None:
        """Note a name."""
        self._names[name] = None
        if len(self._names) > self._most:
            del self._names[next(iter(self._names))]

"""One at a time, by name: whoever comes for a name waits until those before have gone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


class Turns:
    """Turns for any number of names; a name that nobody comes for costs nothing."""

    def __init__(self) -> None:
        self._lines: dict[str, tuple[asyncio.Lock, list[None]]] = {}

    def __len__(self) -> int:
        return len(self._lines)

    @asynccontextmanager
    async def turn(self, name: str) -> AsyncGenerator[None]:
        """Be the only one for a name inside the block."""
        lock, those = self._lines.setdefault(name, (asyncio.Lock(), []))
        # Counted, not asked of the lock: between two holders it is free for a moment, and still waited for.
        those.append(None)
        try:
            async with lock:
                yield
        finally:
            those.pop()
            if not those:
                del self._lines[name]

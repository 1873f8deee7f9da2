"""Working beside others, or alone: what may be the end of its process must not take others with it.

A message whose workers died need not be guilty: it may have been any of those that they worked on then. So
one that this has happened to a few times is worked on alone. If the worker dies then, it was that one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

PATIENCE = 10.0
"""Seconds that one who wants to be alone waits for the others: their work may be waiting for his."""


class Company:
    """All who work in one process."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._inside = 0
        self._empty = asyncio.Event()
        self._turn = asyncio.Lock()
        self._open = asyncio.Event()
        self._open.set()

    @asynccontextmanager
    async def beside(self) -> AsyncGenerator[None]:
        """Work inside the block, beside others; when somebody is alone, after that."""
        while not self._open.is_set():
            await self._open.wait()
        self._inside += 1
        try:
            yield
        finally:
            self._inside -= 1
            if not self._inside:
                self._empty.set()

    @asynccontextmanager
    async def alone(self) -> AsyncGenerator[None]:
        """Work inside the block alone, if the others come to an end in a while; no more of them begin."""
        async with self._turn:
            self._open.clear()
            try:
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._patience):
                        while self._inside:
                            self._empty.clear()
                            await self._empty.wait()
                yield
            finally:
                self._open.set()

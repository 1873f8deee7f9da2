"""Pools of connections, each of which ends with its event loop at the latest, whoever forgets about it.

An event loop that ends closes the async generators that are open in it (`asyncio.run` does, and so do the
runners of tests). So one generator an event loop, kept here, closes the pools that were opened in it. A pool
that is dropped before that is closed in its own loop, and waited for by the same generator.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from weakref import WeakKeyDictionary

import aiohttp

_keepers: WeakKeyDictionary[asyncio.AbstractEventLoop, Keeper] = WeakKeyDictionary()


async def keeper() -> Keeper:
    """The one that keeps the pools of the event loop that runs."""
    loop = asyncio.get_running_loop()
    found = _keepers.get(loop)
    if found is None:
        found = _keepers[loop] = Keeper()
        await found.begin()
    return found


class Keeper:
    """Knows the pools of one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._open: set[aiohttp.ClientSession] = set()
        self._closing: set[asyncio.Task[None]] = set()
        self._life = self._until_the_end()

    async def begin(self) -> None:
        """Let the event loop know that there is something to close."""
        await anext(self._life)

    def opened(self, make: Callable[[], aiohttp.ClientSession]) -> aiohttp.ClientSession:
        """A pool that is closed when the loop ends, unless that was done before."""
        session = make()
        self._open.add(session)
        return session

    async def close(self, session: aiohttp.ClientSession) -> None:
        """Close a pool."""
        await session.close()
        self._open.discard(session)

    def drop(self, session: aiohttp.ClientSession) -> None:
        """Close a pool that nobody has any more. From any thread, and at any time."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._close_soon, session)

    def _close_soon(self, session: aiohttp.ClientSession) -> None:
        closing = asyncio.ensure_future(self.close(session))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)

    async def _until_the_end(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            _keepers.pop(self._loop, None)
            # What is dropped at the very end has its turn before the loop is gone.
            await asyncio.sleep(0)
            open_ones = [session.close() for session in self._open]
            await asyncio.gather(*open_ones, *self._closing, return_exceptions=True)

"""The thread that all sessions live in: one event loop of a process, which belongs to no caller.

An agent is made at a module's level and run on whatever loop; a session must outlive each of them, and its
whole life must be in one task. So it lives here, and calls are handed over. The thread is started with the
first connection. At the end of the process whatever is open is closed, for a bounded time.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import sys
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from flyball.core.errors import UserError

T = TypeVar("T")
_AT_THE_END = 8.0
"""Seconds that servers have to end in when the process does; what is left is killed by then."""


class Background:
    """A thread with an event loop of its own."""

    def __init__(self) -> None:
        # Not the policy's: a loop of uvloop's cannot be relied upon outside of the main thread.
        self._loop = asyncio.ProactorEventLoop() if sys.platform == "win32" else asyncio.SelectorEventLoop()
        self._thread = threading.Thread(target=self._work, name="flyball-mcp", daemon=True)
        self._closers: set[Callable[[], Awaitable[None]]] = set()
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine there. Cancelling what is given cancels it.

        Raises:
            UserError: it is waited for from there, which would never end, or the process is at its end.
        """
        wrong = ""
        if threading.current_thread() is self._thread:
            wrong = "a function that a server calls back cannot wait for an MCP server"
        elif self._loop.is_closed():
            wrong = "the process is at its end: no MCP server can be called any more"
        if wrong:
            work.close()
            raise UserError(wrong)
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def at_end(self, close: Callable[[], Awaitable[None]]) -> Callable[[], None]:
        """Have something awaited when the process ends; gives what takes that back."""
        self._closers.add(close)
        return lambda: self._closers.discard(close)

    def end(self) -> None:
        """Close all that is open, and the loop. Nobody waits for what does not end."""
        if self._loop.is_closed():
            return
        closing = asyncio.run_coroutine_threadsafe(self._close_all(), self._loop)
        with suppress(Exception):
            closing.result(_AT_THE_END)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1.0)

    async def _close_all(self) -> None:
        await asyncio.gather(*[close() for close in list(self._closers)], return_exceptions=True)

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            for task in (left := asyncio.all_tasks(self._loop)):
                task.cancel()
            with suppress(Exception):
                self._loop.run_until_complete(
                    asyncio.wait_for(asyncio.gather(*left, return_exceptions=True), 1.0)
                )
                self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()


_lock = threading.Lock()
_there: list[Background] = []


def background() -> Background:
    """The one of this process; it is started when it is first asked for."""
    with _lock:
        if not _there:
            _see_to_the_end()
            _there.append(Background())
        return _there[0]


@cache
def _see_to_the_end() -> None:
    """Once for a process, and for those that are forked off it."""
    atexit.register(_end)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_forget)


def _end() -> None:
    for one in _there:
        one.end()


def _forget() -> None:
    """In a process that was forked off: the thread is not there, and its servers are not its own."""
    global _lock  # noqa: PLW0603 - it may have been held while the process was forked
    _lock = threading.Lock()
    _there.clear()

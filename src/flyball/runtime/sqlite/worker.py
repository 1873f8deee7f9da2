"""The thread in which everything runs that may block: one a journal, started at its first use."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any, TypeVar

T = TypeVar("T")


class Worker:
    """Runs actions one after the other, in a daemon thread of its own.

    It holds no reference to the journal, which can thus be collected while the thread waits for work.
    """

    __slots__ = ("_inbox", "_pid", "_thread")

    def __init__(self, name: str) -> None:
        # A SimpleQueue, because putting must be safe where the garbage collector may interrupt.
        self._inbox: SimpleQueue[Callable[[], object] | None] = SimpleQueue()
        self._pid = os.getpid()
        self._thread = threading.Thread(target=_serve, args=(self._inbox,), name=name, daemon=True)
        self._thread.start()

    @property
    def is_ours(self) -> bool:
        """Whether the thread runs in this process: a forked child has the object but not the thread."""
        return self._pid == os.getpid()

    def post(self, action: Callable[[], object]) -> None:
        """Run an action that does not raise, after those that came before."""
        self._inbox.put(action)

    def call(self, action: Callable[[], T]) -> asyncio.Future[T]:
        """Run an action; the future has what it returns or raises. Cancelling it does not stop the action."""
        event_loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = event_loop.create_future()

        def run() -> None:
            try:
                result = action()
            except BaseException as error:
                tell(event_loop, _fail, future, error)
            else:
                tell(event_loop, _succeed, future, result)

        self._inbox.put(run)
        return future

    def stop(self) -> None:
        """End the thread after what came before."""
        self._inbox.put(None)

    def join(self) -> None:
        """Wait until the thread has ended. Only when it has nothing left to do but that."""
        self._thread.join()

    def join_if_idle_here(self, timeout: float) -> None:
        """Wait until the thread has ended, unless that would hold up an event loop or the thread itself."""
        if threading.current_thread() is not self._thread and not _in_event_loop():
            self._thread.join(timeout)


def tell(event_loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *args: Any) -> None:
    """Call back in an event loop's own thread; one that is closed has nobody left who would listen."""
    try:
        event_loop.call_soon_threadsafe(callback, *args)
    except RuntimeError:
        if not event_loop.is_closed():
            raise


def _in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _serve(inbox: SimpleQueue[Callable[[], object] | None]) -> None:
    while (action := inbox.get()) is not None:
        action()
        del action  # or it would be kept alive until the next one comes


def _succeed(future: asyncio.Future[T], result: T) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)

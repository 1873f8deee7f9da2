"""The threads that a command's work is done in. Nobody waits for one that does not end.

asyncio, and Python at its end, wait for every thread of a pool: a tool that sleeps would hold up Ctrl-C and
the deadline for as long as it sleeps. Here each call has a thread of its own, so that none waits for a place
either, and a process in which one is still busy when all else is done ends by itself.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import NoReturn, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Threads(ThreadPoolExecutor):
    """An executor for an event loop: a thread for each call, none of which is waited for at the end."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function in a thread of its own."""
        answer: Future[T] = Future()
        answer.set_running_or_notify_cancel()

        def work() -> None:
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # whatever it is belongs to whoever waits for the answer
                answer.set_exception(error)
            else:
                answer.set_result(result)

        _Worker(target=work, name="flyball-call", daemon=True).start()
        return answer

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Wait for nobody."""


class _Worker(threading.Thread):
    """Known by its class, among all threads of the process."""


def any_busy() -> bool:
    """Whether a call is still at work in its thread."""
    return any(isinstance(thread, _Worker) for thread in threading.enumerate())


def end_process(code: int) -> NoReturn:
    """End the process as Python does, but for the threads: what is registered for the end is done."""
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage] - there is no other way to have it done
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, AttributeError):  # it may be closed, or never have been there
            stream.flush()
    os._exit(code)

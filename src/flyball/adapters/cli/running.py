"""The event loop of a command, and how signals end it.

The first Ctrl-C or SIGTERM cancels the task that works: a run's journal stays as it stands, and `resume` goes
on with it. The second one ends the process at once, whatever it does.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Coroutine
from types import FrameType, TracebackType
from typing import Any, TypeVar

from flyball.adapters.cli.exits import stopped
from flyball.adapters.cli.threads import Threads
from flyball.core.errors import CancelledSignal, ToolExecutionFailed

T = TypeVar("T")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Session:
    """An event loop for one command, or for the turns of a conversation."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._loop.set_default_executor(Threads())
        self._before: dict[signal.Signals, Any] = {}
        self._task: asyncio.Task[Any] | None = None
        self._came: int | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the loop. A tool that cannot be stopped is left to its thread (see `threads`)."""
        try:
            self._runner.close()
        finally:
            if self._came is None:
                self._leave()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end.

        Raises:
            CancelledSignal: Ctrl-C or SIGTERM came; the detail `signal` has its number. What the work made of
                the cancellation (which run it leaves) is told too.
            ToolExecutionFailed: code of the user's exits the program.
        """
        self._enter()
        try:
            return self._runner.run(self._guarded(work))
        except (asyncio.CancelledError, CancelledSignal) as error:
            if self._came is None and isinstance(error, CancelledSignal):
                raise
            number = signal.Signals(self._came or signal.SIGINT)
            word = "interrupted" if number is signal.SIGINT else f"stopped by {number.name}"
            raise stopped(word, number, error) from None
        except SystemExit as error:
            raise ToolExecutionFailed(
                f"a tool exits the program (SystemExit: {error}), and may not: let it raise an error, which "
                "the model reads. What was recorded stays: flyball resume goes on with it"
            ) from error
        finally:
            self._task = None

    def rest(self) -> None:
        """Give the signals back while nothing runs, and forget the one that came.

        A prompt that is being typed has its own Ctrl-C.
        """
        self._leave()
        self._came = None

    async def _guarded(self, work: Coroutine[Any, Any, T]) -> T:
        self._task = asyncio.current_task()
        if self._came is not None:
            work.close()
            raise asyncio.CancelledError
        return await work

    def _enter(self) -> None:
        if not self._before:
            self._before = {number: signal.signal(number, self._signalled) for number in _SIGNALS}

    def _leave(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _signalled(self, number: int, _: FrameType | None) -> None:
        if self._came is not None:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._came = number
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run the work of one command in an event loop of its own.

    Raises:
        CancelledSignal: Ctrl-C or SIGTERM came.
    """
    with Session() as session:
        return session.run(work)

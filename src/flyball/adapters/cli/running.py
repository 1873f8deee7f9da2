"""The event loop of a command, and how signals end it.

The first Ctrl-C, SIGTERM or SIGHUP cancels the task that works: a run's journal stays as it stands, and
`resume` goes on with it. Where that is not over after a while, because code that never waits holds the loop,
the process is ended all the same. The second signal ends it at once, whatever it does; but a terminal that is
closed may say so twice. Who was told not to hear of that (nohup) does not.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import FrameType, TracebackType
from typing import Any, TypeVar

from flyball.adapters.cli.exits import stopped
from flyball.adapters.cli.failing import report
from flyball.adapters.cli.threads import Threads
from flyball.core.errors import CancelledSignal, FlyballError, ToolExecutionFailed

T = TypeVar("T")
_HANGUP: signal.Signals | None = getattr(signal, "SIGHUP", None)  # not on Windows
_SIGNALS = (signal.SIGINT, signal.SIGTERM, *((_HANGUP,) if _HANGUP is not None else ()))
_PATIENCE = 3.0
"""Seconds that work has to come to its end in when it is cancelled."""
_TRIES = 8
"""How often work is told to end whose event loop is ended again and again."""


class Session:
    """An event loop for one command, or for the turns of a conversation."""

    def __init__(
        self,
        loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
        patience: float = _PATIENCE,
    ) -> None:
        """`loop_factory` makes the event loop; without it, asyncio's own is used."""
        self._seconds = patience
        self._runner = asyncio.Runner(loop_factory=loop_factory)
        self._loop = self._runner.get_loop()
        self._loop.set_default_executor(Threads())
        self._before: dict[signal.Signals, Any] = {}
        self._task: asyncio.Task[Any] | None = None
        self._came: int | None = None
        self._patience: threading.Timer | None = None

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the loop. A tool that cannot be stopped is left to its thread (see `threads`)."""
        try:
            self._runner.close()
        finally:
            self._be_patient()
            if self._came is None:
                self._leave()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run something to its end.

        Raises:
            CancelledSignal: a signal came; the detail `signal` has its number. What the work made of
                the cancellation (which run it leaves) is told too.
            ToolExecutionFailed: code of the user's exits the program.
        """
        self._enter()
        try:
            return self._runner.run(self._guarded(work))
        except (asyncio.CancelledError, CancelledSignal) as error:
            if self._came is None and isinstance(error, CancelledSignal):
                raise
            raise stopped(self._came or signal.SIGINT, error) from None
        except SystemExit as error:
            self._abandon()
            raise ToolExecutionFailed(
                f"a tool exits the program (SystemExit: {error}), and may not: let it raise an error, which "
                "the model reads. What was recorded stays: flyball resume goes on with it"
            ) from error
        finally:
            self._task = None

    def _abandon(self) -> None:
        """Have the work come to its end that waits for a task which has ended the event loop."""
        task = self._task
        if task is None:
            return
        for _ in range(_TRIES):
            if task.done():
                break
            task.cancel()
            with suppress(asyncio.CancelledError, SystemExit, FlyballError):
                self._loop.run_until_complete(task)
        if task.done() and not task.cancelled():
            task.exception()  # it is known why

    def rest(self) -> None:
        """Give the signals back while nothing runs, and forget the one that came.

        A prompt that is being typed has its own Ctrl-C.
        """
        self._be_patient()
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
            is_deaf = _HANGUP is not None and signal.getsignal(_HANGUP) is signal.SIG_IGN
            heard = [number for number in _SIGNALS if not (is_deaf and number is _HANGUP)]
            self._before = {number: signal.signal(number, self._signalled) for number in heard}

    def _leave(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before = {}

    def _signalled(self, number: int, _: FrameType | None) -> None:
        if self._came is not None and number == _HANGUP:
            return
        if self._came is not None:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._came = number
        self._patience = threading.Timer(self._seconds, _end, (number,))
        self._patience.daemon = True
        self._patience.start()
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop)

    def _stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _be_patient(self) -> None:
        """What was cancelled has ended: nothing need be done about it."""
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None


def _end(number: int) -> None:
    """End the process, as a kill would: journals are made for that."""
    report(
        stopped(
            number,
            CancelledSignal("what runs does not stop; it is recorded as far as it came: flyball resume last"),
        ),
        as_json=False,
    )
    os._exit(128 + number)


def run(
    work: Coroutine[Any, Any, T],
    loop_factory: Callable[[], asyncio.AbstractEventLoop] | None = None,
    patience: float = _PATIENCE,
) -> T:
    """Run the work of one command in an event loop of its own; `patience` is what it has to end, if told to.

    Raises:
        CancelledSignal: Ctrl-C, SIGTERM or SIGHUP came.
    """
    with Session(loop_factory, patience) as session:
        return session.run(work)


def fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    """Uvloop's event loop, where it is installed: it is not on every system."""
    try:
        from uvloop import new_event_loop
    except ImportError:
        return None
    return new_event_loop

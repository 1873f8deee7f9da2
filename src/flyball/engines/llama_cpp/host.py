"""Keeps a child running: starts it when it is first needed, and again after it has ended."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Callable
from typing import Any

from flyball.core.errors import FlyballError
from flyball.engines.llama_cpp.options import Located, Options
from flyball.engines.llama_cpp.process import ChildProcess, Frame, Ready


class Host:
    """One model, in one child at a time. Any thread and any event loop may use it, one after another."""

    def __init__(self, locate: Callable[[], Located], options: Options) -> None:
        """Make one; nothing is started.

        Args:
            locate: finds the model's file, and fetches it where it must; called in a thread of its own.
            options: how it is loaded.
        """
        self._locate = locate
        self._options = options
        self._guard = threading.Lock()
        self._child: ChildProcess | None = None
        self._owner = os.getpid()

    @property
    def running(self) -> Ready | None:
        """The loaded model, where there is one now."""
        child = self._child
        if child is None or child.ended or not child.ready.done() or child.ready.exception() is not None:
            return None
        return child.ready.result()

    @property
    def open_calls(self) -> int:
        """How many calls wait for an answer."""
        return 0 if self._child is None else self._child.open_calls

    async def ready(self) -> Ready:
        """Have the model loaded.

        Raises:
            FlyballError: why it cannot be.
        """
        return (await self._started())[1]

    async def ask(self, op: str, body: Frame) -> AsyncGenerator[dict[str, Any], None]:
        """Ask the child, and give each chunk of its answer. Closing it early gives the call up at once.

        Raises:
            FlyballError: the child could not be started, ended meanwhile, or refused the call.
        """
        child, _ = await self._started()
        loop = asyncio.get_running_loop()
        frames: asyncio.Queue[Frame | FlyballError] = asyncio.Queue()

        def sink(frame: Frame | FlyballError) -> None:
            try:
                loop.call_soon_threadsafe(frames.put_nowait, frame)
            except RuntimeError:
                # The event loop was closed over a call: nobody is left to be told.
                return

        number = child.ask(op, body, sink)
        try:
            while True:
                frame = await frames.get()
                if isinstance(frame, FlyballError):
                    raise frame
                if "done" in frame:
                    return
                yield frame["chunk"]
        finally:
            child.give_up(number)

    def close(self) -> None:
        """End the child, where there is one; it takes a moment. A later call starts another."""
        with self._guard:
            child, self._child = self._child, None
        # After a fork this is a copy: the child belongs to the process that started it.
        if child is not None and self._owner == os.getpid():
            child.stop()

    async def _started(self) -> tuple[ChildProcess, Ready]:
        with self._guard:
            if self._owner != os.getpid():
                self._child, self._owner = None, os.getpid()
            child = self._child
            if child is None or child.ended:
                child = self._child = ChildProcess(self._locate, self._options)
                child.start()
        return child, await asyncio.wrap_future(child.ready)

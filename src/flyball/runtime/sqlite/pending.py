"""An append on its way: handed from a task to the journal's thread, and back once it is decided."""

from __future__ import annotations

import asyncio
import threading

from flyball.core.errors import FlyballError
from flyball.runtime.sqlite.record import Row


class PendingAppend:
    """Rows that are to be written, all or none, and what became of them.

    Until the thread claims it, its task may withdraw it. From then on it will be decided, one way or the
    other: a task that is cancelled waits for that, so that nothing is written behind its back.
    """

    __slots__ = ("_claim", "_decided", "_event_loop", "_future", "deadline", "error", "rows")

    def __init__(self, rows: list[Row], deadline: float) -> None:
        self.rows = rows
        self.deadline = deadline
        self.error: FlyballError | None = None
        # Taken once by whoever comes first, and never given back.
        self._claim = threading.Lock()
        self._decided = False
        self._event_loop = asyncio.get_running_loop()
        self._future: asyncio.Future[None] = self._event_loop.create_future()

    @property
    def event_loop(self) -> asyncio.AbstractEventLoop:
        """The event loop of the task that waits."""
        return self._event_loop

    @property
    def committed(self) -> bool:
        """Whether the rows are in the journal."""
        return self._decided and self.error is None

    def claim(self) -> bool:
        """Take it, to write it or to withdraw it. Only the first one to ask gets it."""
        return self._claim.acquire(blocking=False)

    def settle(self) -> None:
        """Tell the task that it is decided. Called in the task's event loop."""
        self._decided = True
        if not self._future.done():
            self._future.set_result(None)

    async def outcome(self) -> None:
        """Wait until it is decided.

        Raises:
            FlyballError: nothing was written.
            asyncio.CancelledError: the task was cancelled. Whether the rows were written is decided by then.
        """
        try:
            await self._future
        except asyncio.CancelledError:
            if not self.claim():
                await self._decision()
            raise
        if self.error is not None:
            raise self.error

    async def _decision(self) -> None:
        while not self._decided:
            self._future = self._event_loop.create_future()
            try:
                await self._future
            except asyncio.CancelledError:
                continue  # cancelled twice; the first is raised once it is decided

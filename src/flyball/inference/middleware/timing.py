"""Timing: how long each model call took, told to a function."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable

from flyball.core.errors import UserError
from flyball.inference.middleware.kinds import CallNext, Middleware, StreamNext
from flyball.inference.request import Request, Result
from flyball.inference.stream import StreamEvent, close_stream


class Timing(Middleware):
    """Tells a function how many seconds each call took, also one that failed; the function may be async.

    A stream takes until it has ended or was closed: who reads slowly makes it longer. `now` tells the time in
    seconds, for tests.
    """

    name = "timing"

    def __init__(
        self,
        callback: Callable[[float], Awaitable[object] | object],
        *,
        now: Callable[[], float] = time.perf_counter,
    ) -> None:
        if not callable(callback):
            raise UserError(f"Timing takes a function of the seconds, not {callback!r}")
        self._callback = callback
        self._now = now

    async def request(self, request: Request, call_next: CallNext) -> Result:
        """See `Middleware.request`."""
        began = self._now()
        try:
            return await call_next(request)
        finally:
            await self._tell(began)

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        """See `Middleware.stream`."""
        began = self._now()
        pieces = call_next(request)
        try:
            async for piece in pieces:
                yield piece
        finally:
            try:
                await close_stream(pieces)
            finally:
                await self._tell(began)

    async def _tell(self, began: float) -> None:
        told = self._callback(self._now() - began)
        if isinstance(told, Awaitable):
            await told

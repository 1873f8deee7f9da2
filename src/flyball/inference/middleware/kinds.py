"""What a middleware is, and ways to make one of functions."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from inspect import isawaitable
from typing import TypeAlias, TypeVar

from flyball.core.compaction import ContextCompaction
from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.inference.request import Request, Result
from flyball.inference.stream import StreamEvent, close_stream

CallNext: TypeAlias = Callable[[Request], Awaitable[Result]]
"""Passes a request on, inwards, and gives the answer. It may be called several times, or not at all."""
StreamNext: TypeAlias = Callable[[Request], AsyncGenerator[StreamEvent]]
"""The same for an answer in pieces. What is left open of it is closed when the middleware has ended."""
RequestSide: TypeAlias = Callable[[Request, CallNext], Awaitable[Result]]
StreamSide: TypeAlias = Callable[
    [Request, StreamNext], "AsyncIterator[StreamEvent] | Awaitable[AsyncIterator[StreamEvent]]"
]
Change: TypeAlias = Callable[[Request], "Request | Awaitable[Request]"]

F = TypeVar("F", bound=Callable[..., object])


class Middleware(Feature):
    """Stands around each model call. Override one side, or both; a side that is not there lets all pass.

    `request` is asked where an answer is wanted whole, `stream` where it is wanted in pieces. One that does
    the same on both sides makes a streamed run and a plain one the same run.
    """

    async def request(self, request: Request, call_next: CallNext) -> Result:
        """The answer to a request."""
        return await call_next(request)

    def stream(
        self, request: Request, call_next: StreamNext
    ) -> AsyncIterator[StreamEvent] | Awaitable[AsyncIterator[StreamEvent]]:
        """The answer in pieces, closed by a `Finish`; most are async generators."""
        return call_next(request)

    def compaction(self, given: Request, passed: Request) -> ContextCompaction | None:
        """By how much it has made a request shorter that it passes on changed: recorded with the answer.

        For who shortens what is sent, and wants it known; others leave it at None.
        """
        return None

    @property
    def has_request(self) -> bool:
        """Whether it has a side for answers that are wanted whole."""
        return type(self).request is not Middleware.request

    @property
    def has_stream(self) -> bool:
        """Whether it has a side for answers that are wanted in pieces."""
        return type(self).stream is not Middleware.stream

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class RequestMiddleware(Middleware):
    """One of a function `(request, call_next)`, for answers that are wanted whole alone; a decorator, too.

    `with_stream` adds the other side.
    """

    def __init__(self, request: RequestSide, name: str | None = None) -> None:
        self._request = _function(self, request)
        self.name = name or _name(request)

    async def request(self, request: Request, call_next: CallNext) -> Result:
        """See `Middleware.request`."""
        return await self._request(request, call_next)

    def with_stream(self, stream: StreamSide) -> DualMiddleware:
        """This one with a side for answers in pieces as well; a decorator, too."""
        return DualMiddleware(self._request, stream, self.name)


class StreamMiddleware(Middleware):
    """One of a function `(request, call_next)`, for answers in pieces alone; a decorator, too.

    The function is an async generator, or gives something that can be read like one.
    """

    def __init__(self, stream: StreamSide, name: str | None = None) -> None:
        self._stream = _function(self, stream)
        self.name = name or _name(stream)

    def stream(
        self, request: Request, call_next: StreamNext
    ) -> AsyncIterator[StreamEvent] | Awaitable[AsyncIterator[StreamEvent]]:
        """See `Middleware.stream`."""
        return self._stream(request, call_next)


class DualMiddleware(Middleware):
    """One of two functions, a side each."""

    def __init__(self, request: RequestSide, stream: StreamSide, name: str | None = None) -> None:
        self._request = _function(self, request)
        self._stream = _function(self, stream)
        self.name = name or _name(request)

    async def request(self, request: Request, call_next: CallNext) -> Result:
        """See `Middleware.request`."""
        return await self._request(request, call_next)

    def stream(
        self, request: Request, call_next: StreamNext
    ) -> AsyncIterator[StreamEvent] | Awaitable[AsyncIterator[StreamEvent]]:
        """See `Middleware.stream`."""
        return self._stream(request, call_next)


class ChangeRequest(Middleware):
    """Changes what is asked, and nothing else, on both sides; a decorator, too.

    Made of a function from the request to another one, which may be async.
    """

    def __init__(self, change: Change, name: str | None = None) -> None:
        self._change = _function(self, change)
        self.name = name or _name(change)

    async def request(self, request: Request, call_next: CallNext) -> Result:
        """See `Middleware.request`."""
        return await call_next(await self._changed(request))

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        """See `Middleware.stream`."""
        pieces = call_next(await self._changed(request))
        try:
            async for piece in pieces:
                yield piece
        finally:
            await close_stream(pieces)

    async def _changed(self, request: Request) -> Request:
        changed = self._change(request)
        return await changed if isawaitable(changed) else changed


def _function(kind: Middleware, given: F) -> F:
    if not callable(given):
        raise UserError(f"{type(kind).__name__} takes functions, not {given!r}")
    return given


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)

"""MiddlewareEngine: an engine with middleware around it, which is all that a driver sees of middleware.

Each call goes through the sides that are of its kind, the first registered outermost. What comes back, or
what is raised, says what was done on the way: `Result.around`, `core.around.noted` of a stream or an error.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Iterable, Sequence

from msgspec.structs import replace

from flyball.core.apart import apart, messages_apart
from flyball.core.around import Around, note
from flyball.core.errors import UserError
from flyball.inference.engine import Engine
from flyball.inference.middleware.account import Account, not_given
from flyball.inference.middleware.kinds import Middleware
from flyball.inference.request import Request, Result
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    close_stream,
)
from flyball.inference.wrapper import WrapperEngine

_log = logging.getLogger("flyball.stream")
_PIECES = frozenset({PartStart, TextDelta, ThinkingDelta, ToolCallDelta, PartEnd, Finish, Restart})


def around(engine: Engine, middleware: Sequence[Middleware]) -> Engine:
    """An engine with middleware around it; the engine itself where there is none."""
    if not middleware:
        return engine
    if isinstance(engine, MiddlewareEngine):  # what reaches the model is known to one of them only
        engine, middleware = engine.engine, (*middleware, *engine.middleware)
    return MiddlewareEngine(engine, middleware)


class MiddlewareEngine(WrapperEngine):
    """An engine with middleware around it. It keeps an engine's promises, whatever the middleware does.

    What a middleware raises is an InferenceFailure that names it, unless it is one already; what came from
    further in is passed on as it is. Cancelling passes through. Every stream that was begun is closed.
    """

    def __init__(self, engine: Engine, middleware: Iterable[Middleware]) -> None:
        super().__init__(engine)
        self.middleware = tuple(middleware)
        for one in self.middleware:
            if not isinstance(one, Middleware):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
                raise UserError(f"{one!r} is no middleware: make one with @RequestMiddleware or the like")
        self._requests = tuple([one for one in self.middleware if one.has_request])
        self._streams = tuple([one for one in self.middleware if one.has_stream])

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        account = Account(request)
        try:
            result = await self._asked(account, 0, _own(request), ())
        except BaseException as error:
            note(error, account.around())
            raise
        return Result(result.message, result.request_id, account.around())

    def stream(self, request: Request) -> MiddlewareStream:
        """See `Engine.stream`."""
        account = Account(request)
        return MiddlewareStream(account, self._streamed(account, 0, _own(request), ()))

    async def _asked(self, account: Account, index: int, request: Request, by: tuple[str, ...]) -> Result:
        """Ask the middleware of this number; after the last, the engine."""
        if index == len(self._requests):
            with account.outgoing(request, by):
                return await self.engine.infer(request)
        side = self._requests[index]

        async def call_next(passed: Request) -> Result:
            return await self._asked(account, index + 1, passed, account.passed(side, request, passed, by))

        with account.inside(side):
            result = await side.request(request, call_next)
            if not isinstance(result, Result):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
                raise not_given(side, result, "a Result")
            return result

    async def _streamed(
        self, account: Account, index: int, request: Request, by: tuple[str, ...]
    ) -> AsyncGenerator[StreamEvent]:
        """The same in pieces."""
        if index == len(self._streams):
            with account.outgoing(request, by):
                pieces = self.engine.stream(request)
                try:
                    async for piece in pieces:
                        yield piece
                finally:
                    await close_stream(pieces)
            return
        side = self._streams[index]
        opened: list[AsyncIterable[StreamEvent]] = []

        def call_next(passed: Request) -> AsyncGenerator[StreamEvent]:
            changed = account.passed(side, request, passed, by)
            opened.append(inner := self._streamed(account, index + 1, passed, changed))
            return inner

        try:
            with account.inside(side):
                source = side.stream(request, call_next)
                if isinstance(source, Awaitable):
                    source = await source
                if not isinstance(source, AsyncIterable):  # pyright: ignore[reportUnnecessaryIsInstance]
                    raise not_given(side, source, "the pieces of an answer: make it an async generator")
                opened.insert(0, source)
                async for piece in source:
                    if type(piece) not in _PIECES:
                        raise not_given(side, piece, "a stream event")
                    yield piece
        finally:
            for stream in opened:
                await _close(stream)


class MiddlewareStream:
    """An answer in pieces that has come through middleware."""

    __slots__ = ("_account", "_pieces")

    def __init__(self, account: Account, pieces: AsyncGenerator[StreamEvent]) -> None:
        self._account = account
        self._pieces = pieces

    @property
    def around(self) -> Around | None:
        """What was done on the way, as far as it has come."""
        return self._account.around()

    def __aiter__(self) -> MiddlewareStream:
        return self

    async def __anext__(self) -> StreamEvent:
        try:
            return await self._pieces.__anext__()
        except StopAsyncIteration:
            raise
        except BaseException as error:
            note(error, self.around)
            raise

    async def aclose(self) -> None:
        """End the call."""
        await self._pieces.aclose()


async def _close(stream: AsyncIterable[StreamEvent]) -> None:
    try:
        await close_stream(stream)
    except Exception:
        # The answer stands, or nobody wants it any more: how a stream is left changes neither.
        _log.debug("a stream could not be closed", exc_info=True)


def _own(request: Request) -> Request:
    """The request for middleware to do with as it likes: the loop's own, and its tools', are left alone."""
    return replace(
        request,
        messages=messages_apart(request.messages),
        tools=apart(request.tools),
        settings=apart(request.settings),
        output=apart(request.output),
    )

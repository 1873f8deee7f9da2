"""Middlewares for these tests, each on both sides, and a request to send through them."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from flyball.core.messages import Message, Text, user
from flyball.inference.engine import Engine
from flyball.inference.middleware.engine import MiddlewareEngine
from flyball.inference.middleware.kinds import CallNext, Middleware, StreamNext
from flyball.inference.request import Request, Result
from flyball.inference.stream import StreamEvent, close_stream, collect

REQUEST = Request((user("hello"),), id="loop/1/1/infer/0")
WAYS = ("infer", "stream")


async def ask(engine: Engine, way: str, request: Request = REQUEST) -> Result:
    """The answer, asked for in one of both ways, with what was done around it."""
    if way == "infer":
        return await engine.infer(request)
    pieces = engine.stream(request)
    result = await collect(pieces)
    return replace(result, around=getattr(pieces, "around", None))


def saying(request: Request, text: str) -> Request:
    """The request with something more in its last message."""
    last = request.messages[-1]
    more = replace(last, parts=(*last.parts, Text(f" {text}")))
    return replace(request, messages=(*request.messages[:-1], more))


class Saying(Middleware):
    """Adds something to what is sent."""

    def __init__(self, text: str, name: str = "saying") -> None:
        self.text = text
        self.name = name

    async def request(self, request: Request, call_next: CallNext) -> Result:
        return await call_next(saying(request, self.text))

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        async for piece in call_next(saying(request, self.text)):
            yield piece


class Twice(Middleware):
    """Asks twice, and gives the second answer."""

    name = "twice"

    async def request(self, request: Request, call_next: CallNext) -> Result:
        await call_next(request)
        return await call_next(request)

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        await collect(call_next(request))
        async for piece in call_next(request):
            yield piece


class Canned(Middleware):
    """Answers in the model's place."""

    name = "canned"

    def __init__(self, message: Message) -> None:
        self.message = message

    async def request(self, request: Request, call_next: CallNext) -> Result:
        return Result(self.message)

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        from flyball.inference.cut import events_of

        for piece in events_of(self.message):
            yield piece


class Again(Middleware):
    """Asks once more where the first call fails."""

    name = "again"

    async def request(self, request: Request, call_next: CallNext) -> Result:
        try:
            return await call_next(request)
        except OSError:
            return await call_next(request)

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        pieces = call_next(request)
        try:
            first = await anext(pieces)
        except OSError:
            pieces = call_next(request)
            first = await anext(pieces)
        yield first
        async for piece in pieces:
            yield piece


class Raising(Middleware):
    """Fails, before the model is asked or after."""

    name = "raising"

    def __init__(self, error: Exception, *, after: bool = False) -> None:
        self.error = error
        self.after = after

    async def request(self, request: Request, call_next: CallNext) -> Result:
        if self.after:
            await call_next(request)
        raise self.error

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        if self.after:
            pieces = call_next(request)
            yield await anext(pieces)
            await close_stream(pieces)
        raise self.error


def through(engine: Engine, *middleware: Middleware) -> MiddlewareEngine:
    """The engine with these around it."""
    return MiddlewareEngine(engine, middleware)

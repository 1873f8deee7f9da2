"""RouterEngine: what all routers share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Awaitable, Callable
from inspect import isawaitable
from typing import TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import EngineError, FlyballError
from flyball.core.messages import JSON
from flyball.inference.engine import Engine
from flyball.inference.notes import ROUTE
from flyball.inference.request import Request, Result
from flyball.inference.several import SeveralEngines
from flyball.inference.stream import Finish, StreamEvent, close_stream

T = TypeVar("T")


class Route(Struct, frozen=True):
    """Who is asked, and what the answer says about that in its `extra`; None for nothing."""

    engine: Engine
    note: dict[str, JSON] | None = None


class RouterEngine(SeveralEngines, ABC):
    """Chooses an engine for each call. All else is the chosen engine's: its answer, how it fails."""

    @abstractmethod
    async def choose(self, request: Request) -> Route:
        """Who is asked this.

        Raises:
            InferenceFailure, ConfigurationFailure: nobody can be.
        """

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        route = await self.choose(request)
        result = await route.engine.infer(request)
        if route.note is None:
            return result
        message = replace(result.message, extra=_told(result.message.extra, route.note))
        return replace(result, message=message)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`."""
        route = await self.choose(request)
        pieces = route.engine.stream(request)
        try:
            async for piece in pieces:
                if type(piece) is Finish and route.note is not None:
                    yield replace(piece, extra=_told(piece.extra, route.note))
                else:
                    yield piece
        finally:
            await close_stream(pieces)


async def decided(function: Callable[[Request], T | Awaitable[T]], request: Request, what: str) -> T:
    """What a user's function, sync or async, says about a request.

    Raises:
        FlyballError: what it raised.
        EngineError: it raised something else, which is the cause.
    """
    try:
        said = function(request)
        return cast("T", await said if isawaitable(said) else said)
    except FlyballError:
        raise
    except Exception as error:
        raise EngineError(
            f"the {what} failed: {type(error).__name__}: {error}", retryable=isinstance(error, OSError)
        ) from error


def _told(extra: dict[str, JSON] | None, note: dict[str, JSON]) -> dict[str, JSON]:
    """What an answer says besides, with the route; one that a router further in chose comes after it."""
    inner = (extra or {}).get(ROUTE)
    return {**(extra or {}), ROUTE: note if inner is None else {**note, "then": inner}}

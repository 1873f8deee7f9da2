"""HTTPEngine: a codec and a transport make an engine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import ConfigurationFailure, EngineError
from flyball.engines.wire.codec import Codec
from flyball.engines.wire.failures import http_failure
from flyball.engines.wire.secrets import Discreet
from flyball.engines.wire.sse import EventReader
from flyball.engines.wire.transport import Call, Reply, Transport
from flyball.inference.cut import events_of
from flyball.inference.permission import check_model_requests_allowed
from flyball.inference.profile import Profile
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent, close_stream

OK = 200

Credentials: TypeAlias = Callable[[], Awaitable[Mapping[str, str]]]
"""What gives the headers that prove who asks, where they change from time to time."""


class Identity(Struct, frozen=True):
    """Who asks: headers that are sent with every call. What stands in them is in no error and no journal."""

    headers: Mapping[str, str] = {}
    credentials: Credentials | None = None

    def __post_init__(self) -> None:
        """Look at what is sent with every call.

        Raises:
            ConfigurationFailure: a line break or the like stands in it.
        """
        for name, value in self.headers.items():
            if not value.isprintable():
                raise ConfigurationFailure(
                    f"what is sent as {name!r} has a line break or the like in it: look at the key, "
                    "or at headers=",
                    header=name,
                )

    def __repr__(self) -> str:
        return f"Identity({', '.join(self.headers)})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("headers", list(self.headers))]

    async def current(self) -> Mapping[str, str]:
        """The headers as they are now.

        Raises:
            FlyballError: no proof can be had.
        """
        return self.headers if self.credentials is None else {**self.headers, **(await self.credentials())}


NOBODY = Identity()
_WHOLE = (b"{", b"[", b"<")
"""How JSON and pages begin, and no stream of events does."""
LINGER = 0.25
"""Seconds in which a server may end its reply when its answer has: then the connection serves again."""


class HTTPEngine:
    """Answers from a server.

    Guarantees those of `Engine`: what fails is of the taxonomy, with the server's own words, its request id
    and how long it wants to be left alone; a stream that breaks has given what had come of it; cancelling
    closes the connection. Nothing is tried again here: see `docs/wrappers.md` for that.
    """

    def __init__(
        self,
        codec: Codec,
        transport: Transport,
        info: ModelInfo,
        *,
        profile: Profile,
        identity: Identity = NOBODY,
    ) -> None:
        """Make one; nothing is opened yet."""
        self._codec = codec
        self._transport = transport
        self._info = info
        self._identity = identity
        self.profile = profile
        """What the model can do."""

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        call, shown = await self._call(request, stream=False)
        with Discreet(shown):
            async with self._transport.open(call) as reply:
                body = await reply.read()
                if reply.status != OK:
                    raise self._refused(reply, body)
                return self._codec.result(request, body, reply.headers)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`."""
        call, shown = await self._call(request, stream=True)
        with Discreet(shown):
            async with self._transport.open(call) as reply:
                if reply.status != OK:
                    raise self._refused(reply, await reply.read())
                pieces = reply.pieces()
                try:
                    first = await anext(pieces, b"")
                    if first.lstrip()[:1] in _WHOLE or _is_json(reply):
                        # It does not stream, whatever it was asked: in one piece it is the same answer.
                        body = b"".join([first, *[piece async for piece in pieces]])
                        result = self._codec.result(request, body, reply.headers)
                        for event in events_of(result.message, request_id=result.request_id):
                            yield event
                        return
                    reader, framed = self._codec.reader(request, reply.headers), EventReader()
                    feed, cut = reader.feed, framed.feed
                    piece: bytes | None = first
                    while piece is not None:
                        for data in cut(piece):
                            for event in feed(data):
                                yield event
                        if reader.ended:
                            await _reach_end(pieces)
                            break
                        piece = await anext(pieces, None)
                finally:
                    await close_stream(pieces)
                for event in reader.close():
                    yield event

    async def ask(self, call: Call) -> bytes:
        """Anything else that the server can be asked (its models, vectors): the body of its reply.

        Raises:
            FlyballError: as `infer` does.
        """
        check_model_requests_allowed(self._info.provider)
        proofs = await self._identity.current()
        with Discreet(proofs):
            async with self._transport.open(replace(call, headers={**call.headers, **proofs})) as reply:
                body = await reply.read()
                if reply.status != OK:
                    raise self._refused(reply, body)
                return body

    def model_info(self) -> ModelInfo:
        """See `Engine.model_info`."""
        return self._info

    async def aclose(self) -> None:
        """Close the connections. A later call makes new ones."""
        await self._transport.aclose()

    async def _call(self, request: Request, *, stream: bool) -> tuple[Call, Mapping[str, str]]:
        """The call with its proofs, and those alone: they are to be shown to nobody."""
        check_model_requests_allowed(self._info.provider)
        call = self._codec.call(request, stream=stream)
        proofs = await self._identity.current()
        return (replace(call, headers={**call.headers, **proofs}) if proofs else call), proofs

    def _refused(self, reply: Reply, body: bytes) -> Exception:
        info = self._info
        if 300 <= reply.status < 400:
            where = reply.headers.get("Location", "elsewhere").partition("?")[0]
            return EngineError(
                f"{info.provider} sends us on to {where}, where no key is sent: give that address instead",
                retryable=False,
                status_code=reply.status,
            )
        return http_failure(reply.status, reply.headers, body, provider=info.provider, model=info.name)


def _is_json(reply: Reply) -> bool:
    return reply.headers.get("Content-Type", "").startswith("application/json")


async def _reach_end(pieces: AsyncIterator[bytes]) -> None:
    """Read what comes after an answer; how long that takes and how it ends is nobody's concern."""
    with suppress(EngineError, TimeoutError):
        async with asyncio.timeout(LINGER):
            async for _ in pieces:
                pass

"""From a request that has come in to its answer on the wire: an operation is performed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Any, TypeAlias
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct

from flyball.adapters.http.asking import Answer, Asking, Stream
from flyball.adapters.http.awaiting import Awaiting
from flyball.adapters.http.frames import MEDIA_TYPE
from flyball.adapters.http.gate import PASSED, Receive, Scope, Send, refuse
from flyball.adapters.http.limits import Limits, Places
from flyball.adapters.http.metrics import Metrics
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.passed import Passed
from flyball.adapters.http.problems import Gone, Malformed, ShuttingDown
from flyball.adapters.http.tokens import Scope as Right
from flyball.core.errors import FlyballError, JournalUnreachable, UserError
from flyball.orchestrate.service import Service

Services: TypeAlias = Callable[[str], Awaitable[Service]]
"""The service of a tenant; that of no tenant in particular has no name."""

LOOP = "Flyball-Loop"
"""The header that names the loop which a request has begun."""
_LOOK = 1.0
"""Seconds after which is looked again whether the token of who is told something is still good."""
_encode = msgspec.json.Encoder().encode


class _NoQuery(Struct, frozen=True):
    """Of an operation that takes no parameters."""


async def service_of(services: Services, tenant: str) -> Service:
    """The service of a tenant, for somebody who calls.

    Raises:
        UnknownTenant: there is none.
        JournalUnreachable: it cannot be had just now. How the server is set up (credentials that were
            revoked, a file that is gone) is nothing that a caller could mend: for them, that is all it is.
        FlyballError: it cannot be had for another reason.
    """
    try:
        return await services(tenant)
    except UserError as error:
        raise JournalUnreachable(f"the journal cannot be had: {error.message}", tenant=tenant) from error


class Serving:
    """Performs operations, within limits.

    Args:
        services: the service of each tenant.
        limits: how much is taken.
        metrics: where streams are counted.
        awaiting: which models are not here yet.
    """

    def __init__(
        self, services: Services, limits: Limits, metrics: Metrics, awaiting: Awaiting | None = None
    ) -> None:
        self._services = services
        self._limits = limits
        self._metrics = metrics
        self._awaiting = awaiting or Awaiting()
        self._places = Places(limits.concurrent, "requests under way")
        self._streams = Places(limits.streams, "streams open")
        self._giving: set[asyncio.Task[None]] = set()
        self.ending = False
        """Whether the server is about to end: nothing new begins."""

    async def __call__(
        self, operation: Operation, values: Mapping[str, str], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Perform an operation, and answer. Whatever goes wrong is answered as a problem."""
        passed: Passed = scope[PASSED]
        passed.operation = operation.name
        places = self._streams if operation.long else self._places if operation.scope is Right.RUN else None
        try:
            if self.ending and operation.scope is not None:
                raise ShuttingDown("the server is about to end: come again soon", {"Retry-After": "5"})
            if places is not None:  # what looks, and what is said to loops, never waits for what runs
                places.enter()
        except Exception as error:
            await refuse(error, passed, send)
            return
        try:
            answer = await self._answer(operation, values, scope, receive)
            passed.loop_id = answer.headers.get(LOOP) or values.get("loop_id", "")
            if isinstance(answer, Answer):
                await _send(answer, send, head=scope["method"] == "HEAD")
            else:
                await self._stream(answer, passed, receive, send)
        except Gone:
            return  # nobody hears an answer
        except Exception as error:
            if not isinstance(error, FlyballError):
                passed.failure = error
            if passed.status:
                raise
            await refuse(error, passed, send)
        finally:
            if places is not None:
                places.leave()

    async def _answer(
        self, operation: Operation, values: Mapping[str, str], scope: Scope, receive: Receive
    ) -> Answer | Stream:
        passed: Passed = scope[PASSED]
        service = await service_of(self._services, passed.principal.tenant)
        service.responded = self._metrics.ran
        asking = Asking(
            principal=passed.principal,
            service=service,
            correlation=passed.correlation,
            headers=passed.headers,
            values=values,
            query=_query(scope["query_string"]),
            receive=receive,
            limits=self._limits,
            awaiting=self._awaiting,
            ending=self.ending,
        )
        if operation.scope is not None:
            asking.allow(operation.scope)
        if operation.query is None and operation.fault is None:
            asking.query(_NoQuery)
        return await operation.perform(asking)

    async def _stream(self, stream: Stream, passed: Passed, receive: Receive, send: Send) -> None:
        """Give what comes to who asked for it, for as long as both are there."""
        passed.streamed = True
        self._metrics.streams.inc()
        gone = asyncio.ensure_future(until_gone(receive))
        giving = asyncio.ensure_future(_give(stream, passed, send, self._limits.stuck_seconds))
        if stream.again:
            self._giving.add(giving)
        try:
            await asyncio.wait([gone, giving], return_when=asyncio.FIRST_COMPLETED)
            if gone.done() and stream.gone is not None:
                await stream.gone()
            elif giving.done() and not giving.cancelled():
                giving.result()
        finally:
            self._giving.discard(giving)
            self._metrics.streams.dec()
            for task in (gone, giving):
                task.cancel()
            await asyncio.gather(gone, giving, return_exceptions=True)
            if not gone.done() or gone.cancelled():
                await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def end(self) -> None:
        """Begin nothing new, and close the streams of who can come again, to another server.

        Those that are the answer to a request go on for as long as its run does.
        """
        self.ending = True
        self._awaiting.end()
        for giving in list(self._giving):
            giving.cancel()


async def _give(stream: Stream, passed: Passed, send: Send, stuck_seconds: float) -> None:
    """Send what comes. Who takes nothing of it for too long is let go of, and whose token is no more."""
    headers = [
        (b"content-type", MEDIA_TYPE.encode()),
        (b"x-accel-buffering", b"no"),
        *_written(stream.headers),
    ]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    async with aclosing(stream.events) as batches:
        looked = time.monotonic()
        async for batch in batches:
            if (now := time.monotonic()) - looked > _LOOK:
                looked = now
                if not passed.still_welcome():
                    return
            async with asyncio.timeout(stuck_seconds):
                await send({"type": "http.response.body", "body": batch, "more_body": True})


async def until_gone(receive: Receive) -> None:
    """Wait until who asked has gone away."""
    while (await receive())["type"] != "http.disconnect":
        continue


async def _send(answer: Answer, send: Send, *, head: bool) -> None:
    content: Any = answer.content
    body = content if isinstance(content, bytes) else b"" if answer.status == 204 else _encode(content)
    headers = [(b"content-length", str(len(body)).encode()), *_written(answer.headers)]
    if answer.status != 204:
        headers.append((b"content-type", answer.media_type.encode()))
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else body})


def _written(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Headers as they are sent. A value that is no plain text (a loop's id may be anything) is left out."""
    return [
        (name.lower().encode(), value.encode())
        for name, value in headers.items()
        if value.isascii() and value.isprintable()
    ]


def _query(text: bytes) -> dict[str, str]:
    """What a query says.

    Raises:
        Malformed: it says something twice, or too much.
    """
    if not text:
        return {}
    try:
        pairs = parse_qsl(text.decode("latin-1"), keep_blank_values=True, max_num_fields=100)
    except ValueError as error:
        raise Malformed(f"the query cannot be read: {error}") from error
    values = dict(pairs)
    if len(values) < len(pairs):
        twice = next(name for name in values if [one for one, _ in pairs].count(name) > 1)
        raise Malformed(f"the parameter {twice[:100]!r} is given more than once", field=twice[:100])
    return values

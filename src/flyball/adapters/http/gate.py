"""What every request passes, in this order: its ids, where it comes from, who asks, how much was asked for.

It is one layer around the application, so that also what finds no route, or is refused, has an id, is counted
and has its line in the log.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, MutableMapping
from functools import partial
from ipaddress import ip_address
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

import msgspec

from flyball.adapters.http.limits import Rates
from flyball.adapters.http.logs import Log
from flyball.adapters.http.metrics import Metrics
from flyball.adapters.http.passed import Passed
from flyball.adapters.http.problems import (
    MEDIA_TYPE,
    Forbidden,
    Refused,
    problem_of,
    retry_after,
    unexpected,
)
from flyball.adapters.http.tokens import NOBODY_IN_PARTICULAR, Principal, Tokens
from flyball.core.correlation import Correlation
from flyball.core.ids import new_id

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

PASSED = "flyball"
"""Where in a scope it stands what the gate found out."""
OPEN = frozenset(("/health", "/ready"))
"""Paths that need no token: those who look after processes have none."""
SLASH = "\ue000"
"""What stands for a slash that is part of a name, such as a model's, until routes are found."""
_ALWAYS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class Gate:
    """Lets requests in, or tells them why not.

    Args:
        app: the application behind it.
        tokens: who may come in; without it, whoever is on this machine.
        rates: how much each may ask for.
        metrics: where requests are counted.
        log: where a line is written for each.
    """

    def __init__(
        self, app: App, *, tokens: Tokens | None, rates: Rates, metrics: Metrics, log: Log | None
    ) -> None:
        self._app = app
        self._tokens = tokens
        self._rates = rates
        self._metrics = metrics
        self._log = log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "there are no web sockets here"})
            return
        began = time.perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        passed = scope[PASSED] = Passed(NOBODY_IN_PARTICULAR, _correlation(headers), headers)
        if b"%2" in (raw := scope.get("raw_path") or b""):
            scope["path"] = _kept_apart(raw)
        passed.openai = scope["path"].startswith("/v1/")
        more = [*_ALWAYS, (b"x-request-id", passed.correlation.request_id.encode("latin-1"))]
        if trace := passed.correlation.traceparent:
            more.append((b"traceparent", trace.encode()))

        async def sending(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                passed.status = message["status"]
                message["headers"] = [*message["headers"], *more]
            await send(message)

        self._metrics.under_way.inc()
        try:
            try:
                passed.principal = self._let_in(scope, headers)
                if self._tokens is not None:
                    passed.still_welcome = partial(self._is_known, headers)
            except Refused as refusal:
                await refuse(refusal, passed, sending)
            else:
                await self._app(scope, receive, sending)
        except Exception as error:
            passed.failure = error
            if passed.status:
                raise
            await refuse(error, passed, sending)
        finally:
            self._metrics.under_way.dec()
            took = time.perf_counter() - began
            operation = passed.operation or "none"
            self._metrics.answered(
                operation, _method(scope), passed.status or 499, took, streamed=passed.streamed
            )
            if self._log is not None:
                self._log.request(scope, passed, took)

    def _is_known(self, headers: dict[str, str]) -> bool:
        assert self._tokens is not None
        try:
            self._tokens.principal(headers.get("authorization", ""))
        except (Refused, RuntimeError):
            return False
        return True

    def _let_in(self, scope: Scope, headers: dict[str, str]) -> Principal:
        """Who asks.

        Raises:
            Unauthenticated, Forbidden, TooMany: the request does not come in.
        """
        path = scope["path"]
        if path in OPEN or (self._tokens is not None and _is_page(path)):
            return NOBODY_IN_PARTICULAR
        if self._tokens is None:
            _check_origin(headers)
            principal = NOBODY_IN_PARTICULAR
        else:
            principal = self._tokens.principal(headers.get("authorization", ""))
        self._rates.take(principal.token or (scope.get("client") or ("",))[0])
        return principal


def _is_page(path: str) -> bool:
    """Whether a path is the studio's. Its files hold nothing of anybody's: who looks at it gives a token."""
    return path == "/" or path.startswith("/studio/")


def _check_origin(headers: dict[str, str]) -> None:
    """Keep other sites' pages out, where no token does: a browser on this machine would come in for them.

    Raises:
        Forbidden: a page of another site asks, or the name that was asked for is not this machine's.
    """
    host = headers.get("host", "")
    if not _is_here(host):
        raise Forbidden(
            f"this server is asked as localhost, and not as {host[:100]!r}: for other names, use tokens"
        )
    origin = headers.get("origin")
    if origin is not None and origin.partition("://")[2] != host:
        raise Forbidden(f"pages of {origin[:100]!r} may not ask this server: for that, use tokens")


def _is_here(host: str) -> bool:
    """Whether a `Host` header names this machine, as it is known to itself."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or name.endswith(".localhost") or ip_address(name).is_loopback
    except ValueError:
        return False


def _correlation(headers: dict[str, str]) -> Correlation:
    """The ids that a request came with; those that are missing, or are none, are made here."""
    given = headers.get("x-request-id", "")
    known = 0 < len(given) <= 128 and given.isascii() and given.isprintable()
    ids = Correlation.from_traceparent(
        headers.get("traceparent", ""), request_id=given if known else new_id()
    )
    if not ids.trace_id:
        return Correlation(request_id=ids.request_id, trace_id=new_id())
    return ids


def _kept_apart(raw: bytes) -> str:
    """A path whose names may have slashes in them, which are not those between them."""
    names = [unquote(name).replace("/", SLASH) for name in raw.partition(b"?")[0].decode("ascii").split("/")]
    return "/".join(names)


def _method(scope: Scope) -> str:
    """The method, if it is one of those that there are: labels are not for callers to make up."""
    method = scope["method"]
    return method if method in ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS") else "other"


async def refuse(error: Exception, passed: Passed, send: Send) -> None:
    """Answer with a problem; to OpenAI's clients, in their words."""
    failure = unexpected(error)
    problem = problem_of(failure.record(), passed.correlation.request_id)
    body, media_type = msgspec.json.encode(problem), MEDIA_TYPE
    if passed.openai:
        kind = "server_error" if problem.status >= 500 else "invalid_request_error"
        told = {"message": problem.detail, "type": kind, "param": None, "code": problem.code}
        body, media_type = msgspec.json.encode({"error": told}), "application/json"
    headers = {**retry_after(failure.details), **getattr(failure, "headers", {})}
    await send(
        {
            "type": "http.response.start",
            "status": problem.status,
            "headers": [
                (b"content-type", media_type.encode()),
                (b"content-length", str(len(body)).encode()),
                *[(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()],
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})

"""Other applications behind the same gate: by which path, for whom, and within which limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager
from typing import Any, TypeAlias

from flyball.adapters.http.bodies import Body
from flyball.adapters.http.frames import MEDIA_TYPE
from flyball.adapters.http.gate import PASSED, App, Receive, Scope, Send
from flyball.adapters.http.limits import Limits, Places
from flyball.adapters.http.passed import Passed
from flyball.adapters.http.problems import Forbidden, ShuttingDown
from flyball.adapters.http.rights import check_scope, person_of
from flyball.adapters.http.serving import Services, service_of
from flyball.adapters.http.tokens import Scope as Right
from flyball.core.errors import NotPermitted
from flyball.orchestrate.permissions import Person
from flyball.orchestrate.service import Service


class Callers:
    """Who calls a mounted application: its service, what it may do, and its name. By a request's scope."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def __call__(self, scope: Scope) -> Service:
        """The service of who calls.

        Raises:
            Forbidden: its token is not for having agents run.
            NotPermitted: it is a person's, and they may not.
            FlyballError: its service cannot be had.
        """
        principal = scope[PASSED].principal
        service = await service_of(self._services, principal.tenant)
        check_scope(principal, service.policy, Right.RUN)
        return service

    def allows(self, scope: Scope, service: Service, right: str) -> bool:
        """Whether it may do something."""
        try:
            check_scope(scope[PASSED].principal, service.policy, Right(right))
        except (Forbidden, NotPermitted):
            return False
        return True

    def person(self, scope: Scope, service: Service) -> Person | None:
        """The person who calls; None of a program."""
        return person_of(scope[PASSED].principal, service.policy)

    def name(self, scope: Scope) -> str:
        """Who it is: the name of its token."""
        return scope[PASSED].principal.name


Mount: TypeAlias = Callable[[Callers], AbstractAsyncContextManager[App]]
"""Makes an application, for as long as the server runs."""


class Mounts:
    """Applications by the beginning of their paths, around one that has all the others.

    They are held to the same limits as operations: of bodies, and of requests under way.
    """

    def __init__(self, app: App, mounts: Mapping[str, App], limits: Limits) -> None:
        self._app = app
        self._mounts = mounts
        self._limits = limits
        self._places = Places(limits.concurrent, "requests under way")
        self._streams = Places(limits.streams, "streams open")
        self.ending = False
        """Whether the server is about to end: nothing new begins."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI.

        Raises:
            TooLarge, TooSlow, TooMany, ShuttingDown: it is refused.
        """
        path = scope.get("path", "")
        for prefix, app in self._mounts.items():
            if path == prefix or path.startswith(f"{prefix}/"):
                await self._pass(prefix, app, scope, receive, send)
                return
        await self._app(scope, receive, send)

    async def _pass(self, prefix: str, app: App, scope: Scope, receive: Receive, send: Send) -> None:
        passed: Passed = scope[PASSED]
        passed.operation = prefix.strip("/")
        if self.ending:
            raise ShuttingDown("the server is about to end: come again soon", {"Retry-After": "5"})
        places = self._streams if scope["method"] == "GET" else self._places
        places.enter()
        try:
            body = Body(receive, passed.headers, self._limits)
            await app({**scope, "root_path": prefix}, body.receive, _noting_streams(passed, send))
        finally:
            places.leave()


def _noting_streams(passed: Passed, send: Send) -> Send:
    """`send`, which tells the numbers whether what is sent is a stream."""

    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            kinds = [value for name, value in message["headers"] if name.lower() == b"content-type"]
            passed.streamed = any(kind.startswith(MEDIA_TYPE.encode()) for kind in kinds)
        await send(message)

    return sending

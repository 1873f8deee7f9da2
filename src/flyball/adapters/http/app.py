"""The application: the operations as routes of litestar, with the gate around them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from litestar import Litestar, Request
from litestar.exceptions import MethodNotAllowedException, NotFoundException
from litestar.handlers import HTTPRouteHandler
from litestar.response.base import ASGIResponse

from flyball.adapters.http.awaiting import Awaiting
from flyball.adapters.http.gate import PASSED, SLASH, App, Gate, Receive, Scope, Send, refuse
from flyball.adapters.http.limits import Limits, Rates
from flyball.adapters.http.logs import Log
from flyball.adapters.http.metrics import Metrics
from flyball.adapters.http.mounts import Mounts
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.problems import MethodNotAllowed, NotFound
from flyball.adapters.http.serving import Services, Serving
from flyball.adapters.http.tokens import Tokens

_DOTS = (".", "..")


class Performed(ASGIResponse):
    """What litestar is given as an answer: it is made while it is sent."""

    def __init__(self, operation: Operation, values: dict[str, str], serving: Serving) -> None:
        self._operation = operation
        self._values = values
        self._serving = serving

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI."""
        await self._serving(self._operation, self._values, scope, receive, send)


class _Problem(ASGIResponse):
    """A problem that litestar found: there is no such route, or not by this method."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def to_asgi_response(self, *_: Any, **__: Any) -> _Problem:
        """What litestar asks of what its exceptions become."""
        return self

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """ASGI."""
        await refuse(self._error, scope[PASSED], send)


def create_app(
    operations: Sequence[Operation],
    services: Services,
    *,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    metrics: Metrics | None = None,
    log: Log | None = None,
    mounts: dict[str, App] | None = None,
    awaiting: Awaiting | None = None,
    ending: Callable[[], None] = lambda: None,
) -> Api:
    """The application that serves these operations.

    Args:
        operations: what can be asked for.
        services: the service of each tenant.
        tokens: who may come in; without it, whoever is on this machine.
        limits: how much is taken.
        metrics: where requests are counted.
        log: where a line is written for each request.
        mounts: other applications, by the beginning of their paths.
        awaiting: which models are not here yet.
        ending: called when it begins to end.
    """
    metrics, limits = metrics or Metrics(), (limits or Limits()).check()
    serving = Serving(services, limits, metrics, awaiting)
    paths = dict.fromkeys([operation.path for operation in operations])
    routes = [_route([one for one in operations if one.path == path], serving) for path in paths]
    litestar = Litestar(
        routes,
        openapi_config=None,
        logging_config=None,
        exception_handlers={NotFoundException: _not_found, MethodNotAllowedException: _not_allowed},
    )
    app: Any = litestar
    mounted = Mounts(app, mounts or {}, limits)
    gate = Gate(
        mounted if mounts else app,
        tokens=tokens,
        rates=Rates(limits.rate),
        metrics=metrics,
        log=log,
    )
    return Api(gate, serving, limits, mounted, ending)


class Api:
    """The whole application, as ASGI; `end` is the beginning of its end."""

    def __init__(
        self, gate: Gate, serving: Serving, limits: Limits, mounts: Mounts, ending: Callable[[], None]
    ) -> None:
        self.limits = limits
        self._ending = ending
        self._gate = gate
        self._serving = serving
        self._mounts = mounts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI."""
        await self._gate(scope, receive, send)

    async def end(self) -> None:
        """Begin nothing new, and close the streams."""
        self._mounts.ending = True
        await self._serving.end()
        self._ending()


def _route(operations: Sequence[Operation], serving: Serving) -> HTTPRouteHandler:
    """The route of a path. It is one for all methods: only then does `OPTIONS` tell all of them."""
    methods: Any = {operation.method: operation for operation in operations}
    first = operations[0]

    async def perform(request: Request[Any, Any, Any]) -> ASGIResponse:
        values = {name: _meant(value) for name, value in request.path_params.items()}
        return Performed(methods[request.method], values, serving)

    perform.__name__ = first.name
    path = first.path.replace("}", ":str}")
    # The status is the answer's own; litestar would have none of a DELETE that says something.
    made = HTTPRouteHandler(path, http_method=list(methods), status_code=200, name=first.name)
    return made(_typed(perform))


def _meant(value: str) -> str:
    """What a name in a path means: a slash in it, and dots alone, are written otherwise there."""
    if value.startswith("~") and value.lstrip("~") in _DOTS:
        return value[1:]  # every client takes `.` and `..` for steps of the path, also where they are escaped
    return value.replace(SLASH, "/")


def _typed(function: Callable[..., Awaitable[ASGIResponse]]) -> Callable[..., Awaitable[ASGIResponse]]:
    # Litestar looks at annotations, and these are local to the function that makes the route.
    function.__annotations__ = {"request": Request, "return": ASGIResponse}
    return function


def _not_found(request: Request[Any, Any, Any], _: NotFoundException) -> Any:
    return _Problem(NotFound(f"there is nothing at {request.url.path[:200]!r}"))


def _not_allowed(request: Request[Any, Any, Any], error: MethodNotAllowedException) -> Any:
    headers = {name.lower(): value for name, value in (error.headers or {}).items()}
    allowed = ", ".join(sorted([one for one in headers.get("allow", "").split(", ") if one != "OPTIONS"]))
    return _Problem(
        MethodNotAllowed(f"{request.method} is not how this is asked: {allowed}", {"Allow": allowed})
    )

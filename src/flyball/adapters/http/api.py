"""The API as one: all operations, over the services of all tenants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

from flyball.adapters.http.app import Api, create_app
from flyball.adapters.http.awaiting import Arriving, Awaiting
from flyball.adapters.http.gate import App
from flyball.adapters.http.hub import EVERY, Hub
from flyball.adapters.http.limits import Limits
from flyball.adapters.http.logs import Log
from flyball.adapters.http.metrics import Metrics
from flyball.adapters.http.openapi import openapi_operation
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.routes.channels import channel_operations
from flyball.adapters.http.routes.loops import loop_operations
from flyball.adapters.http.routes.openai import openai_operations
from flyball.adapters.http.routes.requests import request_operations
from flyball.adapters.http.routes.server import server_operations, version
from flyball.adapters.http.routes.views import view_operations
from flyball.adapters.http.serving import Services
from flyball.adapters.http.studio.serving import studio_operations
from flyball.adapters.http.tokens import Tokens
from flyball.orchestrate.service import Service

_LINGER = 30.0
"""Seconds for which a loop is read on that nobody follows any more."""


class Hubs:
    """The hub of each service."""

    def __init__(self, heartbeat: float) -> None:
        self._heartbeat = heartbeat
        self._hubs: WeakKeyDictionary[Service, Hub] = WeakKeyDictionary()

    def __call__(self, service: Service) -> Hub:
        """The hub of a service; made where there is none yet."""
        hub = self._hubs.get(service)
        if hub is None:
            hub = self._hubs[service] = Hub(service.follow, service.stage, self._heartbeat, _LINGER)
        return hub

    def close(self) -> None:
        """Read no more loops."""
        for hub in self._hubs.values():
            hub.close()


def build_api(
    services: Services,
    *,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    log: Log | None = None,
    heartbeat: float = EVERY,
    mounts: Mapping[str, App] | None = None,
    arriving: Arriving | None = None,
    more: Sequence[Operation] = (),
) -> Api:
    """The application.

    Args:
        services: the service of each tenant; see `Services`.
        tokens: who may come in; without it, whoever is on this machine, and no pages of other sites.
        limits: how much is taken.
        log: where a line is written for each request.
        heartbeat: seconds after which a stream that has nothing to tell says that it is still there.
        mounts: other applications behind the same gate, by the beginning of their paths.
        arriving: the models that are fetched while the server runs.
        more: further operations.
    """
    metrics, hubs = Metrics(), Hubs(heartbeat)
    operations = [
        *server_operations(metrics),
        *request_operations(hubs),
        *view_operations(),
        *loop_operations(hubs),
        *channel_operations(heartbeat),
        *openai_operations(),
        *more,
    ]
    operations.append(openapi_operation(operations, version(), tokens=tokens is not None))
    operations += studio_operations()
    return create_app(
        operations,
        services,
        tokens=tokens,
        limits=limits,
        metrics=metrics,
        log=log,
        mounts=dict(mounts or {}),
        awaiting=Awaiting(arriving),
        ending=hubs.close,
    )

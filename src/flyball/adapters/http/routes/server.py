"""What is about the server itself: whether it is well, its numbers, its agents, what was put aside."""

from __future__ import annotations

import asyncio
import logging
from typing import Literal

from msgspec import Struct

from flyball.adapters.http.asking import Answer, Asking
from flyball.adapters.http.metrics import MEDIA_TYPE, Metrics
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.problems import NotFound, retry_after
from flyball.adapters.http.tokens import Scope
from flyball.core.errors import FlyballError
from flyball.orchestrate.cards import AgentCard, ModelCard
from flyball.orchestrate.dead_letters import DeadLetter

_log = logging.getLogger("flyball.http")

_PATIENCE = 2.0
"""Seconds that the journal has to answer before the server is said not to be ready."""


class Health(Struct, frozen=True):
    """That the server is there."""

    status: Literal["ok", "unready"]
    version: str
    reason: str = ""


class Agents(Struct, frozen=True):
    """The agents that are served."""

    agents: tuple[AgentCard, ...]


class Models(Struct, frozen=True):
    """The models that are served."""

    models: tuple[ModelCard, ...]


class Letters(Struct, frozen=True):
    """What no worker could do anything with."""

    dead_letters: tuple[DeadLetter, ...]


class Requeued(Struct, frozen=True):
    """A message that was given to the workers again."""

    number: int


class Dropped(Struct, frozen=True):
    """A message that was let go of."""

    number: int


def version() -> str:
    """Flyball's version."""
    from importlib.metadata import version as installed

    return installed("flyball")


def _numbered(number: str) -> int:
    """A number of what was put aside."""
    if number.isascii() and number.isdecimal() and len(number) < 19:
        return int(number)
    raise _not_put_aside(number)


def _not_put_aside(number: str) -> NotFound:
    return NotFound(f"nothing with the number {number[:100]!r} was put aside")


def server_operations(metrics: Metrics) -> list[Operation]:
    """The operations that are about the server."""

    async def health(asking: Asking) -> Answer:
        return Answer(Health("ok", version()))

    async def ready(asking: Asking) -> Answer:
        if asking.ending:
            return Answer(Health("unready", version(), "the server is about to end"), 503)
        try:
            async with asyncio.timeout(_PATIENCE):
                await asking.service.ready()
        except TimeoutError:
            return Answer(Health("unready", version(), "the journal does not answer"), 503)
        except FlyballError as error:
            _log.warning("not ready: %s", error)  # who asks needs no token, and is told no file names
            reason = f"the journal cannot be used ({error.code}): the server's log says why"
            return Answer(Health("unready", version(), reason), 503)
        if (missing := asking.awaiting.missing()) is not None:
            return Answer(Health("unready", version(), missing.message), 503, retry_after(missing.details))
        return Answer(Health("ok", version()))

    async def read_metrics(asking: Asking) -> Answer:
        return Answer(metrics.text(), media_type=MEDIA_TYPE)

    async def list_agents(asking: Asking) -> Answer:
        return Answer(Agents(asking.service.agents()))

    async def read_agent(asking: Asking) -> Answer:
        return Answer(asking.service.agent(asking.values["agent"]))

    async def list_models(asking: Asking) -> Answer:
        return Answer(Models(asking.service.models()))

    async def list_dead_letters(asking: Asking) -> Answer:
        dead = asking.service.dead
        return Answer(Letters(() if dead is None else tuple(await dead.list())))

    async def requeue_dead_letter(asking: Asking) -> Answer:
        dead, number = asking.service.dead, _numbered(asking.values["number"])
        if dead is None or not await dead.requeue(number):
            raise _not_put_aside(asking.values["number"])
        return Answer(Requeued(number), 202)

    async def drop_dead_letter(asking: Asking) -> Answer:
        dead, number = asking.service.dead, _numbered(asking.values["number"])
        if dead is None or not await dead.drop(number):
            raise _not_put_aside(asking.values["number"])
        return Answer(Dropped(number))

    return [
        Operation(
            "GET", "/health", "Whether the server runs", health, scope=None, gives={200: Health}, tag="server"
        ),
        Operation(
            "GET",
            "/ready",
            "Whether it can serve: its journal answers, and its models are here",
            ready,
            scope=None,
            gives={200: Health, 503: Health},
            tag="server",
        ),
        Operation(
            "GET",
            "/metrics",
            "Numbers for Prometheus",
            read_metrics,
            scope=Scope.ADMIN,
            gives={200: str},
            tag="server",
            media_type=MEDIA_TYPE,
        ),
        Operation("GET", "/api/agents", "The agents", list_agents, gives={200: Agents}, tag="agents"),
        Operation("GET", "/api/models", "The models", list_models, gives={200: Models}, tag="agents"),
        Operation(
            "GET",
            "/api/agents/{agent}",
            "An agent",
            read_agent,
            gives={200: AgentCard},
            problems=(404,),
            tag="agents",
        ),
        Operation(
            "GET",
            "/api/dead-letters",
            "What no worker could do anything with, and why",
            list_dead_letters,
            scope=Scope.ADMIN,
            gives={200: Letters},
            tag="server",
        ),
        Operation(
            "POST",
            "/api/dead-letters/{number}/requeue",
            "Give it to the workers again",
            requeue_dead_letter,
            scope=Scope.ADMIN,
            gives={202: Requeued},
            problems=(400, 404),
            tag="server",
        ),
        Operation(
            "DELETE",
            "/api/dead-letters/{number}",
            "Let go of it: nobody does it",
            drop_dead_letter,
            scope=Scope.ADMIN,
            gives={200: Dropped},
            problems=(404,),
            tag="server",
        ),
    ]

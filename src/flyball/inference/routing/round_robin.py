"""round_robin: models in turn."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from flyball.inference.engine import Engine
from flyball.inference.registry import DEFAULT, Registry
from flyball.inference.request import Request
from flyball.inference.routing.router import Route, RouterEngine


class RoundRobinRouter(RouterEngine):
    """Asks its models in turn, call by call, beginning with the first. Its profile is what all can do."""

    kind = "round_robin"

    def __init__(self, models: Iterable[str | Engine], registry: Registry = DEFAULT) -> None:
        super().__init__(models, registry)
        self._calls = count()

    async def choose(self, request: Request) -> Route:
        """See `RouterEngine.choose`."""
        return Route(self.engines[next(self._calls) % len(self.engines)])


def round_robin(first: str | Engine, *more: str | Engine, registry: Registry = DEFAULT) -> RoundRobinRouter:
    """Models that are asked in turn, so that each gets its share of the calls.

    Args:
        first: a model string, or an engine.
        more: the others.
        registry: where model strings are looked up.

    Raises:
        ConfigurationFailure: there is no such model (see `Registry.resolve`).
    """
    return RoundRobinRouter((first, *more), registry)

"""by_classifier: the model that a function, or another model, names for a request."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from msgspec import Struct

from flyball.core.errors import InferenceFailure, UserError
from flyball.core.messages import JSON
from flyball.inference.engine import Engine
from flyball.inference.registry import DEFAULT, Registry
from flyball.inference.request import Request
from flyball.inference.routing.router import Route, RouterEngine, decided

_log = logging.getLogger("flyball.models")


class Decision(Struct, frozen=True):
    """The name of a route, and what the answer says about how it was found."""

    route: str
    by: dict[str, JSON] | None = None


Classify: TypeAlias = Callable[[Request], "str | Decision | Awaitable[str | Decision]"]
"""Names a route for a request; sync or async."""


class ClassifierRouter(RouterEngine):
    """Asks the model of the route that its classifier names. Its profile is what all of them can do."""

    kind = "by_classifier"

    def __init__(
        self,
        routes: Mapping[str, str | Engine],
        classify: Classify,
        default: str | None = None,
        registry: Registry = DEFAULT,
    ) -> None:
        super().__init__(routes.values(), registry)
        self.routes = dict(zip(routes, self.engines, strict=True))
        if not callable(classify):
            raise UserError(f"a classifier is a function of a request or a ModelClassifier, not {classify!r}")
        named = {*getattr(classify, "routes", ()), *([] if default is None else [default])}
        if unknown := sorted(named - set(self.routes)):
            raise UserError(f"there is no route {unknown[0]!r}; there are {self._names()}")
        self.classify = classify
        self.default = default

    async def choose(self, request: Request) -> Route:
        """See `RouterEngine.choose`.

        Raises:
            InferenceFailure: the classifier failed, and there is no default.
            UserError: it named no route, and there is no default.
        """
        try:
            said = await decided(self.classify, request, "classifier")
        except InferenceFailure as error:
            if self.default is None:
                raise
            _log.warning("the classifier failed, and the route %r is taken: %s", self.default, error)
            return Route(self.routes[self.default], {"name": self.default})
        name = said.route if isinstance(said, Decision) else said
        if not isinstance(name, str) or name not in self.routes:  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
            if self.default is None:
                raise UserError(f"the classifier said {name!r}, which is no route; there are {self._names()}")
            name = self.default
        note: dict[str, JSON] = {"name": name}
        if isinstance(said, Decision) and said.by is not None:
            note["by"] = said.by
        return Route(self.routes[name], note)

    async def aclose(self) -> None:
        """Let go of what the engines hold, and of the classifier's."""
        close = getattr(self.classify, "aclose", None)
        try:
            await super().aclose()
        finally:
            if close is not None:
                await close()

    def _names(self) -> str:
        return ", ".join(map(repr, self.routes))


def by_classifier(
    routes: Mapping[str, str | Engine],
    classify: Classify,
    *,
    default: str | None = None,
    registry: Registry = DEFAULT,
) -> ClassifierRouter:
    """Models by name, of which a classifier names one for each request.

    Args:
        routes: model strings or engines, by the names that the classifier gives.
        classify: a function of the request that gives a name, sync or async; or a `ModelClassifier`.
        default: the route for a name that is none of these, and for a classifier that fails.
        registry: where model strings are looked up.

    Raises:
        UserError: there is no route, or the default or the classifier names one that is not there.
        ConfigurationFailure: there is no such model (see `Registry.resolve`).
    """
    return ClassifierRouter(routes, classify, default, registry)

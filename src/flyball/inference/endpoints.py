"""Endpoints: models under names of one's own, each with its limit, shared by all who name it.

A name is looked up exactly, then as an alias, then the default is taken, if there is one. An alias stands for
an endpoint, never for another alias: what a name means can be seen in one place.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from flyball.core.clock import Clock
from flyball.core.errors import UnknownModel, UserError
from flyball.inference.engine import Engine
from flyball.inference.gate import Gate
from flyball.inference.limiting import behind
from flyball.inference.registry import DEFAULT, Registry, resolve_engine
from flyball.inference.window import Limit


class Endpoint(Struct, frozen=True):
    """A model, and how much it may be asked; None is no limit."""

    model: str | Engine
    requests_per_minute: int | None = None
    max_concurrent: int | None = None
    tokens_per_minute: int | None = None
    min_delay: float | None = None

    def __post_init__(self) -> None:
        _ = self.limit  # which refuses what is no limit

    @property
    def limit(self) -> Limit:
        """How much it may be asked."""
        return Limit(self.requests_per_minute, self.max_concurrent, self.tokens_per_minute, self.min_delay)


class Endpoints:
    """Models by name. Whoever asks for one by any of its names gets the same engine, behind the same gate."""

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        *,
        aliases: Mapping[str, str] | None = None,
        default: str | None = None,
        registry: Registry = DEFAULT,
        clock: Clock | None = None,
    ) -> None:
        """Make them; an engine is made when it is first asked for.

        Args:
            endpoints: by name.
            aliases: other names, each for an endpoint.
            default: the endpoint for names that are none of these.
            registry: where model strings are looked up.
            clock: tells the time, for tests.

        Raises:
            UserError: an alias or the default names no endpoint, or an alias is an endpoint's own name.
        """
        self._endpoints = dict(endpoints)
        self._aliases = dict(aliases or {})
        self._default = default
        self._registry = registry
        self._clock = clock
        self._engines: dict[str, Engine] = {}
        for alias, name in self._aliases.items():
            if alias in self._endpoints:
                raise UserError(f"{alias!r} is an endpoint, and cannot be an alias too")
            if name in self._aliases:
                raise UserError(
                    f"the alias {alias!r} stands for the alias {name!r}: let it name an endpoint, one of "
                    f"{self._names()}"
                )
            self._check(name, f"the alias {alias!r} stands for")
        if default is not None:
            self._check(default, "the default is")

    def __getitem__(self, name: str) -> Engine:
        """The engine for a name: exact, alias, default.

        Raises:
            UnknownModel: it is none of them.
            ConfigurationFailure: its engine cannot be made (see `Registry.resolve`).
        """
        found = name if name in self._endpoints else self._aliases.get(name, self._default)
        if found is None:
            raise self._unknown(name)
        engine = self._engines.get(found)
        if engine is None:
            endpoint = self._endpoints[found]
            gate = Gate(endpoint.limit, self._clock)
            self._engines[found] = engine = behind(gate, resolve_engine(endpoint.model, self._registry))
        return engine

    def _check(self, name: str, what: str) -> None:
        if name not in self._endpoints:
            raise UserError(f"{what} {name!r}, which is no endpoint; there are {self._names()}")

    def _names(self) -> str:
        return ", ".join(map(repr, self._endpoints)) or "none"

    def _unknown(self, name: str) -> UnknownModel:
        from difflib import get_close_matches

        known = [*self._endpoints, *self._aliases]
        there = ", ".join(map(repr, known)) or "none"
        return UnknownModel(
            f"there is no endpoint {name!r}, and no default; there are {there}",
            providers=known,
            near=get_close_matches(name, known),
        )

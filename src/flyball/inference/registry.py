"""From a model string to the engine that answers for it.

Engines are found by their provider's name through entry points of the group `flyball.engines`, each a
function from a `ModelRef` to an `Engine`; nothing imports them before they are asked for. A `Registry` is
never changed after it was made: one with other engines in it is another registry.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

from flyball.core.errors import (
    ConfigurationFailure,
    FlyballError,
    MissingExtra,
    MissingKey,
    NoEngine,
    UnknownModel,
    UserError,
)
from flyball.inference.engine import Engine
from flyball.inference.model_string import OPENAI_COMPATIBLE, PROVIDERS, ModelRef, parse_model

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "flyball.engines"
"""The entry points' group."""

EngineFactory: TypeAlias = Callable[[ModelRef], Engine]

EXTRAS: Mapping[str, str] = {
    "local": "local",
    "openai": "openai",
    "anthropic": "anthropic",
    "google": "google",
    "vertex": "google",
    "vertex-anthropic": "google",
    "azure": "openai",
    "openrouter": "openai",
    "ollama": "openai",
    "vllm": "openai",
    "llama-cpp": "openai",
    "lm-studio": "openai",
    OPENAI_COMPATIBLE: "openai",
}
"""Which extra of flyball brings what a provider's engine needs."""


def _test_engine(ref: ModelRef) -> Engine:
    from flyball.inference.scripted import engine_for

    return engine_for(ref)


class Registry:
    """The engines that can be had: those given here, then those that installed packages register."""

    def __init__(self, engines: Mapping[str, EngineFactory] | None = None, *, installed: bool = True) -> None:
        """Make one.

        Args:
            engines: factories by provider; they go before installed ones.
            installed: whether to look at entry points too.
        """
        self._given = {"test": _test_engine, **(engines or {})}
        self._look = installed

    @property
    def providers(self) -> tuple[str, ...]:
        """The providers whose names may stand in a model string, installed or not."""
        names = (*PROVIDERS, *self._given, *self._installed)
        return tuple(dict.fromkeys(name for name in names if name != OPENAI_COMPATIBLE))

    def resolve(self, model: str | Engine | None) -> Engine:
        """The engine for a model string; an engine is given back as it is.

        Raises:
            NoEngine: there is no model.
            UnknownModel: the string cannot be read, or names no known provider.
            MissingExtra: the provider is known and what its engine needs is not installed.
            MissingKey: the provider's key is not set.
            ConfigurationFailure: the engine could not be made; the message says why.
            UserError: it is neither a string nor an engine.
        """
        if isinstance(model, str):
            return self._make(self._read(model))
        if isinstance(model, Engine):
            return model
        if model is None:
            raise NoEngine("no model is set: name one ('local', 'openai:gpt-5') or pass an engine")
        lacking = [name for name in ("infer", "stream", "model_info") if not hasattr(model, name)]
        raise UserError(
            f"a {type(model).__name__} is neither a model string nor an engine: it has no {lacking}"
        )

    def _read(self, model: str) -> ModelRef:
        try:
            return parse_model(model, (*PROVIDERS, *self._given))
        except UnknownModel:
            # Looking at what is installed takes milliseconds: only for names that are not known without it.
            return parse_model(model, self.providers)

    def _make(self, ref: ModelRef) -> Engine:
        try:
            engine = self._factory(ref.provider)(ref)
        except FlyballError:
            raise
        except ImportError as error:
            raise _import_failure(ref, error) from error
        except Exception as error:
            raise ConfigurationFailure(
                f"the engine for {ref.provider!r} could not be made: {type(error).__name__}: {error}",
                provider=ref.provider,
            ) from error
        if not isinstance(engine, Engine):  # pyright: ignore[reportUnnecessaryIsInstance] - it comes from another package
            raise ConfigurationFailure(
                f"the factory for {ref.provider!r} gave a {type(engine).__name__}, which is no engine",
                provider=ref.provider,
            )
        return engine

    def _factory(self, provider: str) -> EngineFactory:
        given = self._given.get(provider)
        if given is not None:
            return given
        points = self._installed.get(provider, {})
        if len(points) > 1:
            raise ConfigurationFailure(
                f"more than one installed package brings an engine for {provider!r}: "
                f"{', '.join(sorted(points))}. Uninstall all but one, or pass the engine itself",
                provider=provider,
            )
        for point in points.values():
            return point.load()
        raise _missing(provider, f"no engine for {provider!r} is installed")

    @cached_property
    def _installed(self) -> Mapping[str, Mapping[str, EntryPoint]]:
        """Entry points by provider, then by what they point to: a path that is seen twice counts once."""
        if not self._look:
            return {}
        from importlib.metadata import entry_points

        found: dict[str, dict[str, EntryPoint]] = {}
        for point in entry_points(group=GROUP):
            found.setdefault(point.name, {})[point.value] = point
        return found


DEFAULT = Registry()
"""What `resolve_engine` looks at: the engines of the installed packages."""


def resolve_engine(model: str | Engine | None, registry: Registry = DEFAULT) -> Engine:
    """The engine for a model string; see `Registry.resolve` for what it raises."""
    return registry.resolve(model)


def require_key(provider: str, *env_names: str) -> str:
    """The provider's key from the first of these environment variables that is set.

    Raises:
        MissingKey: none is set; the message names the variables, and never a value.
    """
    for name in env_names:
        key = os.environ.get(name, "").strip()
        if key:
            return key
    raise MissingKey(
        f"no key for {provider!r}: set the environment variable {' or '.join(env_names)}",
        provider=provider,
        variables=list(env_names),
    )


def _import_failure(ref: ModelRef, error: ImportError) -> ConfigurationFailure:
    module = error.name or ""
    if module.partition(".")[0] == "flyball":
        return ConfigurationFailure(
            f"the engine for {ref.provider!r} is registered and not there: {error}", provider=ref.provider
        )
    return _missing(
        ref.provider, f"the engine for {ref.provider!r} needs {module or error!s}, which is not installed"
    )


def _missing(provider: str, wrong: str) -> ConfigurationFailure:
    extra = EXTRAS.get(provider)
    remedy = f"pip install 'flyball[{extra}]'" if extra else "install what its package asks for"
    return MissingExtra(f"{wrong}: {remedy}", provider=provider, extra=extra)

"""fallback: a model, and others for where it fails.

    model = fallback("openai:gpt-5", "anthropic:claude-sonnet-4-5", "local")

Rules kept here:
- the models are asked in the order given, each call from the first;
- an answer's `model` says who gave it, and its `extra` who had failed before (`flyball.inference.attempts`);
- where all failed, the error names each with its cause.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterable

from flyball.core.errors import AllModelsFailed, InferenceFailure, UserError
from flyball.inference.attempts import Attempts
from flyball.inference.engine import Engine
from flyball.inference.notes import ATTEMPTS
from flyball.inference.registry import DEFAULT, Registry
from flyball.inference.request import Request, Result
from flyball.inference.retry_policy import retry_after
from flyball.inference.retrying import may_pass
from flyball.inference.several import SeveralEngines
from flyball.inference.stream import StreamEvent
from flyball.inference.trying import asked, streamed

_log = logging.getLogger("flyball.models")


class FallbackEngine(SeveralEngines):
    """Engines that are asked one after the other until one answers."""

    kind = "fallback"

    def __init__(
        self,
        models: Iterable[str | Engine],
        when: Callable[[Exception], bool] | None = None,
        registry: Registry = DEFAULT,
    ) -> None:
        """`when` says after which failures the next one is asked; else see `the_models_fault`."""
        super().__init__(models, registry)
        if when is not None and not callable(when):
            raise UserError(f"when= takes a function of an error, not {when!r}")
        self.when = when or the_models_fault

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`.

        Raises:
            AllModelsFailed: they did.
        """
        return await asked(_InOrder(self), request)

    def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`; an answer that broke off begins again with the next model, after a `Restart`.

        Raises:
            AllModelsFailed: they did.
        """
        return streamed(_InOrder(self), request)


class _InOrder:
    """The tries of one call: one a model."""

    __slots__ = ("_errors", "_number", "_wrapper", "attempts")

    def __init__(self, wrapper: FallbackEngine) -> None:
        self.attempts = Attempts()
        self._wrapper = wrapper
        self._number = 0
        self._errors: list[Exception] = []

    @property
    def engine(self) -> Engine:
        return self._wrapper.engines[self._number]

    async def after(self, error: Exception, *, shown: bool) -> None:
        if not self._wrapper.when(error):
            raise self.attempts.on_error(error)
        name = self.engine.model_info().name
        self.attempts.failed(name, error)
        self._errors.append(error)
        if self._number + 1 == len(self._wrapper.engines):
            raise self._all_failed() from error
        self._number += 1
        _log.warning(
            "the model %r failed, and %r is asked in its place%s: %s",
            name,
            self.engine.model_info().name,
            ", from the beginning" if shown else "",
            error,
        )

    def _all_failed(self) -> AllModelsFailed:
        """All failures as one, which may pass where one of them may: the soonest that one of them says."""
        told = zip(self._wrapper.engines, self._errors, strict=True)
        each = [f"{engine.model_info().name}: {error}" for engine, error in told]
        passing = [error for error in self._errors if may_pass(error)]
        waits = [wait for error in passing if (wait := retry_after(error)) is not None]
        details = {"retry_after": min(waits)} if waits and len(waits) == len(passing) else {}
        return AllModelsFailed(
            f"all {len(each)} models failed: {'; '.join(each)}",
            retryable=bool(passing),
            **{ATTEMPTS: self.attempts.told()},
            **details,
        )


def the_models_fault(error: Exception) -> bool:
    """Whether it is the model's or its server's failure, which another may not have."""
    return isinstance(error, InferenceFailure | OSError)


def fallback(
    first: str | Engine,
    second: str | Engine,
    *more: str | Engine,
    when: Callable[[Exception], bool] | None = None,
    registry: Registry = DEFAULT,
) -> FallbackEngine:
    """A model, and others that are asked where it fails, one after the other.

    Args:
        first: a model string, or an engine.
        second: who is asked where the first one fails.
        more: and so on.
        when: says of a failure whether the next one is asked; by default any InferenceFailure, and a
            connection that an engine did not tell as one. What it refuses is raised as it is.
        registry: where model strings are looked up.

    Raises:
        UserError: `when` is no function.
        ConfigurationFailure: there is no such model (see `Registry.resolve`).
    """
    return FallbackEngine((first, second, *more), when, registry)

"""by_threshold: one model below a number, another from there on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from math import isfinite
from typing import TypeAlias

from msgspec.structs import replace

from flyball.core.errors import UserError
from flyball.inference.engine import Engine
from flyball.inference.estimating import input_tokens
from flyball.inference.profile import Profile, profile_for
from flyball.inference.registry import DEFAULT, Registry
from flyball.inference.request import Request
from flyball.inference.routing.router import Route, RouterEngine, decided

Score: TypeAlias = Callable[[Request], "float | Awaitable[float]"]
"""Gives a request a number; sync or async."""


class ThresholdRouter(RouterEngine):
    """Asks one model where a request's score is below a number, and another where it is not.

    Its profile is what both can do. Where the score is the length of the request, what is long goes to the
    second: the context window is then that one's.
    """

    kind = "by_threshold"

    def __init__(
        self,
        below: str | Engine,
        above: str | Engine,
        at: float,
        score: Score | None = None,
        registry: Registry = DEFAULT,
    ) -> None:
        super().__init__((below, above), registry)
        if isinstance(at, bool) or not isinstance(at, int | float) or not isfinite(at):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"at= takes the number from which the second model is asked, not {at!r}")
        if score is not None and not callable(score):
            raise UserError(f"score= takes a function of a request, not {score!r}")
        self.at = at
        self.score = score

    @property
    def profile(self) -> Profile:
        """What both can do; the window is that of the second where long requests go there."""
        both = super().profile
        if self.score is not None:
            return both
        return replace(both, context_window=profile_for(self.engines[1]).context_window)

    async def choose(self, request: Request) -> Route:
        """See `RouterEngine.choose`.

        Raises:
            UserError: the score is no number.
        """
        score = await decided(self.score or input_tokens, request, "score of a request")
        if isinstance(score, bool) or not isinstance(score, int | float) or score != score:  # noqa: PLR0124  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UserError(f"the score of a request is a number, not {score!r}")
        below = score < self.at
        return Route(self.engines[0 if below else 1], {"name": "below" if below else "above", "score": score})


def by_threshold(
    below: str | Engine,
    above: str | Engine,
    *,
    at: float,
    score: Score | None = None,
    registry: Registry = DEFAULT,
) -> ThresholdRouter:
    """A model for requests whose score is below a number, and another for the rest.

    Args:
        below: a model string, or an engine.
        above: the other one, which is asked where the score is `at` or more.
        at: the number.
        score: gives a request a number; by default an estimate of its tokens.
        registry: where model strings are looked up.

    Raises:
        UserError: `at` is no number, or `score` no function.
        ConfigurationFailure: there is no such model (see `Registry.resolve`).
    """
    return ThresholdRouter(below, above, at, score, registry)

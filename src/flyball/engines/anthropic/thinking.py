"""How a model is to think, as `models` says that it can be told.

    what is set                    is sent as
    thinking=True                  adaptive; a budget of `BUDGET` where it thinks with one only
    thinking_budget=n              that budget; adaptive where it takes none
    thinking=False                 what switches it off; the least effort where nothing does
    reasoning_effort=word          `effort`; nothing where it takes none
    nothing                        nothing: it does as it does

Who asks for thoughts is shown them, in summary: the newest models hide them otherwise.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.settings import ModelSettings
from flyball.engines.anthropic.models import Traits, traits_of

BUDGET = 8_192
"""Tokens to think with, for a model that has to be told."""
LEAST = 1_024
"""The smallest budget that there is."""
USUAL = 20_000
"""Tokens of an answer, where nobody said how long it may be: the API wants to be told."""
LONG = 21_333
"""Tokens that take ten minutes to write: for more, the vendor's own client insists on a stream."""

_ON_ONLY = ("xhigh", "max")
"""Efforts that no model makes without thinking."""


class Thinking(Struct, frozen=True):
    """What to send. `on`: the model may think, so that it cannot be made to call a tool."""

    on: bool
    config: dict[str, Any] | None = None
    effort: str | None = None
    max_tokens: int = USUAL


def thinking_of(settings: ModelSettings, traits: Traits, *, forced: bool, broken: bool) -> Thinking:
    """How to think, and how many tokens that and the answer may take.

    Args:
        settings: what was asked for.
        traits: what the model takes.
        forced: somebody says that a tool must be called; thinking that was not asked for gives way to that.
        broken: the turn that goes on was begun without thoughts, which a model with a budget refuses.
    """
    most = min(USUAL, traits.most) if settings.max_tokens is None else settings.max_tokens
    effort = _effort(settings, traits)
    silent = Thinking(on=False, effort=effort, max_tokens=most)
    wanted = settings.thinking_budget is not None or settings.thinking is True
    if wanted and traits.budget and (settings.thinking_budget is not None or not traits.adaptive):
        return silent if broken else _budgeted(settings, traits, silent)
    if wanted and traits.adaptive:
        return replace(silent, on=True, config={"type": "adaptive", "display": "summarized"})
    if wanted or not traits.thinks:
        return silent
    if settings.thinking is False or (forced and traits.forced):
        if traits.off is None:
            return replace(silent, on=True, effort=effort or "low")
        return replace(silent, config={"type": traits.off}, effort="high" if effort in _ON_ONLY else effort)
    return replace(silent, on=True)


def takes_long(settings: ModelSettings, model: str) -> bool:
    """Whether a model may write for so long that nobody should wait for all of it in silence."""
    told = thinking_of(settings, traits_of(model), forced=False, broken=False).max_tokens
    most: Any = (settings.options or {}).get("max_tokens", told)
    return isinstance(most, int) and most > LONG


def _budgeted(settings: ModelSettings, traits: Traits, silent: Thinking) -> Thinking:
    budget = max(BUDGET if settings.thinking_budget is None else settings.thinking_budget, LEAST)
    most = silent.max_tokens
    if settings.max_tokens is None:
        # The thoughts count as part of the answer: it is given room for both.
        most = min(budget + most, traits.most)
    if budget >= most:
        # How long an answer may be is a limit, and a budget a wish.
        budget = most // 2
    if budget < LEAST:
        return silent
    return replace(silent, on=True, config={"type": "enabled", "budget_tokens": budget}, max_tokens=most)


def _effort(settings: ModelSettings, traits: Traits) -> str | None:
    if not traits.effort:
        return None
    return "low" if settings.reasoning_effort == "minimal" else settings.reasoning_effort

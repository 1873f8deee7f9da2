"""Limits and settings as a user passed them: numbers that can be meant."""

from __future__ import annotations

from math import isfinite
from typing import Any

from msgspec import Struct

from flyball.core.errors import UserError
from flyball.core.limits import Limits, UsageLimits, UsageQuota
from flyball.core.settings import ModelSettings


def sensible_limits(given: Any) -> Limits:
    """Limits that can be kept.

    Raises:
        UserError: naming the one that cannot, and what it may be.
    """
    if not isinstance(given, Limits):
        raise UserError(f"limits= takes Limits(...), not {given!r}")
    usage, quota, timeout = given.usage, given.quota, given.timeout
    if not isinstance(usage, UsageLimits):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's
        raise UserError(f"Limits(usage=) takes UsageLimits(...), not {usage!r}")
    if quota is not None and not isinstance(quota, UsageQuota):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(f"Limits(quota=) takes UsageQuota(...), not {quota!r}")
    for name in ("max_iterations", "repeated_calls", "calls_per_turn", "max_depth"):
        _whole(given, name, 0)
    _whole(given, "max_concurrency", 1, optional=False)
    for name in usage.__struct_fields__:
        _whole(usage, name, 0)
    for name in () if quota is None else quota.__struct_fields__:
        _whole(quota, name, 0, optional=False)
    sensible_timeout(timeout, "Limits(timeout=)")
    return given


def sensible_timeout(given: Any, what: str = "timeout=") -> float | None:
    """A time-out that can be kept, in seconds; None is none.

    Raises:
        UserError: it is no such number.
    """
    if given is not None and not (_is_number(given) and given > 0):
        raise UserError(f"{what} takes seconds, more than 0, not {given!r}; None is no limit")
    return given


def sensible_count(name: str, given: Any) -> int:
    """How often something may be, from 0 on.

    Raises:
        UserError: it is no such number.
    """
    if type(given) is not int or given < 0:
        raise UserError(f"{name}= takes a number from 0, not {given!r}")
    return given


def sensible_settings(given: Any) -> ModelSettings:
    """Settings that a model can be asked for.

    Raises:
        UserError: naming the one that it cannot.
    """
    if not isinstance(given, ModelSettings):
        raise UserError(f"settings= takes ModelSettings(...), not {given!r}")
    _whole(given, "max_tokens", 1)
    _whole(given, "thinking_budget", 1)
    for name in ("temperature", "top_p"):
        value = getattr(given, name)
        if value is not None and not (_is_number(value) and value >= 0):
            raise UserError(f"ModelSettings({name}=) takes a number from 0, not {value!r}")
    effort: Any = given.reasoning_effort
    if effort is not None and (not isinstance(effort, str) or not effort):
        raise UserError(f"ModelSettings(reasoning_effort=) takes text, such as 'low', not {effort!r}")
    return given


def _whole(given: Struct | None, name: str, least: int, *, optional: bool = True) -> None:
    value = getattr(given, name)
    if (value is None and optional) or (type(value) is int and value >= least):
        return
    without = "; None is no limit" if optional else ""
    raise UserError(
        f"{type(given).__name__}({name}=) takes a whole number from {least}, not {value!r}{without}"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)

"""Where a run's values for templates come from: its dependencies, and nowhere else."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from inspect import isawaitable
from typing import Any, Protocol, cast, runtime_checkable

from flyball.core.errors import DepsError


@runtime_checkable
class TemplateVars(Protocol):
    """Dependencies that have values for templates: have it on the type of your deps."""

    def template_vars(self) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
        """The values, by the names of the variables. More than a template has do no harm."""
        ...


async def values_of(deps: object, wanted: str) -> Mapping[str, Any]:
    """The values that dependencies give: they are a mapping, or have `template_vars()`.

    `wanted` says who asks, and for what.

    Raises:
        DepsError: there are none, or they are neither.
    """
    kind, given = type(deps).__name__, cast("Any", deps)
    if not isinstance(deps, Mapping) and isinstance(deps, TemplateVars):
        given = deps.template_vars()
        if isawaitable(given):
            given = await given
    if isinstance(given, Mapping):
        return cast("Mapping[str, Any]", given)
    if deps is None:
        raise DepsError(f"{wanted}, and the run has no deps: pass a mapping, or what has template_vars()")
    if given is not deps:
        raise DepsError(f"{wanted}, and template_vars() of the {kind} gave no mapping, but {given!r:.100}")
    raise DepsError(f"{wanted}, and the run's deps are a {kind}: pass a mapping, or what has template_vars()")

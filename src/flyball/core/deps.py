"""Deps: the dependencies of an agent, for all its runs that are given none of their own."""

from __future__ import annotations

from typing import Any

from flyball.core.errors import UserError
from flyball.core.feature import Feature


class Deps(Feature):
    """What an agent's functions and tools get as `ctx.deps`, unless a run brings its own by `deps=`.

    They are never recorded and do not travel: they are those of the process in which a function runs. Where
    workers carry an agent's loops on, that is their agent's, or what the workers were bound with.
    """

    name = "deps"

    def __init__(self, value: Any) -> None:
        if value is None:
            raise UserError("Deps takes what functions get as ctx.deps: without it they get None anyway")
        self.value = value

    def __repr__(self) -> str:
        return f"Deps({type(self.value).__name__})"  # what it is may hold secrets

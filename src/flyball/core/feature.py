"""Feature: something that is put onto an agent, and that has its say at one place of a loop (or at several).

A feature is a small object that is passed in `Agent(features=[...])`. What it is decides where it is asked:
an `InputGuardrail` before the first turn, a `RunCondition` after each answer, and so on. Each kind is a class
of its own, in the package where it belongs; an object of several kinds is asked in several places.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flyball.core.errors import UserError


class Feature:
    """What may stand in `Agent(features=[...])`. `name` is what it is called in journals and errors."""

    name: str = ""


class FunctionFeature(Feature):
    """A feature that is one function, which may be async: use its class as a decorator, or pass the function.

    The name is the function's, unless another is given.
    """

    def __init__(self, check: Callable[..., Any], name: str | None = None) -> None:
        if not callable(check):
            raise UserError(f"{type(self).__name__} takes a function, not {check!r}")
        self.check = check
        self.name = name or getattr(check, "__name__", type(check).__name__)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"

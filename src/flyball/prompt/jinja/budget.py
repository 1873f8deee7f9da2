"""Budget: how much work one filling of a template may still do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, cast

from jinja2.runtime import Context, Undefined

from flyball.core.errors import TemplateError

KEY = "\0budget"
"""Where a context has its budget: no template can write that name."""


class Budget:
    """Steps that are left. Spending more than there are ends the template."""

    __slots__ = ("allowed", "left")

    def __init__(self, steps: int) -> None:
        self.allowed = self.left = steps

    def spend(self, steps: int) -> None:
        """Take some steps.

        Raises:
            TemplateError: there are not so many left.
        """
        self.left -= steps
        if self.left < 0:
            raise TemplateError(
                f"it is too much work: more than {self.allowed:,} steps. Loop over less, or raise max_steps",
                allowed=self.allowed,
            )


def budget_of(context: Context) -> Budget:
    """The budget of a filling."""
    return cast("Budget", context.vars.get(KEY) or context.parent[KEY])


def size(value: Any) -> int:
    """How much work it is to go through a value once, at the least 1."""
    if isinstance(value, Undefined):
        return 1
    if isinstance(value, str | bytes | Sequence | Mapping | Set):
        return 1 + len(cast("str", value))
    if isinstance(value, int):
        return 1 + value.bit_length() // 64
    return 1

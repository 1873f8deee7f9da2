"""WorkingMemory: what a turn works with, and forgets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


class WorkingMemory:
    """What a turn has come to so far: what its steps gave, and what was looked up for it.

    It belongs to one turn of one conversation, and is not shared between threads.

    Args:
        step_results: what steps gave, by their names.
        context: what was looked up, in the order in which it is told.
    """

    __slots__ = ("context", "step_results")

    def __init__(self, step_results: Mapping[str, Any] | None = None, context: Iterable[Any] = ()) -> None:
        self.step_results: dict[str, Any] = dict(step_results or {})
        self.context: list[Any] = list(context)

    def reset(self, *, keep_context: bool = False) -> None:
        """Forget it, for the next turn; the context may stay."""
        self.step_results.clear()
        if not keep_context:
            self.context.clear()

    def __repr__(self) -> str:
        return f"<WorkingMemory {len(self.step_results)} results, {len(self.context)} in context>"

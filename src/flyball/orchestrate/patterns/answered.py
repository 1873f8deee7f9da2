"""Answered: what a pattern that asks an agent once comes to."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from flyball.core.usage import RunUsage
from flyball.orchestrate.result import RunResult


class Answered(Struct, frozen=True, eq=False):
    """An answer: its text as the model gave it, what it was read as, and the run that led to it."""

    content: str
    output: Any
    usage: RunUsage
    run: RunResult[Any]

    @property
    def loop_id(self) -> str:
        """The loop that gave the answer."""
        return self.run.loop_id

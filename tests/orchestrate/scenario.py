"""Scenario: a run of an agent as one row of a table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from flyball import Agent


@dataclass(frozen=True)
class Scenario:
    """A run: how the agent is made, what it is asked, and what comes of it."""

    name: str
    make: Callable[[], Agent[Any, Any]]
    output: Any = None
    code: str = ""
    """The code of the error that it ends with; none if it ends well."""
    prompt: Any = "go"
    options: dict[str, Any] = field(default_factory=dict[str, Any])

    def __repr__(self) -> str:
        return self.name

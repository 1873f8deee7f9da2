"""The options of commands that drive a run: which code it takes, and how it is shown."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from flyball.core.errors import UserError

if TYPE_CHECKING:
    from flyball.orchestrate.contracts import ExecutionHints

MODEL = "FLYBALL_MODEL"
DEADLINE = 120.0
"""Seconds that a run has where nobody says otherwise, and nobody at a terminal may be waited for."""


@Parameter(name="*")
@dataclass(frozen=True)
class Driven:
    """Which model, tools and type a run takes, and how it is shown."""

    model: Annotated[str | None, Parameter(name=["--model", "-m"])] = None
    """The model: local, local:NAME, openai:NAME, ...; without it the run's own, FLYBALL_MODEL, or local."""
    tools: tuple[str, ...] = ()
    """Tools that the model may use, as module or module:name; may be given several times."""
    output: str | None = None
    """A type that the answer must have, as module:Type."""
    yes: bool = False
    """Approve all calls to tools that need approval."""
    quiet: Annotated[bool, Parameter(name=["--quiet", "-q"])] = False
    """Leave out the last line, with tokens, time and the run's id."""
    mcp: tuple[str, ...] = ()
    """MCP servers whose tools it may use: a command, an address, a JSON file; may be given several times."""


DRIVEN = Driven()


def default_model() -> str:
    """The model where none is named: that of the environment, or the embedded one."""
    return os.environ.get(MODEL) or "local"


def settings(max_tokens: int | None, temperature: float | None, deadline: float) -> ExecutionHints:
    """The options that are about each answer, as a request has them.

    Raises:
        UserError: one of them cannot be.
    """
    from flyball.orchestrate.contracts import ExecutionHints

    if max_tokens is not None and max_tokens < 1:
        raise UserError(f"--max-tokens {max_tokens}: give a number from 1; leave it out for the model's own")
    if temperature is not None and not 0 <= temperature < math.inf:
        raise UserError(f"--temperature {temperature:g}: give a number from 0, which is the least free")
    return ExecutionHints(max_tokens=max_tokens, timeout=seconds(deadline), temperature=temperature)


def seconds(deadline: float) -> float | None:
    """A deadline as a time-out; 0 is none.

    Raises:
        UserError: it is no number of seconds.
    """
    if not 0 <= deadline < math.inf:
        raise UserError(f"--deadline {deadline:g}: give seconds, or 0 for none")
    return deadline or None

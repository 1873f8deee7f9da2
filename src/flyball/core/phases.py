"""The phases of a request: pagantic's eight. Their edges and paths are in `orchestrate.lifecycle`."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """The phases of pagantic, in their order."""

    INIT = "init"
    """The request was received; its envelope is checked, its input admitted."""
    PLAN = "plan"
    """A plan is made."""
    PREPARE = "prepare"
    """Context, tools, schema and grammar are brought together."""
    EXECUTE = "execute"
    """The loop runs: model calls, tool calls, inner loops."""
    VALIDATE = "validate"
    """The answer is parsed and checked."""
    COMPLETE = "complete"
    """There is an answer."""
    ERROR = "error"
    """It failed; the error says in which category."""
    CANCELLED = "cancelled"
    """Somebody cancelled it, or its time was up."""

    @property
    def is_terminal(self) -> bool:
        """Whether nothing follows, but an explicit retry."""
        return self in (Phase.COMPLETE, Phase.ERROR, Phase.CANCELLED)

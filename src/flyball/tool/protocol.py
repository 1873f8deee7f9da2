"""Tool: what the loop needs of a tool."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

from flyball.core.context import RunContext
from flyball.core.tools import ToolSpec


@runtime_checkable
class Tool(Protocol):
    """A tool: data that describes it, and code that runs it.

    `wants_context` says whether `run` needs a RunContext; making one costs, so others get None.
    """

    @property
    def spec(self) -> ToolSpec:
        """What the loop records: the definition and the policy."""
        ...

    @property
    def wants_context(self) -> bool:
        """Whether `run` reads its context."""
        ...

    async def run(self, args_json: str, context: RunContext[Any] | None) -> object:
        """Run one call. Whatever it returns is made encodable by the caller.

        Raises:
            ModelRetry: the model should call again, with what the message says put right.
            CallDeferred: the result comes later, from outside.
            Exception: anything else; the model reads it as the call's error.
        """
        ...

    async def available(self, context: RunContext[Any]) -> bool | str:
        """Whether it can work now: True, or False, or the reason why not."""
        ...

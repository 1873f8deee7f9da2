"""Tools around other tools: each changes one thing and leaves the rest to the tool inside."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.tools import ToolDefinition, ToolSpec
from flyball.tool.options import Availability, check_name
from flyball.tool.protocol import Tool

Predicate: TypeAlias = Callable[[RunContext[Any], ToolDefinition], bool | Awaitable[bool]]
"""Says of a tool whether the model may see it in this turn."""


class WrappedTool:
    """A tool that is another one in all things; those below change one."""

    __slots__ = ("inner", "run", "spec", "wants_context")

    def __init__(self, inner: Tool, spec: ToolSpec) -> None:
        self.inner = inner
        self.spec = spec
        self.wants_context = inner.wants_context
        # The inner one's own method: a wrapper costs a call nothing.
        self.run = inner.run

    async def available(self, context: RunContext[Any]) -> Availability:
        """What the tool inside says."""
        return await self.inner.available(context)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.spec.definition.name} of {self.inner!r}>"


class RenamedTool(WrappedTool):
    """A tool under another name."""

    __slots__ = ()

    def __init__(self, inner: Tool, name: str) -> None:
        definition = replace(inner.spec.definition, name=check_name(name))
        super().__init__(inner, replace(inner.spec, definition=definition))


class FilteredTool(WrappedTool):
    """A tool that is there only where a predicate holds; asked before each turn."""

    __slots__ = ("predicate",)

    def __init__(self, inner: Tool, predicate: Predicate) -> None:
        super().__init__(inner, replace(inner.spec, checks_availability=True))
        self.predicate = predicate

    async def available(self, context: RunContext[Any]) -> Availability:
        """What the tool inside says, if the predicate holds."""
        answer = self.predicate(context, self.spec.definition)
        if not (await answer if inspect.isawaitable(answer) else answer):
            return False
        return await self.inner.available(context)

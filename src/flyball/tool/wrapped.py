"""Tools around other tools: each changes one thing and leaves the rest to the tool inside."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.feature import Feature
from flyball.core.tools import ToolDefinition, ToolSpec
from flyball.tool.options import Availability, check_name
from flyball.tool.protocol import Tool

if TYPE_CHECKING:
    from flyball.tool.preparing import ToolPrepare
    from flyball.tool.truncation import ToolOutputTruncation
    from flyball.tool.validating import ResultValidator

Predicate: TypeAlias = Callable[[RunContext[Any], ToolDefinition], bool | Awaitable[bool]]
"""Says of a tool whether the model may see it in this turn."""


class Brings(Struct, frozen=True, eq=False):
    """What a toolset brings to the agents that have one of its tools."""

    toolset: str
    instructions: tuple[Any, ...] = ()
    """Text, or functions that give it when a run begins."""
    features: tuple[Feature, ...] = ()


class WrappedTool:
    """A tool that is another one in all things; those below change one."""

    __slots__ = ("brings", "inner", "prepare", "run", "spec", "validators", "wants_context")

    def __init__(self, inner: Tool, spec: ToolSpec) -> None:
        self.inner = inner
        self.spec = spec
        self.wants_context = inner.wants_context
        # The inner one's own method: a wrapper costs a call nothing.
        self.run = inner.run
        self.prepare: ToolPrepare | None = getattr(inner, "prepare", None)
        self.validators: tuple[ResultValidator, ...] = getattr(inner, "validators", ())
        self.brings: tuple[Brings, ...] = getattr(inner, "brings", ())

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


class MemberTool(WrappedTool):
    """A tool of a toolset that brings something along: whoever has the tool has that too."""

    __slots__ = ()

    def __init__(self, inner: Tool, brings: Brings) -> None:
        super().__init__(inner, inner.spec)
        self.brings = (*self.brings, brings)


class LimitedTool(WrappedTool):
    """A tool whose calls have a time-out."""

    __slots__ = ()

    def __init__(self, inner: Tool, timeout: float) -> None:
        super().__init__(inner, replace(inner.spec, timeout=timeout))


class ValidatedTool(WrappedTool):
    """A tool whose results others look at, after its own validators."""

    __slots__ = ()

    def __init__(self, inner: Tool, validators: tuple[ResultValidator, ...]) -> None:
        from flyball.tool.validating import validated

        super().__init__(inner, inner.spec)
        self.wants_context = True
        self.run = validated(inner.run, validators)


class TruncatedTool(WrappedTool):
    """A tool whose results are cut where they are too long."""

    __slots__ = ()

    def __init__(self, inner: Tool, truncation: ToolOutputTruncation) -> None:
        tokens = min(truncation.max_tokens, inner.spec.result_tokens or truncation.max_tokens)
        super().__init__(inner, replace(inner.spec, result_tokens=tokens))
        self.run = truncation.around(inner.run)


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

"""Guards: who looks again whether a call may run, at the moment when it is about to.

A filter decides about a turn's calls before any of them runs. A call may wait after that: for approval, for
others of its turn, for a worker. What held then may not hold any more.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol, runtime_checkable

from flyball.core.context import RunContext
from flyball.tool.errors import CallDenied
from flyball.tool.protocol import Tool
from flyball.tool.wrapped import WrappedTool


@runtime_checkable
class Guard(Protocol):
    """A tool filter that looks again when a call is about to run, wherever that is."""

    def guards(self, tool: str) -> bool:
        """Whether it looks at calls of a tool."""
        ...

    async def refusal(self, context: RunContext[Any], tool: str) -> str:
        """Why a call of a tool may not run now; empty if it may. The context is the call's own."""
        ...


class GuardedTool(WrappedTool):
    """A tool whose calls run only if its guards let them, each time anew."""

    __slots__ = ("_guards",)

    def __init__(self, inner: Tool, guards: tuple[Guard, ...]) -> None:
        super().__init__(inner, inner.spec)
        self._guards = guards
        self.wants_context = True
        self.run = self._run

    async def _run(self, args_json: str, context: RunContext[Any] | None) -> object:
        assert context is not None, "it wants its context"
        for guard in self._guards:
            if reason := await guard.refusal(context, self.spec.definition.name):
                raise CallDenied(reason)
        return await self.inner.run(args_json, context if self.inner.wants_context else None)


def guarded(tool: Tool, filters: Iterable[object]) -> Tool:
    """The tool with those filters around it that look again; the same one where none does."""
    name = tool.spec.definition.name
    guards = tuple([one for one in filters if isinstance(one, Guard) and one.guards(name)])
    return GuardedTool(tool, guards) if guards and not tool.spec.outside else tool

"""Ambient context: the run and the call, for code that lies deep beneath a tool and is passed no context.

A tool that takes a `RunContext` can hand it down. Where that is not possible (a logger, a client library's
callback), `AmbientContext()` in an agent's features makes it the context of all that a tool call does:
`current_context()`, `run_id()` and `tool_call_id()` find it, in tasks and threads that the call begins, too.
An agent without it pays nothing.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

from flyball.core.context import RunContext
from flyball.core.feature import Feature
from flyball.tool.protocol import Tool
from flyball.tool.wrapped import WrappedTool

_current: ContextVar[RunContext[Any] | None] = ContextVar("flyball_context", default=None)


class AmbientContext(Feature):
    """Makes each tool call's context known to whatever the call does."""

    name = "ambient_context"

    def __repr__(self) -> str:
        return "AmbientContext()"


class AmbientTool(WrappedTool):
    """A tool whose calls run within their context."""

    __slots__ = ()

    def __init__(self, inner: Tool) -> None:
        super().__init__(inner, inner.spec)
        self.wants_context = True
        self.run = self._run

    async def _run(self, args_json: str, context: RunContext[Any] | None) -> object:
        token = _current.set(context)
        try:
            return await self.inner.run(args_json, context if self.inner.wants_context else None)
        finally:
            _current.reset(token)


def current_context() -> RunContext[Any] | None:
    """The context of the tool call that this code runs in; None outside one, or without `AmbientContext`."""
    return _current.get()


def run_id() -> str:
    """The id of the run whose tool call this code runs in, or an empty text."""
    context = _current.get()
    return "" if context is None else context.run_id


def tool_call_id() -> str:
    """The id of the tool call that this code runs in, or an empty text."""
    context = _current.get()
    return "" if context is None else context.tool_call_id

"""A tool whose calls find the agent's event bus in their context."""

from __future__ import annotations

from typing import Any

from flyball.core.context import Bus, RunContext
from flyball.tool.protocol import Tool
from flyball.tool.wrapped import WrappedTool


class PublishingTool(WrappedTool):
    """A tool that reads its context, with `ctx.event_bus` in it. A bus does not travel: it is put in here."""

    __slots__ = ("_bus",)

    def __init__(self, inner: Tool, bus: Bus) -> None:
        super().__init__(inner, inner.spec)
        self._bus = bus
        self.run = self._run

    async def _run(self, args_json: str, context: RunContext[Any] | None) -> object:
        if context is not None:
            context.event_bus = self._bus
        return await self.inner.run(args_json, context)

"""A tool whose calls can hand on what their run may do."""

from __future__ import annotations

from typing import Any

from flyball.core.context import RunContext
from flyball.tool.protocol import Tool
from flyball.tool.wrapped import WrappedTool


class ActingTool(WrappedTool):
    """A tool that reads its context, with `ctx.acting` in it. Keys do not travel: it is put in here."""

    __slots__ = ("_acting",)

    def __init__(self, inner: Tool, acting: Any) -> None:
        super().__init__(inner, inner.spec)
        self._acting = acting
        self.run = self._run

    async def _run(self, args_json: str, context: RunContext[Any] | None) -> object:
        if context is not None:
            context.acting = self._acting
        return await self.inner.run(args_json, context)

"""Absent: the engine of a system that only reads what is recorded."""

from __future__ import annotations

from collections.abc import AsyncIterator

from flyball.core.errors import NoEngine
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent


class Absent:
    """Stands where an engine would, and cannot be asked."""

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        raise NoEngine("the system has no model: it can only tell what is recorded")

    async def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """See `Engine.stream`."""
        await self.infer(request)
        yield  # pyright: ignore[reportReturnType] - it never comes so far

    def model_info(self) -> ModelInfo:
        """See `Engine.model_info`."""
        return ModelInfo("absent")

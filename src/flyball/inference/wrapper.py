"""WrapperEngine: an engine around another. Who overrides nothing has the engine itself."""

from __future__ import annotations

from collections.abc import AsyncIterator

from flyball.inference.engine import Engine
from flyball.inference.profile import Profile, profile_for
from flyball.inference.rendered import Renders
from flyball.inference.request import ModelInfo, Request, Result
from flyball.inference.stream import StreamEvent


class WrapperEngine:
    """Passes everything on. It is a `Renders` exactly where the engine inside is one."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        if isinstance(engine, Renders):
            self.rendered = engine.rendered

    @property
    def profile(self) -> Profile:
        """What the model can do."""
        return profile_for(self.engine)

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        return await self.engine.infer(request)

    def stream(self, request: Request) -> AsyncIterator[StreamEvent]:
        """See `Engine.stream`."""
        return self.engine.stream(request)

    def model_info(self) -> ModelInfo:
        """Which model answers."""
        return self.engine.model_info()

    async def aclose(self) -> None:
        """Let go of what the engine holds."""
        close = getattr(self.engine, "aclose", None)
        if close is not None:
            await close()

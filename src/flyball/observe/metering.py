"""An engine whose calls trackers hear of, as each answer comes. All else is the engine's own."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator

from flyball.core.usage import CallUsage, Usage
from flyball.inference.engine import Engine
from flyball.inference.request import Request, Result
from flyball.inference.stream import Finish, StreamEvent, close_stream
from flyball.inference.wrapper import WrapperEngine
from flyball.observe.cost import CostTracker


class MeteredEngine(WrapperEngine):
    """An engine, and who hears of its calls. One that gave pieces and broke off, or was left, used nobody
    knows how much; one that failed before it gave anything is not counted.

    `asked` and `provider` are the model as loops record it: so a call is priced here as it is from a journal.
    """

    def __init__(
        self, engine: Engine, trackers: tuple[CostTracker, ...], asked: str, provider: str = ""
    ) -> None:
        super().__init__(engine)
        self.trackers = trackers
        self.asked = asked
        self.provider = provider

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        result = await self.engine.infer(request)
        if isinstance(result, Result):  # pyright: ignore[reportUnnecessaryIsInstance] - anybody's code
            self._heard(result.message.model, result.message.usage)
        return result

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`."""
        pieces = self.engine.stream(request)
        heard = True
        try:
            async for piece in pieces:
                heard = False
                if type(piece) is Finish:
                    heard = True
                    self._heard(piece.model, piece.usage)
                yield piece
        finally:
            if not heard:
                self._heard(None, None)
            await close_stream(pieces)

    def _heard(self, model: str | None, usage: Usage | None) -> None:
        call = CallUsage(time.time(), model, usage, self.asked, self.provider)
        for tracker in self.trackers:
            tracker.note(call)


def metered(engine: Engine, trackers: tuple[CostTracker, ...], asked: str, provider: str = "") -> Engine:
    """An engine whose calls these hear of, and nobody else; the engine itself where there are none."""
    engine = unmetered(engine)
    if not trackers:
        return engine
    return MeteredEngine(engine, trackers, asked, provider)


def unmetered(engine: Engine) -> Engine:
    """The engine behind a metered one; any other as it is."""
    return engine.engine if isinstance(engine, MeteredEngine) else engine

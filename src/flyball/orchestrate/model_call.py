"""One model call, made in pieces, for whoever hands the pieces on to another process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any

from flyball.core.events import ModelAnswered, ModelFailed
from flyball.inference.engine import Engine
from flyball.inference.request import Request
from flyball.inference.stream import Assembler, StreamEvent
from flyball.orchestrate.awaiting import is_cancelled
from flyball.orchestrate.performers import model_answered, model_failed
from flyball.orchestrate.streaming import close_source, partial_of


async def infer_in_pieces(
    engine: Engine, request: Request, turn: int, now: Any
) -> AsyncGenerator[StreamEvent | ModelAnswered | ModelFailed]:
    """Call the model: the pieces of its answer as they come, and last the event that is to be recorded.

    It raises for nothing that the model does wrong: that is an event too. Closing it early ends the call.
    """
    began, joined = now(), Assembler()
    source: AsyncIterator[StreamEvent] | None = None
    try:
        try:
            source = engine.stream(request)
            async for event in source:
                joined.feed(event)
                yield event
            ended: ModelAnswered | ModelFailed = model_answered(
                joined.result(), turn, began, now(), source=source
            )
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            ended = model_failed(error, turn, began, now(), partial_of(joined))
        except Exception as error:
            ended = model_failed(error, turn, began, now(), partial_of(joined))
    finally:
        if source is not None:
            await close_source(source)
    yield ended

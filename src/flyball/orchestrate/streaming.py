"""Driving a loop while its model calls are streamed: the pieces pass by, the finished message is recorded.

The caller pulls: the loop goes as far as it is read, and a slow reader slows the model down. A signal or the
deadline ends a stream that is owed no longer, whether the reader waits in it or holds a piece just then.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from flyball.core.effects import Infer
from flyball.inference.stream import Assembler, StreamEvent
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.performers import model_answered, model_failed
from flyball.orchestrate.requests import request_of


async def stream(drive: Drive) -> AsyncIterator[StreamEvent]:
    """Run the loop to its end; gives the pieces of the model's answers as they come."""
    while not drive.done:
        effect = await drive.next_inference()
        if effect is None:
            continue
        assembler = Assembler()
        feed = assembler.feed
        began = drive.clock.now()
        source = drive.bindings.engine.stream(request_of(drive.state, effect, drive.parts))
        task = asyncio.current_task()
        assert task is not None
        before = task.cancelling()
        drive.effect = effect
        drive.task = task
        try:
            async for event in source:
                feed(event)
                # While the reader holds a piece, its task is its own: it must not be cancelled from here.
                drive.task = None
                yield event
                if drive.interrupted:
                    break
                drive.task = task
            else:
                drive.task = None
                _finish(drive, effect, assembler, began)
        except asyncio.CancelledError:
            if not drive.interrupted or task.uncancel() > before:
                raise
        except Exception as error:
            drive.take(model_failed(error, effect.turn, began, drive.clock.now(), _partial(assembler)))
        finally:
            drive.effect = drive.task = None
            drive.interrupted = False
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()
    await drive.flush()
    drive.close()


def _finish(drive: Drive, effect: Infer, assembler: Assembler, began: float) -> None:
    drive.take(model_answered(assembler.result(), effect.turn, began, drive.clock.now()))


def _partial(assembler: Assembler):  # noqa: ANN202
    message = assembler.message()
    return message if message.parts else None

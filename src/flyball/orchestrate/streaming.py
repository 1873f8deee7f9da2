"""Driving a loop while its model calls are streamed: the pieces pass by, the finished message is recorded.

The caller pulls: the loop goes as far as it is read, and a slow reader slows the model down. A signal or the
deadline ends a stream that is owed no longer, whether the reader waits in it or holds a piece just then.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, Literal, overload

from flyball.core.errors import StreamRestarted, UserError
from flyball.core.messages import Message
from flyball.inference.stream import Assembler, Restart, StreamEvent, TextDelta
from flyball.inference.text import TextReader, text_in
from flyball.orchestrate.awaiting import is_cancelled
from flyball.orchestrate.driver import Drive
from flyball.orchestrate.performers import model_answered, model_failed
from flyball.orchestrate.requests import request_of
from flyball.orchestrate.result import failure
from flyball.orchestrate.tasks import current_task

_log = logging.getLogger("flyball.stream")


@overload
def stream(drive: Drive, before: AsyncGenerator[Any] | None) -> AsyncGenerator[StreamEvent]: ...
@overload
def stream(
    drive: Drive, before: AsyncGenerator[Any] | None, *, only_text: Literal[True]
) -> AsyncGenerator[str]: ...
async def stream(
    drive: Drive, before: AsyncGenerator[Any] | None, *, only_text: bool = False
) -> AsyncGenerator[Any]:
    """Run the loop to its end; gives the pieces of the model's answers as they come, or just their text.

    `before` is a former reading of the same loop, which ends here.

    Raises:
        UserError: another task is reading just now.
        StreamRestarted: an answer began again with other text than was given out.
        FlyballError: the run's own failure, at its end.
    """
    if before is not None:
        if is_running(before):
            raise UserError("a stream is read by one reader at a time, and another task is reading this one")
        await before.aclose()
    loop = asyncio.get_running_loop()
    while not drive.done:
        drive.enter()
        effect = await drive.next_inference()
        if effect is None:
            continue
        drive.answering = assembler = Assembler()
        feed, now = assembler.feed, drive.clock.now
        began = now()
        source: AsyncIterator[StreamEvent] | None = None
        again: TextReader | None = None
        restarted: StreamRestarted | None = None
        drive.effect = effect
        if drive.shared:
            drive.look_out()
        task = drive.task
        try:
            source = drive.bindings.engine.stream(request_of(drive.state, effect, drive.parts))
            async for event in source:
                piece: StreamEvent | str = event
                if only_text and type(event) is TextDelta and again is None:
                    piece = event.text
                    feed(event)
                elif only_text:
                    if type(event) is Restart:
                        again = again or TextReader(assembler.message().text)
                    try:
                        piece = text_in(event, assembler.begun) if again is None else again.feed(event)
                    except StreamRestarted as error:
                        restarted = error  # it is the reader's, and nothing that the model did wrong
                        break
                    feed(event)
                    if not piece:
                        continue
                else:
                    feed(event)
                # While the reader holds a piece its task is its own: it must not be cancelled from here.
                drive.task = None
                yield piece
                if drive.interrupted:
                    break
                # The next piece may be asked for by another task.
                if task is not current_task(loop):
                    drive.enter()
                    task = drive.task
                drive.task = task
            else:
                answer = model_answered(assembler.result(), effect.turn, began, now(), source=source)
                drive.take(answer)
        except asyncio.CancelledError as error:
            if not drive.is_interruption():
                if is_cancelled():
                    raise
                drive.take(model_failed(error, effect.turn, began, now(), partial_of(assembler)))
        except Exception as error:
            drive.take(model_failed(error, effect.turn, began, now(), partial_of(assembler)))
        finally:
            drive.effect = None
            if drive.interrupted:
                drive.is_interruption()
            if source is not None:
                await close_source(source)
        if restarted is not None:
            raise restarted
    await drive.flush()
    drive.close()
    if (error := failure(drive.state, drive.journal, drive.bindings.tracker, drive.trace)) is not None:
        raise error


def is_running(reading: AsyncGenerator[Any]) -> bool:
    """Whether some task is inside it just now."""
    return bool(getattr(reading, "ag_running", False))


def partial_of(assembler: Assembler) -> Message | None:
    """What had come of an answer that broke off, if that is anything."""
    try:
        message = assembler.message()
    except Exception:  # the pieces are no text: there is nothing to show
        return None
    return message if message.parts else None


async def close_source(source: AsyncIterator[StreamEvent]) -> None:
    """Close an engine's stream, if it can be closed."""
    close = getattr(source, "aclose", None)
    if close is None:
        return
    try:
        await close()
    except Exception:
        # The answer stands, or nobody wants it any more: how the connection ends changes neither.
        _log.debug("an engine's stream could not be closed", exc_info=True)

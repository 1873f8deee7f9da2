"""The pieces of the answers of several loops as one stream, one answer at a time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable

from flyball.core.messages import assistant
from flyball.inference.cut import events_of
from flyball.inference.stream import Finish, Restart, StreamEvent
from flyball.orchestrate.contracts import SystemResponse
from flyball.orchestrate.flow.doing import Hear

_LAST = (Finish, Restart)
"""What ends an answer: it is whole, or void. Whoever goes on after that takes a turn anew."""


class OneAtATime:
    """Puts pieces in order: whoever begins first is heard to the end of its answer, and the others wait.

    So a reader may put the pieces together as those of one loop, also where steps run side by side.
    """

    def __init__(self) -> None:
        self._ready: deque[StreamEvent] = deque()
        self._speaker = ""
        self._waiting: dict[str, list[StreamEvent]] = {}

    def hear(self, loop_id: str, piece: StreamEvent) -> None:
        """Take a piece."""
        if self._speaker and self._speaker != loop_id:
            self._waiting.setdefault(loop_id, []).append(piece)
            return
        self._speaker = loop_id
        self._ready.append(piece)
        if type(piece) in _LAST:
            self._give_turn()

    def _give_turn(self) -> None:
        self._speaker = ""
        while self._waiting and not self._speaker:
            loop_id = next(iter(self._waiting))
            held = self._waiting.pop(loop_id)
            for index, piece in enumerate(held):
                self._ready.append(piece)
                if type(piece) in _LAST and index + 1 < len(held):
                    self._waiting[loop_id] = held[index + 1 :]  # its next answer takes its turn anew
                    break
            else:
                self._speaker = "" if type(held[-1]) in _LAST else loop_id

    def flush(self) -> None:
        """Give the turn to all who still wait: nobody says any more."""
        while self._waiting:
            self._give_turn()

    def ready(self) -> deque[StreamEvent]:
        """The pieces that may be told by now. Whoever asks takes them out."""
        return self._ready


async def told_in_pieces(
    serve: Callable[[Hear | None], Awaitable[SystemResponse]], *, whole: bool
) -> AsyncGenerator[StreamEvent | SystemResponse]:
    """The pieces of what is served, as they come, and last the response.

    With `whole` the answers on the way are not told, and that of the response comes in one piece: where many
    are asked the same, only one of them counts. Closing it early stops what is served; it stays as recorded.
    """
    order, stirred = OneAtATime(), asyncio.Event()

    def hear(loop_id: str, piece: StreamEvent) -> None:
        order.hear(loop_id, piece)
        stirred.set()

    serving = asyncio.ensure_future(serve(None if whole else hear))
    serving.add_done_callback(lambda _: stirred.set())
    try:
        while not serving.done() or order.ready():
            while order.ready():
                yield order.ready().popleft()
            if not serving.done():
                await stirred.wait()
                stirred.clear()
            if serving.done():
                order.flush()
        response = await serving
    finally:
        if not serving.done():
            serving.cancel()
            await asyncio.wait([serving])
    if whole and response.content:
        for piece in events_of(assistant(response.content)):
            yield piece
    yield response

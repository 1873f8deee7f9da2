"""The text of answers, read from stream events by somebody who can or cannot take back what was read."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Container

from flyball.core.errors import StreamRestarted
from flyball.core.messages import Text
from flyball.inference.stream import Finish, PartEnd, PartStart, Restart, StreamEvent, TextDelta, close_stream


class TextReader:
    """Gives each event's text, once: what an answer that begins again repeats is passed over.

    Whoever joins what `feed` gives has, at each `Finish`, the text of the answers so far; or StreamRestarted.
    """

    __slots__ = ("_begun", "_given", "_repeated")

    def __init__(self, given: str = "") -> None:
        self._begun: set[int] = set()
        self._given: list[str] = [given] if given else []
        """What was given of the answer that is open."""
        self._repeated: int | None = None
        """How much of that has come again since a Restart; None while there is nothing to repeat."""

    def feed(self, event: StreamEvent) -> str:
        """The text that is new with this event; empty where there is none.

        Raises:
            StreamRestarted: the answer, begun again, has other text than was given.
        """
        if type(event) is Finish:
            if self._repeated is not None:
                raise self._restarted()  # it is shorter than what was given
            self._given.clear()
            self._begun.clear()
            return ""
        if type(event) is Restart:
            self._begun.clear()
            self._repeated = 0 if self._given else None
            return ""
        text = text_in(event, self._begun)
        self._begun.add(event.index)
        return self._new(text) if text else ""

    def _new(self, text: str) -> str:
        if self._repeated is not None:
            given = "".join(self._given)
            self._given = [given]  # so that joining it again costs nothing
            start, end = self._repeated, self._repeated + len(text)
            if not text.startswith(given[start:end]):
                raise self._restarted()
            self._repeated = end if end < len(given) else None
            text = text[len(given) - start :] if end > len(given) else ""
        if text:
            self._given.append(text)
        return text

    def _restarted(self) -> StreamRestarted:
        return StreamRestarted(
            "the model call was made again and gave other text than was read of it: drop what is in "
            "details['void'] and read anew, or read events() or text(delta=False), which tell what is void",
            void="".join(self._given),
        )


def text_in(event: StreamEvent, begun: Container[int]) -> str:
    """The text that an event brings; `begun` are the numbers of the answer's parts that began before it."""
    if type(event) is TextDelta:
        return event.text
    if type(event) is PartStart and type(event.part) is Text:
        return event.part.text
    if type(event) is PartEnd and type(event.part) is Text and event.index not in begun:
        return event.part.text
    return ""


async def text_pieces(events: AsyncGenerator[StreamEvent]) -> AsyncGenerator[str]:
    """The text of answers, piece by piece.

    Raises:
        StreamRestarted: an answer began again with other text than was given.
    """
    reader = TextReader()
    try:
        async for event in events:
            text = reader.feed(event)
            if text:
                yield text
    finally:
        await close_stream(events)


async def text_so_far(events: AsyncGenerator[StreamEvent]) -> AsyncGenerator[str]:
    """All the text so far, each time there is more of it; or less, where an answer begins again."""
    finished: list[str] = []
    said: list[str] = []
    begun: set[int] = set()
    shown = ""
    try:
        async for event in events:
            text = text_in(event, begun)
            if not isinstance(event, Finish | Restart):
                begun.add(event.index)
            if text:
                said.append(text)
                shown = "".join([*finished, *said])
                yield shown
            elif type(event) is Restart:
                said.clear()
                begun.clear()
            elif type(event) is Finish:
                finished += said
                said.clear()
                begun.clear()
                if shown != (whole := "".join(finished)):
                    shown = whole
                    yield shown
    finally:
        await close_stream(events)

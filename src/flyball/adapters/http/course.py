"""What is told of one loop: a chain of frames that its followers go along, each at its own pace.

Nobody waits for anybody: for who is slow nothing is kept but its place in the chain. Of an answer that is
recorded the pieces are kept as a few large ones, for those who come later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from typing import TypeAlias

from msgspec.structs import replace

from flyball.adapters.http.frames import HEARTBEAT, told
from flyball.adapters.http.position import Position, Return, Tally, ends_answer
from flyball.core.events import ModelAnswered
from flyball.inference.cut import events_of
from flyball.inference.stream import StreamEvent, TextDelta
from flyball.orchestrate.followed import Recorded

Item: TypeAlias = Recorded | StreamEvent

_BATCH = 64 * 1024
"""Bytes that are given to a follower at once, and the frame that goes beyond them."""
_SOME = 64
"""Pieces that are put together, once there are so many."""


class Node:
    """A frame, and what comes after it."""

    __slots__ = ("data", "item", "next", "position")

    def __init__(self, item: Item | None, position: Position, data: bytes) -> None:
        self.item = item
        self.position = position
        self.data = data
        self.next: Node | None = None


class Course:
    """What is told of one loop after its event number `base`, to all who follow it from there or later on."""

    def __init__(self, base: int) -> None:
        self.base = base
        self.over = False
        self.followers = 0
        self.joined = 0
        """How often somebody came to it."""
        self.reading: asyncio.Task[None] | None = None
        self._last = Node(None, Position(base), b"")
        self._events = {base: self._last}
        """The frame of each event, by its number."""
        self._answer = self._last
        """The frame after which the answer under way begins, or the next one will."""
        self._begun = {base: self._last}
        """The same, as it was with each event: somebody may speak in the middle of an answer."""
        self._whole, self._pieces = self._last, 0
        """The frame up to which pieces were put together, and how many came since."""
        self._tally = Tally(base)
        self._ticks = 0
        self._bell = asyncio.Event()

    def tell(self, item: Item) -> None:
        """One thing more."""
        if not isinstance(item, Recorded):
            position = self._tally.piece(item)
            self._append(Node(item, position, told(item, str(position))))
            self._pieces += 1
            if self._pieces > _SOME:
                self._put_together()
            return
        before = self._tally.position
        position = self._tally.event(item.number, item.event)
        node = Node(item, position, told(item, str(position)))
        if isinstance(item.event, ModelAnswered) and ends_answer(item.event):
            self._shorten(before.number, item.event, node)
        self._events[item.number] = node
        if not (position.characters or position.closed):
            self._answer = node
        self._begun[item.number] = self._answer
        self._append(node)
        self._whole, self._pieces = node, 0

    def end(self, last: bytes) -> None:
        """Nothing more will be told but this."""
        self.over = True
        self._append(Node(None, self._tally.position, last))

    def tick(self) -> None:
        """Some time has passed: who was told nothing is told that all is well."""
        self._ticks += 1
        self._ring()

    def _append(self, node: Node) -> None:
        self._last.next = self._last = node
        self._ring()

    def _ring(self) -> None:
        self._bell.set()
        self._bell = asyncio.Event()

    def _put_together(self) -> None:
        """Put a few pieces in the place of the newest, all but one; who is among them goes on."""
        at, node = self._whole, self._whole.next
        while node is not None and node is not self._last:
            texts: list[str] = []
            while (more := _text_after(node, texts, self._last)) is not None:
                node = more
            piece, data = node.item, node.data
            if texts and isinstance(piece, TextDelta):
                piece = TextDelta(piece.index, "".join([*texts, piece.text]))
                data = told(piece, str(node.position))
            at.next = at = Node(piece, node.position, data)
            node = node.next
        at.next = self._last
        self._whole, self._pieces = at, 1

    def _shorten(self, number: int, event: ModelAnswered, then: Node) -> None:
        """Put a few pieces in the place of those of an answer that is recorded; who is among them goes on."""
        at = self._events[number]
        if at is self._last or at is not self._answer:
            return  # there are none, or the answer had begun before that event
        tally = Tally(number)
        for piece in events_of(event.message):
            position = tally.piece(piece)
            at.next = at = Node(piece, position, told(piece, str(position)))
        at.next = then

    async def follow(self, start: Position) -> AsyncGenerator[bytes]:
        """What is told after a position, in batches; a heartbeat where nothing is for long."""
        at = self._begun.get(start.number)
        if at is None:  # it knows of an event that was not told here yet
            at = self._answer if start.number > self.base else self._events[self.base]
        follower, ticks = _Follower(start, at.position.number), self._ticks
        while True:
            batch: list[bytes] = []
            size = 0
            while at.next is not None and size < _BATCH:
                at = at.next
                for data in follower.take(at):
                    batch.append(data)
                    size += len(data)
            if batch:
                ticks = self._ticks
                yield b"".join(batch)
            elif at.next is not None:
                continue
            elif self.over:
                return
            elif ticks != self._ticks:
                ticks = self._ticks
                yield HEARTBEAT
            else:
                await self._bell.wait()


class _Follower:
    """What somebody who comes at a position is told, of the frames from the beginning of an answer on."""

    __slots__ = ("_back", "_held", "_number", "_reached")

    def __init__(self, start: Position, number: int) -> None:
        self._number = start.number
        self._reached = number >= start.number
        self._back = Return(start)
        self._held: list[Node] = []
        """Pieces of an answer, before it is known whether it was under way at that position."""

    def take(self, node: Node) -> Iterable[bytes]:
        """What of a frame is told."""
        if not self._reached:
            return self._catch_up(node)
        return _given(self._back, node) if self._back.waits else (node.data,)

    def _catch_up(self, node: Node) -> Iterator[bytes]:
        item = node.item
        if item is not None and not isinstance(item, Recorded):
            self._held.append(node)
            return
        if isinstance(item, Recorded):
            if ends_answer(item.event):
                self._held.clear()  # it was told, with that event
            if item.number < self._number:
                return
        self._reached = True
        for one in self._held:
            assert one.item is not None, "it is a piece"
            position = replace(one.position, number=self._number)
            yield from self.take(Node(one.item, position, told(one.item, str(position))))
        if item is None:
            yield node.data


def _text_after(node: Node, texts: list[str], last: Node) -> Node | None:
    """The frame after one, if it has more of the same text and is not the last; then the text is taken."""
    piece, after = node.item, node.next
    if after is None or after is last:
        return None
    if type(piece) is not TextDelta or type(after.item) is not TextDelta or after.item.index != piece.index:
        return None
    texts.append(piece.text)
    return after


def _given(back: Return, node: Node) -> Iterator[bytes]:
    """What of a frame is told to somebody who came back in the middle of an answer."""
    item = node.item
    if item is None or isinstance(item, Recorded):
        if item is None or ends_answer(item.event):
            yield from _anew(back.give_up(), node.position.number - (item is not None))
        yield node.data
        return
    pieces = list(back.take(item))
    if len(pieces) == 1:
        yield told(pieces[0], str(node.position))  # what is left of it ends where all of it does
    else:
        yield from _anew(pieces, node.position.number)


def _anew(pieces: Iterable[StreamEvent], number: int) -> Iterator[bytes]:
    """An answer that is told from its beginning."""
    tally = Tally(number)
    for piece in pieces:
        position = tally.piece(piece)
        yield told(piece, str(position))

"""Who follows loops: each loop is read and written down once, however many follow it.

What is told of a loop is a chain of frames that its followers go along, each at its own pace. Nobody waits
for anybody: for who is slow nothing is kept but its place in the chain. The pieces of an answer are kept as
larger ones for those who come later: some at a time while it is told, and all of it once it is recorded.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Iterator
from contextlib import aclosing
from typing import TypeAlias

from msgspec.structs import replace

from flyball.adapters.http.frames import HEARTBEAT, Over, failed, frame, told
from flyball.adapters.http.position import Position, Return, Tally, ends_answer
from flyball.adapters.http.problems import unexpected
from flyball.core.events import ModelAnswered, Stage
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


class Hub:
    """The loops that are followed just now, and for a while after the last has gone.

    Args:
        follow: what happens in a loop from an event's number on; see `Runtime.follow`.
        stage: the stage that a loop is in.
        heartbeat: seconds after which somebody who was told nothing is told that all is well.
        linger: seconds for which a loop is read on that nobody follows any more. Pieces of an answer pass by
            once: who comes back meanwhile has them.
    """

    def __init__(
        self,
        follow: Callable[[str, int], AsyncGenerator[Item]],
        stage: Callable[[str], Awaitable[Stage]],
        heartbeat: float = 15.0,
        linger: float = 0.0,
    ) -> None:
        self._follow = follow
        self._stage = stage
        self._heartbeat = heartbeat
        self._linger = linger
        self._courses: dict[str, list[Course]] = {}
        self._ticking: asyncio.Task[None] | None = None

    async def follow(self, loop_id: str, start: Position) -> AsyncGenerator[bytes]:
        """What is told of a loop after a position, as server-sent events, until it is over."""
        course = self._join(loop_id, start.number)
        try:
            async with aclosing(course.follow(start)) as batches:
                async for batch in batches:
                    yield batch
        finally:
            self._leave(loop_id, course)

    def expect(self, loop_id: str) -> None:
        """Read a loop from its beginning on: somebody is going to follow it."""
        if self._linger:
            self._leave(loop_id, self._join(loop_id, 0))

    def forget(self, loop_id: str) -> None:
        """Nobody is going to follow it after all."""
        for course in [one for one in self._courses.get(loop_id, ()) if not one.followers]:
            self._drop(loop_id, course)

    def close(self) -> None:
        """Read no more."""
        for loop_id, courses in list(self._courses.items()):
            for course in list(courses):
                self._drop(loop_id, course)

    def _join(self, loop_id: str, number: int) -> Course:
        courses = self._courses.setdefault(loop_id, [])
        course = next((one for one in courses if one.base <= number and not one.over), None)
        if course is None:
            course = Course(number)
            courses.append(course)
            course.reading = asyncio.create_task(self._read(loop_id, course))
        course.followers += 1
        course.joined += 1
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        return course

    def _leave(self, loop_id: str, course: Course) -> None:
        course.followers -= 1
        if course.followers:
            return
        if not self._linger or course.over:
            self._drop(loop_id, course)
            return
        later = asyncio.get_running_loop()
        later.call_later(self._linger, self._drop_unless_joined, loop_id, course, course.joined)

    def _drop_unless_joined(self, loop_id: str, course: Course, joined: int) -> None:
        if not course.followers and course.joined == joined:
            self._drop(loop_id, course)

    def _drop(self, loop_id: str, course: Course) -> None:
        courses = self._courses.get(loop_id, [])
        if course not in courses:
            return
        courses.remove(course)
        if not courses:
            del self._courses[loop_id]
        if course.reading is not None:
            course.reading.cancel()
        if not self._courses and self._ticking is not None:
            self._ticking.cancel()
            self._ticking = None

    async def _read(self, loop_id: str, course: Course) -> None:
        try:
            async with aclosing(self._follow(loop_id, course.base)) as items:
                async for item in items:
                    course.tell(item)
            course.end(frame("over", Over(loop_id, await self._stage(loop_id))))
        except Exception as error:
            course.end(failed(unexpected(error).record()))
        if not course.followers:
            self._drop(loop_id, course)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(self._heartbeat)
            for courses in self._courses.values():
                for course in courses:
                    course.tick()

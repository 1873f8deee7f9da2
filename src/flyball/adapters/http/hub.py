"""Who follows loops: each loop is read and written down once (`course`), however many follow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from flyball.adapters.http.course import Course, Item
from flyball.adapters.http.frames import Over, failed, frame
from flyball.adapters.http.position import Position
from flyball.adapters.http.problems import unexpected
from flyball.core.events import Stage

EVERY = 5.0
"""Seconds after which a stream that has nothing to tell says so: who follows soon sees if nobody is there."""


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
        heartbeat: float = EVERY,
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

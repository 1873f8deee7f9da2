"""A loop that is followed: what is told of it as it comes, and what is asked about it when something came."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import aclosing

from flyball.adapters.tui.client import Client
from flyball.adapters.tui.connection import Unreachable
from flyball.adapters.tui.transcript import Transcript
from flyball.core.errors import FlyballError
from flyball.orchestrate.family import WaitingCall
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.projections.course import CourseStep
from flyball.orchestrate.projections.summary import LoopSummary

_LOOK = 2.0
"""Seconds after which it is asked again how a loop stands: what happens under it is not told here."""
_REST = 0.2
_MOST = 5.0
"""Seconds between two looks, at least and at most."""
_SOME = 200
"""Events after which others have their turn."""


class Following:
    """Follows one loop. `changed` is called when what is asked of it has come, `failed` with what is wrong.

    It goes on until the loop is over and all was asked about it; cancelling it leaves the loop alone.
    """

    def __init__(
        self,
        client: Client,
        loop_id: str,
        *,
        changed: Callable[[], None],
        failed: Callable[[FlyballError], None],
        name: str = "",
        course: bool = False,
    ) -> None:
        """`course`: whether the steps are wanted. `name` parts the transcripts that are shown together."""
        self.loop_id = loop_id
        self.transcript = Transcript(name)
        self.summary: LoopSummary | None = None
        self.steps: tuple[CourseStep, ...] = ()
        self.waiting: tuple[WaitingCall, ...] = ()
        self.is_over = False
        self._client = client
        self._changed = changed
        self._failed = failed
        self._course = course
        self._news = asyncio.Event()
        self._ended = asyncio.Event()

    async def run(self) -> None:
        """Follow it to its end."""
        looking = asyncio.ensure_future(self._look_on())
        try:
            await self._follow()
            self.is_over = True
            self._ended.set()
            self._news.set()
            await looking
        except FlyballError as error:
            self._failed(error)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)

    def hurry(self) -> None:
        """Something was said to the loop: ask at once how it stands."""
        self._news.set()

    async def _follow(self) -> None:
        feed, count = self.transcript.feed, 0
        async with aclosing(self._client.follow(self.loop_id)) as items:
            async for item in items:
                feed(item)
                if isinstance(item, Recorded):
                    self._news.set()
                count += 1
                if not count % _SOME:
                    await asyncio.sleep(0)

    async def _look_on(self) -> None:
        while True:
            over, began = self.is_over, time.monotonic()
            self._news.clear()
            try:
                await self._look()
                self._changed()
                if over:
                    return
            except Unreachable:
                pass
            except FlyballError as error:
                self._failed(error)
                return
            # A long loop takes its time to be told: it is not asked for more often than that is sensible.
            # One that took long as the server was away says nothing of that; and the end is told at once.
            await self._rest(min(3 * (time.monotonic() - began), _MOST))
            try:
                await asyncio.wait_for(self._news.wait(), _LOOK)
            except TimeoutError:
                pass

    async def _rest(self, seconds: float) -> None:
        await asyncio.sleep(_REST)
        try:
            await asyncio.wait_for(self._ended.wait(), seconds - _REST)
        except TimeoutError:
            pass

    async def _look(self) -> None:
        client, loop_id = self._client, self.loop_id
        self.summary = await client.loop(loop_id)
        self.waiting = () if self.is_over else await client.waiting(loop_id)
        if self._course:
            self.steps = await client.course(loop_id)

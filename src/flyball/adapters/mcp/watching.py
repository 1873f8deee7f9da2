"""What happens in a run, and in those under it, while somebody waits for its answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing

from flyball.adapters.mcp.approving import key_of
from flyball.core.errors import FlyballError
from flyball.core.events import ChildStarted
from flyball.observe.events import (
    RuntimeEvent,
    StepStartedEvent,
    ToolCalledEvent,
    ToolEndedEvent,
    TurnStartedEvent,
)
from flyball.orchestrate.calls import awaits_approval
from flyball.orchestrate.family import WaitingCall, waiting_calls
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.machines import AnyState
from flyball.orchestrate.projections.runtime_events import narrator_of
from flyball.orchestrate.service import Service
from flyball.orchestrate.state import State


class Watch:
    """Follows a run, and those that begin under it.

    Args:
        service: where it is followed.
        loop_id: the run, which need not be there yet.
        tell: called with each step, in words.
    """

    def __init__(self, service: Service, loop_id: str, tell: Callable[[str], Awaitable[None]] | None) -> None:
        self._service = service
        self._loop_id = loop_id
        self._tell = tell
        self._waited: set[str] = set()
        self.waiting: dict[str, WaitingCall] = {}
        """The calls that wait for a person, by key."""
        self.news = asyncio.Event()
        """Set when others wait than before."""

    async def run(self) -> None:
        """Follow it to its end."""
        async with asyncio.TaskGroup() as group:
            await self._follow(self._loop_id, group)

    async def _follow(self, loop_id: str, group: asyncio.TaskGroup) -> None:
        narrator = None
        try:
            async with aclosing(self._service.follow(loop_id)) as course:
                async for one in course:
                    if not isinstance(one, Recorded):
                        continue
                    if narrator is None:
                        narrator = narrator_of([one.event])
                    for told in narrator.told(one.event):
                        if self._tell is not None and (words := in_words(told)):
                            await self._tell(words)
                    if isinstance(one.event, ChildStarted):
                        group.create_task(self._follow(one.event.loop_id, group))
                    await self._look(narrator.state)
        except FlyballError:
            return  # whoever waits for the answer is told

    async def _look(self, state: AnyState | None) -> None:
        """See who waits, where that may have changed."""
        if not isinstance(state, State):
            return
        waits = awaits_approval(state)
        if not waits and state.loop_id not in self._waited:
            return
        (self._waited.add if waits else self._waited.discard)(state.loop_id)
        self.waiting = await waiting_for_approval(self._service, self._loop_id)
        self.news.set()


async def waiting_for_approval(service: Service, loop_id: str) -> dict[str, WaitingCall]:
    """The calls of a run, and of those under it, that wait for a person, by key.

    Raises:
        LoopNotFound: there is no such run.
    """
    _, state = await service.load(loop_id)
    calls = await waiting_calls(service.journal, state)
    return {key_of(one): one for one in calls if one.wants == "approval"}


def in_words(event: RuntimeEvent) -> str:
    """What is told of an event; of most, nothing."""
    if isinstance(event, TurnStartedEvent):
        return f"{event.agent}: turn {event.turn}"
    if isinstance(event, ToolCalledEvent):
        return f"{event.agent}: calls {event.tool_name}"
    if isinstance(event, ToolEndedEvent):
        return f"{event.agent}: {event.tool_name} {'failed' if event.result.is_error else 'returned'}"
    return f"{event.agent}: step {event.name}" if isinstance(event, StepStartedEvent) else ""

"""The tools worker: runs tool calls. It never reads a journal: a call that may start once only is claimed."""

from __future__ import annotations

import logging
from contextlib import suppress

from msgspec.structs import replace

from flyball.core.events import ToolReturned
from flyball.core.messages import ResultKind
from flyball.core.tools import Safety
from flyball.orchestrate import performers
from flyball.orchestrate.children import Home
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import ExecuteCommand
from flyball.orchestrate.moves import interrupted
from flyball.runtime.nats import subjects
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery
from flyball.runtime.nats.hiring import Post
from flyball.runtime.nats.messages.work import read_call, write_result
from flyball.runtime.nats.wire import hired_for_tool
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.detaching import Detaching, was_asked
from flyball.runtime.nats.workers.remembered import Remembered
from flyball.runtime.nats.workers.stopping import CancelledItself, LetGo, Stoppable
from flyball.tool.errors import CallContinues

_log = logging.getLogger("flyball.nats")


class ToolsWorker:
    """Runs the tools of the agents that it has; each tool's calls go to whoever hosts it."""

    kind = "tools"

    def __init__(
        self, bus: Bus, agents: Agents, *, home: Home | None = None, hold: float = 30.0, room: int = 64
    ) -> None:
        """`home` is where loops go that the tools begin."""
        self._bus = bus
        self._agents = agents
        self._home = home
        self._room = room
        self._busy = 0
        self._answered = Remembered()
        """What was answered from here: after a lost acknowledgement it is asked for again."""
        self.stoppable = Stoppable(bus.connection)
        self.detaching = Detaching(bus.connection)
        hosted = agents.tools(loops=bus.connection.identity.may_begin_loops)
        for name in sorted(set(agents.tools()) - set(hosted)):
            _log.warning(
                "the tool %r begins loops, which %s may not: it is left to workers with credentials of the "
                "role all",
                name,
                bus.connection.identity,
            )
        self.posts = [
            Post(bus.wire.tools, hired_for_tool(name), (subjects.execute_subject(name),), room, hold)
            for name in hosted
        ]

    def has_room_for(self, command: ExecuteCommand) -> bool:
        """Whether the very tool is here, and there is room for one more call."""
        return self._busy < self._room and self._agents.has_tool(command.agent, command.call.name)

    async def work(self, delivery: Delivery) -> None:
        """Run the call that a message asks for."""
        command, ours = read_call(await self._bus.opened(delivery), delivery.subject)
        if ours and command.id in self._answered:
            return
        elsewhere = command.agent and command.agent not in self._agents.names and not delivery.forwarded
        # Where the very agent is, a tool of this name may be another one.
        if elsewhere and await self._bus.forward(self.kind, command.agent, delivery):
            return
        if ours and delivery.times > 1 and await was_asked(self._bus, command.id):
            command = replace(command, facts=replace(command.facts, detached=True))
        with suppress(LetGo, CallContinues):
            event = await self.perform(command, ours=ours)
            # Somebody else's loop has no word for a call that is deferred: it just waits for the result.
            if ours or event.result.status is not ResultKind.DEFERRED:
                await self._report(command, event, ours=ours)
            self._answered.add(command.id)

    async def perform(self, command: ExecuteCommand, *, ours: bool = True) -> ToolReturned:
        """Run a call.

        Raises:
            LetGo: nobody waits for it any more.
            CallContinues: it has begun a loop. Nothing is held for it: it is asked for again after that.
        """
        self._busy += 1
        try:
            return await self.stoppable.run(command.loop_id, command.id, self._execute(command, ours=ours))
        except CancelledItself:
            now = SYSTEM_CLOCK.now()
            return performers.call_cancelled(command.call, command.turn, command.index, now)
        finally:
            self._busy -= 1

    async def _execute(self, command: ExecuteCommand, *, ours: bool) -> ToolReturned:
        now = SYSTEM_CLOCK.now
        tool, deps = self._agents.tool(command.agent, command.call.name)
        once = command.once or (not ours and tool is not None and tool.spec.safety is Safety.AT_MOST_ONCE)
        if once and not await self._bus.claim(command.id):
            return ToolReturned(now(), command.turn, command.index, interrupted(command.call))
        return await performers.call_tool(
            tool,
            command.call,
            command.turn,
            command.index,
            deps,
            command.facts,
            now,
            self._home,
            self.detaching,
        )

    async def _report(self, command: ExecuteCommand, event: ToolReturned, *, ours: bool) -> None:
        await self._bus.publish(
            subjects.result_subject(command.id if ours else command.call.id),
            write_result(command, event, ours=ours),
            f"{command.id}/result",
            loop_id=command.loop_id,
            first=ours,
        )

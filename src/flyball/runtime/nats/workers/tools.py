"""The tools worker: runs tool calls. It never reads a journal: a call that may start once only is claimed."""

from __future__ import annotations

import msgspec

from flyball.core.errors import InvalidMessage
from flyball.core.events import ToolReturned
from flyball.orchestrate import performers
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import ExecuteCommand, Report
from flyball.orchestrate.moves import interrupted
from flyball.runtime.nats import bus as wire
from flyball.runtime.nats.bus import AGENT, Bus
from flyball.runtime.nats.deliveries import Delivery, Post
from flyball.runtime.nats.naming import token
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.stopping import Stoppable


class ToolsWorker:
    """Runs the tools of the agents that it has; each tool's calls go to whoever hosts it."""

    def __init__(self, bus: Bus, agents: Agents, *, hold: float = 30.0, room: int = 64) -> None:
        self._bus = bus
        self._agents = agents
        self.stoppable = Stoppable(bus.connection)
        self.posts = [
            Post(AGENT, f"tool-{token(name)}", (wire.execute_subject(name),), room=room, hold=hold)
            for name in agents.tools()
        ]

    async def work(self, delivery: Delivery) -> None:
        """Run the call that a message asks for."""
        try:
            command = msgspec.json.decode(delivery.data, type=ExecuteCommand)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidMessage(f"not a call: {error}", where=delivery.subject) from error
        if await self.stoppable.run(command.loop_id, command.id, self._execute(command)):
            return
        # The tool cancelled the task that it ran in: that is what became of the call.
        now = SYSTEM_CLOCK.now()
        await self._report(command, performers.call_cancelled(command.call, command.turn, command.index, now))

    async def _execute(self, command: ExecuteCommand) -> None:
        now = SYSTEM_CLOCK.now
        bindings = self._agents.get(command.agent)
        if command.once and not await self._bus.claim(command.id):
            event = ToolReturned(now(), command.turn, command.index, interrupted(command.call))
        else:
            tool = bindings.tools.get(command.call.name)
            event = await performers.call_tool(
                tool, command.call, command.turn, command.index, bindings.deps, command.facts, now
            )
        await self._report(command, event)

    async def _report(self, command: ExecuteCommand, event: ToolReturned) -> None:
        data = msgspec.json.encode(Report(command.loop_id, event))
        await self._bus.publish(wire.result_subject(command.id), data, f"{command.id}/result", first=True)

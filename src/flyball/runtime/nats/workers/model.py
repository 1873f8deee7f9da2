"""The model worker: makes model calls, and lets the pieces of an answer pass by for whoever listens."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import msgspec

from flyball.core.errors import InvalidMessage
from flyball.core.events import Event
from flyball.core.ids import new_id
from flyball.orchestrate import performers
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import InferCommand, Report
from flyball.orchestrate.elsewhere import Delta
from flyball.orchestrate.model_call import infer_in_pieces
from flyball.runtime.nats import bus as wire
from flyball.runtime.nats.bus import AGENT, Bus
from flyball.runtime.nats.deliveries import Delivery, Post
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.stopping import Stoppable


class ModelWorker:
    """Makes model calls for the agents that it has."""

    def __init__(self, bus: Bus, agents: Agents, *, hold: float = 30.0, room: int = 32) -> None:
        self._bus = bus
        self._agents = agents
        self.stoppable = Stoppable(bus.connection)
        self.posts = [Post(AGENT, "model", wire.REQUESTS, room=room, hold=hold)]

    async def work(self, delivery: Delivery) -> None:
        """Make the call that a message asks for."""
        try:
            command = msgspec.json.decode(delivery.data, type=InferCommand)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidMessage(f"not a request: {error}", where=delivery.subject) from error
        if await self.stoppable.run(command.loop_id, command.id, self._answer(command)):
            return
        # The engine cancelled the task that it ran in: that is what became of the call.
        now = SYSTEM_CLOCK.now()
        failed = performers.model_failed(asyncio.CancelledError(), command.turn, now, now)
        await self._report(command, failed)

    async def _answer(self, command: InferCommand) -> None:
        engine, now = self._agents.get(command.agent).engine, SYSTEM_CLOCK.now
        if await self._bus.connection.is_heard(wire.deltas_subject(command.loop_id)):
            event = await self._in_pieces(command)
        else:
            event = await performers.infer(engine, command.request, command.turn, now)
        await self._report(command, event)

    async def _report(self, command: InferCommand, event: Event) -> None:
        data = msgspec.json.encode(Report(command.loop_id, event))
        await self._bus.publish(wire.response_subject(command.id), data, f"{command.id}/answer", first=True)

    async def _in_pieces(self, command: InferCommand) -> Event:
        engine, now = self._agents.get(command.agent).engine, SYSTEM_CLOCK.now
        call, number, where = new_id(), 0, wire.deltas_subject(command.loop_id)
        async with aclosing(infer_in_pieces(engine, command.request, command.turn, now)) as pieces:
            async for piece in pieces:
                if isinstance(piece, Event):
                    return piece
                delta = Delta(command.id, command.turn, call, number, piece)
                number += 1
                try:
                    data = msgspec.json.encode(delta)
                except (TypeError, ValueError):
                    continue  # half a character: the recorded answer makes up for it
                await self._bus.connection.publish(where, data)
        raise AssertionError("a model call ends with an event")

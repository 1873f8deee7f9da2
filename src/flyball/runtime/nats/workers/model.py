"""The model worker: makes model calls, and lets the pieces of an answer pass by for whoever listens."""

from __future__ import annotations

import asyncio
from contextlib import aclosing, suppress

import msgspec

from flyball.core.errors import FlyballError, UnknownAgent
from flyball.core.events import Event, ModelAnswered, ModelFailed
from flyball.core.ids import new_id
from flyball.inference.engine import Engine
from flyball.orchestrate import performers
from flyball.orchestrate.clock import SYSTEM_CLOCK
from flyball.orchestrate.commands import InferCommand
from flyball.orchestrate.elsewhere import Delta
from flyball.orchestrate.model_call import infer_in_pieces
from flyball.runtime.nats import subjects
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.deliveries import Delivery
from flyball.runtime.nats.hiring import Post
from flyball.runtime.nats.messages.work import read_request, write_answer
from flyball.runtime.nats.wire import AGENT
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.remembered import Remembered
from flyball.runtime.nats.workers.stopping import CancelledItself, LetGo, Stoppable

Answer = ModelAnswered | ModelFailed


class ModelWorker:
    """Makes model calls for the agents that it has."""

    kind = "model"

    def __init__(self, bus: Bus, agents: Agents, *, hold: float = 30.0, room: int = 32) -> None:
        self._bus = bus
        self._agents = agents
        self._room = room
        self._busy = 0
        self._answered = Remembered()
        """What was answered from here: after a lost acknowledgement it is asked for again."""
        self.stoppable = Stoppable(bus.connection)
        self.posts = [Post(AGENT, "model", subjects.REQUESTS, room=room, hold=hold)]

    @property
    def is_free(self) -> bool:
        """Whether there is room for one more call."""
        return self._busy < self._room

    async def work(self, delivery: Delivery) -> None:
        """Make the call that a message asks for."""
        command, ours = read_request(await self._bus.opened(delivery), delivery.subject)
        if ours and command.id in self._answered:
            return
        with suppress(LetGo):
            await self._report(command, await self.perform(command), ours=ours)
            self._answered.add(command.id)

    async def perform(self, command: InferCommand) -> Answer:
        """Make a call.

        Raises:
            UnknownAgent: its agent is not here.
            LetGo: nobody waits for it any more.
        """
        now = SYSTEM_CLOCK.now
        try:
            engine = self._agents.engine(command.agent, command.role, command.model, command.purpose)
        except UnknownAgent:
            raise
        except FlyballError as error:
            # There is no such model here: that is what became of the call.
            return performers.model_failed(error, command.turn, now(), now(), purpose=command.purpose)
        self._busy += 1
        try:
            return await self.stoppable.run(command.loop_id, command.id, self._infer(command, engine))
        except CancelledItself:
            error = asyncio.CancelledError()
            return performers.model_failed(error, command.turn, now(), now(), purpose=command.purpose)
        finally:
            self._busy -= 1

    async def _infer(self, command: InferCommand, engine: Engine) -> Answer:
        if await self._is_shown(command):
            return await self._in_pieces(command, engine)
        now = SYSTEM_CLOCK.now
        return await performers.infer(engine, command.request, command.turn, now, command.purpose)

    async def _is_shown(self, command: InferCommand) -> bool:
        """Whether somebody listens for the pieces of a call: only those of turns are shown."""
        if not command.loop_id or command.purpose != "turn":
            return False
        return await self._bus.connection.is_heard(subjects.deltas_subject(command.loop_id))

    async def _report(self, command: InferCommand, event: Answer, *, ours: bool) -> None:
        await self._bus.publish(
            subjects.response_subject(command.id),
            write_answer(command, event, ours=ours),
            f"{command.id}/answer",
            loop_id=command.loop_id,
            first=ours,
        )

    async def _in_pieces(self, command: InferCommand, engine: Engine) -> Answer:
        call, number, where = new_id(), 0, subjects.deltas_subject(command.loop_id)
        pieces = infer_in_pieces(engine, command.request, command.turn, SYSTEM_CLOCK.now)
        async with aclosing(pieces):
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

"""What a loop owes, handed out: to the workers of this process, or over the wire to all others."""

from __future__ import annotations

import asyncio
import logging

from msgspec.structs import replace

from flyball.core.effects import Effect, Execute, Infer, Wait
from flyball.core.events import ChildEnded
from flyball.orchestrate.commands import Command, execute_command, infer_command
from flyball.orchestrate.machine import owed
from flyball.orchestrate.state import State
from flyball.runtime.nats import subjects
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.messages.work import write_call, write_request
from flyball.runtime.nats.workers.agents import Agents
from flyball.runtime.nats.workers.near import Near
from flyball.runtime.nats.workers.stopping import tell

_log = logging.getLogger("flyball.nats")


async def hand_out(
    bus: Bus,
    agents: Agents,
    state: State,
    effects: list[Effect],
    *,
    near: Near,
    ended: ChildEnded | None = None,
) -> list[Command]:
    """Ask others for what is owed, and let go who works on anything else; gives what is done here.

    `near`: who is here. `ended`: a loop that a call has begun is over, and that is why it is asked for once
    more.
    """
    parts = agents.get(state.spec.agent).parts_for(state.spec)
    loop_id = state.loop_id
    here: list[Command] = []
    sending: list[tuple[str, bytes, str]] = []
    for effect in effects:
        if isinstance(effect, Infer):
            request = infer_command(state, effect, parts)
            if near.takes(request):
                here.append(request)
            else:
                sending.append((subjects.request_subject(loop_id), write_request(request), effect.id))
        elif isinstance(effect, Execute):
            call, name = execute_command(state, effect), effect.id
            if ended is not None and call.call.id == ended.call_id:
                # Under another name: by its own, the server would know it as one that was asked for.
                call = replace(call, facts=replace(call.facts, child=ended.loop_id))
                name = f"{effect.id}/{ended.loop_id}"
            if near.takes(call):
                here.append(call)
            else:
                sending.append((subjects.execute_subject(call.call.name), write_call(call), name))
                await _warn_if_unhosted(bus, loop_id, call.call.name)
        elif isinstance(effect, Wait) and effect.until is not None:
            await bus.remind(loop_id, effect.id, effect.until)
    if sending:
        await asyncio.gather(
            *[bus.publish(where, data, name, loop_id=loop_id) for where, data, name in sending]
        )
    elif not here:
        await tell(bus.connection, loop_id, [effect.id for effect in owed(state)])
    return here


async def _warn_if_unhosted(bus: Bus, loop_id: str, tool: str) -> None:
    if not await bus.is_hosted(tool):
        _log.warning("loop %s waits for the tool %r, which no worker has hosted yet", loop_id, tool)

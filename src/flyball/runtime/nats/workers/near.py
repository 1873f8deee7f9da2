"""The workers of the same process: what they have room for need not travel."""

from __future__ import annotations

from msgspec import Struct

from flyball.orchestrate.commands import Command, InferCommand, Report
from flyball.runtime.nats.workers.model import ModelWorker
from flyball.runtime.nats.workers.stopping import LetGo
from flyball.runtime.nats.workers.tools import ToolsWorker
from flyball.tool.errors import CallContinues


class Near(Struct, frozen=True):
    """The model and the tools worker beside a loop worker, if there are any."""

    model: ModelWorker | None = None
    tools: ToolsWorker | None = None

    def takes(self, command: Command) -> bool:
        """Whether a command can be carried out here, now."""
        if isinstance(command, InferCommand):
            return self.model is not None and self.model.is_free
        return self.tools is not None and self.tools.has_room_for(command)

    async def perform(self, command: Command) -> Report | None:
        """Carry it out; None if nobody waits for it any more, or if it waits for a loop that it has begun."""
        try:
            if isinstance(command, InferCommand):
                assert self.model is not None
                return Report(command.loop_id, await self.model.perform(command))
            assert self.tools is not None
            return Report(command.loop_id, await self.tools.perform(command))
        except (LetGo, CallContinues):
            return None

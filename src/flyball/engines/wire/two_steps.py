"""Tools and a schema for servers that take only one of them at a time.

First the turn with its tools: calls are the answer. Where the model calls nothing, the turn once more with
the schema: now it writes the answer, and the decoder holds it to its form. Both count in what the turn used.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec.structs import replace

from flyball.core.usage import Usage, in_steps
from flyball.inference.cut import events_of
from flyball.inference.offer import offer_of
from flyball.inference.request import Request, Result
from flyball.inference.stream import Finish, StreamEvent, close_stream
from flyball.inference.wrapper import WrapperEngine


class TwoStepEngine(WrapperEngine):
    """An engine whose server takes tools and a schema in two steps; all else it does as before."""

    async def infer(self, request: Request) -> Result:
        """See `Engine.infer`."""
        if not _needs_two(request):
            return await self.engine.infer(request)
        first = await self.engine.infer(_with_tools(request))
        if first.tool_calls:
            return first
        second = await self.engine.infer(_with_schema(request))
        message = replace(second.message, usage=in_steps(first.message.usage, second.message.usage))
        return replace(second, message=message)

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent, None]:
        """See `Engine.stream`; calls come at once, since only their end tells that they are the answer."""
        usage: Usage | None = None
        if _needs_two(request):
            first = await self.engine.infer(_with_tools(request))
            if first.tool_calls:
                for event in events_of(first.message, request_id=first.request_id):
                    yield event
                return
            usage, request = first.message.usage, _with_schema(request)
        pieces = self.engine.stream(request)
        try:
            async for event in pieces:
                if type(event) is Finish and usage is not None:
                    yield replace(event, usage=in_steps(usage, event.usage))
                else:
                    yield event
        finally:
            await close_stream(pieces)


def _needs_two(request: Request) -> bool:
    held = request.output is not None or request.grammar is not None
    return held and bool(offer_of(request).tools)


def _with_tools(request: Request) -> Request:
    return replace(request, output=None, grammar=None)


def _with_schema(request: Request) -> Request:
    return replace(request, tools=(), tool_choice=None)

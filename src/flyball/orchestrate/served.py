"""ServedSystem: a system whose runs belong to nobody who waits for them.

Who goes away, or is cancelled, is no reason to stop a run: it goes on to its end. Its loop says that it was
begun for others, and for which agent, so that it is gone on with after a restart (`served_by`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from flyball.core.errors import AgentRunClosed, LoopMismatch
from flyball.core.events import Ended
from flyball.core.ids import new_id
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.answering import OutsideResult
from flyball.orchestrate.claims import claim_on, is_claimed, knows_claims
from flyball.orchestrate.contracts import SystemRequest, SystemResponse
from flyball.orchestrate.flow.doing import Hear
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.provenance import KEY
from flyball.orchestrate.recorded import load_any
from flyball.orchestrate.requesting import identified
from flyball.orchestrate.responding import refusal_of
from flyball.orchestrate.runtime import Runtime
from flyball.orchestrate.serving.flows import flow_input
from flyball.orchestrate.serving.trying import Pieces
from flyball.orchestrate.system import System

Keep: TypeAlias = Callable[[Coroutine[Any, Any, Any], str], "asyncio.Task[Any]"]
"""Has something done for a loop, whoever waits for it."""

Responded: TypeAlias = Callable[[str, SystemResponse], None]
"""Is told of an agent's response, whoever waits for it."""

_SERVED = "served"
_LOOK = 0.2
"""Seconds after which is looked whether a flow is still driven by somebody else."""


class ServedSystem(System):
    """A system whose runs go on without those who asked for them; `keep` has done what is done for a loop.

    `lasting`: whether its loops say that a service has begun them.
    """

    def __init__(
        self,
        agent: Agent[Any, Any],
        keep: Keep,
        responded: Responded,
        *,
        lasting: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(agent, **options)
        self._lasting = lasting
        self._keep = keep
        self._responded = responded

    async def handle(self, request: SystemRequest, *, loop_id: str = "") -> SystemResponse:
        """See `System.handle`. Cancelling who waits leaves the run alone.

        A run that is driven no longer, because its service ends, is an error in the response.
        """
        return await asyncio.shield(self.begin(request, loop_id or new_id()))

    def begin(self, request: SystemRequest, loop_id: str) -> asyncio.Task[SystemResponse]:
        """Begin to serve a request; the task gives its response, also if the service ends first."""
        return self._keep(self._handled(request, loop_id), loop_id)

    async def _handled(self, request: SystemRequest, loop_id: str) -> SystemResponse:
        try:
            response = await super().handle(self._stamped(request), loop_id=loop_id)
        except asyncio.CancelledError:  # by the service, which ends: nobody else has the task
            return replace(refusal_of(request, _closed(), loop_id), loop_id=loop_id)
        self._responded(self.agent.config.name, response)
        return response

    async def _flow_served(
        self, request: SystemRequest, loop_id: str, hear: Hear | None = None
    ) -> SystemResponse:
        """Serve a request by a flow. One that is driven by now, here or elsewhere, is waited for."""
        async with self._alone(request, loop_id):
            return await super()._flow_served(request, loop_id, hear)

    @asynccontextmanager
    async def _alone(self, request: SystemRequest, loop_id: str) -> AsyncGenerator[None]:
        """A block in which nobody else drives a flow. One that somebody does, here or elsewhere, ends first.

        Raises:
            LoopMismatch: it is another request's.
        """
        journal, over = self._journal(), False
        while (claim := claim_on(journal, loop_id)) is None and knows_claims(journal) and not over:
            if await journal.wait(loop_id, 0, _LOOK):  # it may have been claimed just now
                over = await _left_alone(journal, loop_id, request)
        try:
            yield
        finally:
            if claim is not None:
                claim.release()

    async def go_on(self, loop_id: str) -> None:
        """Go on with a flow, unless somebody drives it."""
        journal = self._journal()
        claim = claim_on(journal, loop_id)
        if claim is None and knows_claims(journal):
            return
        try:
            await self.resume(loop_id)
        finally:
            if claim is not None:
                claim.release()

    async def submit(self, request: SystemRequest, loop_id: str) -> bool:
        """Have the runtime carry a request's loop on; it is recorded when this returns. False of a flow.

        Its response is told like all others once it is there; not again, of a loop that was there before.

        Raises:
            FlyballError: it cannot be served, or the id is another loop's, or nothing could be recorded.
        """
        request = identified(self._stamped(request))
        if self._is_flow(request):
            return False
        run, agent, _ = self._prepared(request, loop_id)
        runtime: Runtime = self._options["runtime"]
        more = {name: self._options[name] for name in ("deps", "clock") if name in self._options}
        there = (await self._journal().sizes((loop_id,)))[0]
        await runtime.submit(agent, run.prompt, **run.options, **more)
        if not there:
            self._keep(self._joined(request, loop_id), loop_id)
        return True

    async def _joined(self, request: SystemRequest, loop_id: str) -> None:
        """Wait for the response of a loop that is carried on, and tell of it."""
        self._responded(self.agent.config.name, await self._served(request, loop_id))

    def stream(self, request: SystemRequest, *, loop_id: str = "") -> Pieces:
        """See `System.stream`. Closing it early leaves the run alone."""
        loop_id = loop_id or new_id()
        return self._told(super().stream(self._stamped(request), loop_id=loop_id), loop_id)

    def answer_stream(self, loop_id: str, results: Sequence[OutsideResult]) -> Pieces:
        """See `System.answer_stream`. Closing it early leaves the run alone."""
        return self._told(super().answer_stream(loop_id, results), loop_id)

    async def _told(self, pieces: Pieces, loop_id: str) -> Pieces:
        heard = _Heard(lambda response: self._responded(self.agent.config.name, response))
        self._keep(heard.hear(pieces), loop_id)
        async for piece in heard.told():
            yield piece

    def _stamped(self, request: SystemRequest) -> SystemRequest:
        """The request, whose loop will say for which agent it was begun."""
        if not self._lasting:
            return request
        metadata = request.metadata or {}
        told: Any = metadata.get(KEY)
        known = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
        return replace(request, metadata={**metadata, KEY: {**known, _SERVED: self.agent.config.name}})


def served_by(metadata: dict[str, Any] | None) -> str:
    """The agent for which a loop with this metadata was begun by a `ServedSystem`; empty if by none."""
    told: Any = (metadata or {}).get(KEY)
    agent: Any = cast("dict[str, Any]", told).get(_SERVED) if isinstance(told, dict) else None
    return agent if isinstance(agent, str) else ""


async def _left_alone(journal: Journal, loop_id: str, request: SystemRequest) -> bool:
    """Wait until a flow is over that somebody else drives, or they do so no longer; whether it is over.

    Raises:
        LoopMismatch: it is another request's.
    """
    events, state = await load_any(journal, loop_id)
    if not isinstance(state, FlowState) or state.input != flow_input(request):
        raise LoopMismatch(
            f"loop {loop_id!r} is there, and is another request's: choose another loop_id",
            loop_id=loop_id,
            differs=["request"],
        )
    length = len(events)
    while not isinstance(events[-1], Ended) and is_claimed(journal, loop_id):
        if await journal.wait(loop_id, length, _LOOK):
            events = await journal.read(loop_id, length)
            length += len(events)
    return isinstance(events[-1], Ended)


def _closed() -> AgentRunClosed:
    return AgentRunClosed("the run is driven no longer, since its server ends: it stays as it is recorded")


class _Heard:
    """A stream that is read to its end, whether or not anybody is told of it."""

    def __init__(self, responded: Callable[[SystemResponse], None]) -> None:
        self._responded = responded
        self._pieces: deque[StreamEvent | SystemResponse] = deque()
        self._over = False
        self._stirred = asyncio.Event()

    async def hear(self, pieces: Pieces) -> None:
        """Read it."""
        try:
            async with aclosing(pieces):
                async for piece in pieces:
                    self._pieces.append(piece)
                    self._stirred.set()
                    if isinstance(piece, SystemResponse):
                        self._responded(piece)
        finally:
            self._over = True
            self._stirred.set()

    async def told(self) -> AsyncGenerator[StreamEvent | SystemResponse]:
        """What was heard, as it is heard.

        Raises:
            AgentRunClosed: there was an end to it before it was over.
        """
        while True:
            while self._pieces:
                piece = self._pieces.popleft()
                yield piece
                if isinstance(piece, SystemResponse):
                    return
            if self._over:
                raise _closed()
            self._stirred.clear()
            await self._stirred.wait()

"""Requests to agents: served at once, in pieces, or in their own time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from flyball.adapters.http.asking import Answer, Asking, Stream
from flyball.adapters.http.frames import frame
from flyball.adapters.http.hub import Hub
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.problems import MEDIA_TYPE, Gone, NotOver, problem_of, retry_after
from flyball.adapters.http.serving import LOOP
from flyball.adapters.http.tokens import Scope
from flyball.core.errors import AgentRunClosed, InvalidRequest, SignalRefused
from flyball.core.ids import new_id
from flyball.core.messages import Message, Role
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.contracts import SystemRequest, SystemResponse
from flyball.orchestrate.permissions import owned
from flyball.orchestrate.projections.said import said_in
from flyball.orchestrate.service import Service

_encode = msgspec.json.Encoder().encode
_MOMENT = 0.1
"""Seconds for which nobody looks whether a caller is still there."""
_RECORDED = 10.0
"""Seconds in which a run that was asked for is recorded, or was refused."""


NewLoopId = Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{0,128}$")]
"""The id that a caller chooses for a loop; one is made where it is empty."""


class RunQuery(Struct, frozen=True):
    """How a run is begun. With the id of a loop that is there, the same request joins it.

    `after` is the id of a loop that is over: what was said in it goes before the request's messages, and need
    not be sent again.
    """

    loop_id: NewLoopId = ""
    after: str = ""
    on_disconnect: Literal["go_on", "cancel"] = "go_on"


class Begun(Struct, frozen=True):
    """A loop that has begun, and goes on by itself."""

    loop_id: str


def request_operations(hubs: Callable[[Service], Hub]) -> list[Operation]:
    """The operations that have agents serve requests. `hubs` gives the hub of a service."""

    async def handle_request(asking: Asking) -> Answer:
        agent, request, query = await _read(asking)
        await asking.have_model(agent)
        loop_id = query.loop_id or new_id()
        cancel = await _cancelling(asking, query, loop_id)
        response = await _unless_gone(asking, asking.service.serve(agent, request, loop_id=loop_id), cancel)
        return answer_of(response, asking)

    async def stream_request(asking: Asking) -> Stream:
        agent, request, query = await _read(asking)
        asking.service.system(agent)
        request = request.check()  # what is wrong with it is no event of a stream
        await asking.have_model(agent)
        loop_id = query.loop_id or new_id()

        async def events() -> AsyncGenerator[bytes]:
            yield frame("begun", Begun(loop_id))
            try:
                async with aclosing(asking.service.stream(agent, request, loop_id=loop_id)) as pieces:
                    async for piece in pieces:
                        yield last(piece) if isinstance(piece, SystemResponse) else frame("piece", piece)
            except AgentRunClosed as error:
                yield frame("problem", problem_of(error.record(), asking.correlation.request_id))

        def last(response: SystemResponse) -> bytes:
            if response.error is None:
                return frame("response", response.to_json())
            return frame("problem", problem_of(response.error, asking.correlation.request_id, response))

        gone = await _cancelling(asking, query, loop_id)
        return Stream(events(), gone, {LOOP: loop_id})

    async def begin_loop(asking: Asking) -> Answer:
        agent, request, query = await _read(asking)
        loop_id, hub = query.loop_id or new_id(), hubs(asking.service)
        # The pieces of its first answer are for who follows it in a moment.
        hub.expect(loop_id)
        try:
            await asking.service.begin(agent, request, loop_id=loop_id)
        except BaseException:
            hub.forget(loop_id)
            raise
        return Answer(Begun(loop_id), 202, {LOOP: loop_id, "Location": f"/api/loops/{loop_id}"})

    many: dict[str, Any] = {
        "scope": Scope.RUN,
        "body": SystemRequest,
        "query": RunQuery,
        "tag": "requests",
    }
    base = "/api/agents/{agent}"
    return [
        Operation(
            "POST",
            f"{base}/requests",
            "Have an agent serve a request, and wait for the response",
            handle_request,
            gives={200: SystemResponse},
            problems=(404, 408, 409, 422),
            **many,
        ),
        Operation(
            "POST",
            f"{base}/stream",
            "Have an agent serve a request, and be told the answer in pieces",
            stream_request,
            gives={200: Stream},
            problems=(404, 409, 422),
            long=True,
            **many,
            about="Events: `begun` with the loop's id, `piece` (a stream event) as they come, and last "
            "`response` or `problem`. Who loses the connection goes on at `/api/loops/{loop_id}/stream`.",
        ),
        Operation(
            "POST",
            f"{base}/loops",
            "Have an agent begin to serve a request; it goes on by itself",
            begin_loop,
            gives={202: Begun},
            problems=(404, 409, 422),
            **many,
        ),
    ]


async def _read(asking: Asking) -> tuple[str, SystemRequest, RunQuery]:
    query = asking.query(RunQuery)
    request = SystemRequest.from_json(await asking.json())
    if len(request.messages) > asking.limits.messages:
        raise InvalidRequest(
            f"messages has {len(request.messages)} messages, and at most {asking.limits.messages} are taken",
            field="messages",
        )
    # Whose it is: they may say something to it later.
    request = replace(request, metadata=owned(request.metadata, asking.person))
    if query.after:
        request = replace(request, messages=await _after(asking, query.after, request.messages))
    ids = asking.correlation
    if not request.trace_id:
        request = replace(request, trace_id=ids.trace_id, span_id=ids.span_id)
    if not request.request_id:
        request = replace(request, request_id=ids.request_id)
    return asking.values["agent"], request, query


async def _after(asking: Asking, loop_id: str, messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Messages after what was said in a loop; instructions that are among them come first.

    Raises:
        LoopNotFound: there is no such loop.
        NotOver: it is not over yet.
        Forbidden, NotPermitted: who asks may not look at loops.
    """
    asking.allow(Scope.READ)
    _, state = await asking.service.load(loop_id)
    if state.at != "done":
        raise NotOver(f"loop {loop_id!r} is not over, and cannot be gone on from: wait until it is")
    instructions = [one for one in messages if one.role is Role.SYSTEM]
    said = [one for one in messages if one.role is not Role.SYSTEM]
    return (*instructions, *said_in(state), *said)


def answer_of(response: SystemResponse, asking: Asking) -> Answer:
    """A response as an answer: the document, or a problem that has it."""
    headers = {LOOP: response.loop_id} if response.loop_id else dict[str, str]()
    if response.error is None:
        return Answer(_encode(response.to_json()), headers=headers)
    problem = problem_of(response.error, asking.correlation.request_id, response)
    headers |= retry_after(response.error.details)
    return Answer(_encode(problem), problem.status, headers, MEDIA_TYPE)


async def _cancelling(asking: Asking, query: RunQuery, loop_id: str) -> Callable[[], Awaitable[None]] | None:
    """What cancels the run of a caller that goes away, if it asked for that, and the run is its own."""
    service = asking.service
    if query.on_disconnect != "cancel" or (query.loop_id and (await service.journal.sizes((loop_id,)))[0]):
        return None
    by = asking.principal.name or "the caller"
    cancel = Signal(SignalType.CANCEL, by=by, text="its caller went away")

    async def gone() -> None:
        try:
            if await service.journal.wait(loop_id, 0, _RECORDED):  # it may not have begun yet
                await service.signal(loop_id, cancel)
        except SignalRefused:
            return  # it is over already

    return gone


async def _unless_gone(
    asking: Asking, serving: asyncio.Task[SystemResponse], cancel: Callable[[], Awaitable[None]] | None
) -> SystemResponse:
    """What is served, for as long as its caller is there.

    Raises:
        Gone: it is not. The run goes on, unless it is to be cancelled.
    """
    # Who is answered in a moment is not watched: that would take longer than many an answer.
    await asyncio.wait([serving], timeout=_MOMENT)
    if serving.done():
        return serving.result()
    gone = asyncio.ensure_future(asking.gone())
    try:
        await asyncio.wait([serving, gone], return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
    if serving.done():
        return serving.result()
    if cancel is not None:
        await cancel()
    raise Gone("who asked has gone away")

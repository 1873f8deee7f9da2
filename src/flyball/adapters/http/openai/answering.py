"""A request on its way: which loop it is, how it is told, and what becomes of an answer that failed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from flyball.adapters.http.openai.errors import Refused, refused_by, refusing
from flyball.adapters.http.openai.formats import Format
from flyball.adapters.http.openai.going_on import Answering, answering, goes_on
from flyball.adapters.http.openai.said import Joined, Said, joined
from flyball.adapters.http.openai.serving import Serving
from flyball.adapters.http.openai.telling import How, Telling
from flyball.core.events import Event, ToolReturned
from flyball.core.ids import new_id
from flyball.core.messages import Message, ToolResult
from flyball.core.spec import LoopSpec
from flyball.inference.stream import StreamEvent
from flyball.orchestrate.contracts import SystemRequest, SystemResponse
from flyball.orchestrate.machine import fold
from flyball.orchestrate.matching import begun_as
from flyball.orchestrate.system import System

Pieces = AsyncGenerator[StreamEvent | SystemResponse]


class Begun(Struct, frozen=True):
    """A request that is being answered: its loop, its pieces, and how they are told.

    `spec` is the loop's policy, None of a flow; `part` counts the results that the loop was given by then.
    """

    loop_id: str
    pieces: Pieces
    spec: LoopSpec | None
    taken: frozenset[str] = frozenset()
    part: int = 0

    @property
    def backend(self) -> str:
        """The model behind the agent."""
        return "" if self.spec is None else self.spec.model

    def how(self, *, live: bool) -> How:
        """How its stream is told; `live`: the client wants text as it comes."""
        spec = self.spec
        if spec is None:
            return How(self.loop_id)
        own = any(not tool.outside for tool in spec.tools.values())
        certain = not (own or spec.reviews or spec.output.checked)
        calls = [name for name, tool in spec.tools.items() if tool.outside and certain and not spec.filters]
        return How(
            self.loop_id,
            live=certain or (live and not own),
            loose=live and own,
            calls=frozenset(calls),
            taken=self.taken,
        )


Param = Callable[[str], str]


async def begin(serving: Serving, system: System, request: SystemRequest, param: Param) -> Begun:
    """Begin to answer a request, or go on with the loop that its conversation is of.

    Raises:
        Refused: it cannot be served.
    """
    with refusing(param):
        spec = system.policy(request)
        asked = answering(request.messages)
        if asked is not None and (journal := system.journal) is not None:
            events = await journal.read(asked.loop_id)
            if goes_on(asked, spec, events):
                return await go_on(serving, system, asked, events)
        return begin_anew(serving, system, request, spec)


def begin_anew(serving: Serving, system: System, request: SystemRequest, spec: LoopSpec | None) -> Begun:
    """Begin a loop of its own."""
    loop_id = new_id()
    pieces = system.stream(serving.owned(request), loop_id=loop_id)
    return Begun(loop_id, pieces, spec, call_ids(request.messages))


async def go_on(serving: Serving, system: System, asked: Answering, events: Sequence[Event]) -> Begun:
    """Go on with a loop, by results that it waits for.

    Raises:
        NotPermitted: who asks may not say anything to it.
    """
    await serving.check_answer(asked.loop_id)
    return Begun(
        asked.loop_id,
        system.answer_stream(asked.loop_id, asked.results),
        begun_as(events).spec,
        frozenset(fold(events).ids),
        given_before(events, asked.results),
    )


def given_before(events: Sequence[Event], results: Iterable[ToolResult] = ()) -> int:
    """How many results of tools that are run outside a loop was given, with these."""
    tools = begun_as(events).spec.tools
    names = [event.result for event in events if isinstance(event, ToolReturned)]
    given = {one.call_id for one in names if one.name in tools and tools[one.name].outside}
    return len(given | {one.call_id for one in results})


def call_ids(messages: Iterable[Message]) -> frozenset[str]:
    """The ids of all calls in a conversation."""
    return frozenset([call.id for message in messages for call in message.tool_calls])


async def answered(begun: Begun, form: Format, param: Param) -> tuple[Joined, SystemResponse]:
    """The whole answer.

    Raises:
        Refused: the request failed.
    """
    telling, said = Telling(How(begun.loop_id)), list[Said]()
    response = SystemResponse()
    try:
        async for piece in begun.pieces:
            if isinstance(piece, SystemResponse):
                response = accepted(piece, form, param)
            else:
                said += telling.feed(piece)
    finally:
        await begun.pieces.aclose()
    return joined([*said, *telling.end(response)]), response


def accepted(response: SystemResponse, form: Format, param: Param) -> SystemResponse:
    """A response that is given to the client.

    One that was cut off is, with what there is of it; and so is one whose form nobody insists on.

    Raises:
        Refused: the request failed.
    """
    error = response.error
    if error is None:
        return response
    formless = error.code.startswith("CONSTRAINT_")
    if formless and form.contract is not None and not form.strict and response.content:
        return replace(response, error=None)
    cut = response.finish_reason is not None and response.finish_reason.cut_short
    if cut and (formless or error.code == "INFERENCE_MALFORMED_RESPONSE"):
        return replace(response, error=None)
    raise refused_by(error, param)


async def first_piece(begun: Begun, form: Format, param: Param) -> StreamEvent | SystemResponse:
    """The first piece of a stream: a request that fails at once is `Refused` before anything is sent."""
    try:
        piece = await anext(begun.pieces)
        return accepted(piece, form, param) if isinstance(piece, SystemResponse) else piece
    except BaseException:
        await begun.pieces.aclose()
        raise


def told_of(error: BaseException, param: Param) -> Refused:
    """What a client is told of a failure in the middle of a stream."""
    return error if isinstance(error, Refused) else refused_by(_known(error), param)


def _known(error: BaseException) -> Any:
    return error if isinstance(error, Exception) else RuntimeError(str(error))

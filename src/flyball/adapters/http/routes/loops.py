"""Loops: what is recorded of them, what happens in them, and what is said to them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from flyball.adapters.http.asking import Answer, Asking, Stream
from flyball.adapters.http.hub import Hub
from flyball.adapters.http.operations import Operation
from flyball.adapters.http.position import Position
from flyball.adapters.http.problems import NotOver
from flyball.adapters.http.routes.requests import Begun, NewLoopId, answer_of
from flyball.adapters.http.serving import LOOP
from flyball.adapters.http.tokens import Scope
from flyball.core.deferred import DeferredToolResult
from flyball.core.errors import UserError
from flyball.core.events import Stage
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.channels.identity import sent_as
from flyball.orchestrate.contracts import SystemResponse
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.permissions import Permission
from flyball.orchestrate.projections import trajectory

_LAST = "last-event-id"


class EventsQuery(Struct, frozen=True):
    """Which events: those after number `after`, at most `limit` of them."""

    after: Annotated[int, Meta(ge=0)] = 0
    limit: Annotated[int, Meta(ge=1, le=1000)] = 1000


class EventPage(Struct, frozen=True):
    """Events of a loop's journal, and how many it has. `next` is the `after` of the next page."""

    loop_id: str
    events: tuple[Recorded, ...]
    length: int
    next: int | None = None


class FollowQuery(Struct, frozen=True):
    """From where on: `after` is an event's number, or the id of the last event that was told."""

    after: str = ""


class TrajectoryQuery(Struct, frozen=True):
    """How much of it: in full it has each request's messages."""

    detail: Literal["summary", "full"] = "summary"


class Stood(Struct, frozen=True):
    """The stage that a loop is in, once it was told something."""

    loop_id: str
    stage: Stage


class Said(Signal, frozen=True, forbid_unknown_fields=True):
    """A signal. A key that there is none of is refused: an approval of one call is none of all that wait."""


class Given(DeferredToolResult, frozen=True, forbid_unknown_fields=True):
    """A result. A key that there is none of is refused: a failure is not taken for a result."""


class Results(Struct, frozen=True, forbid_unknown_fields=True):
    """Results of calls that wait for them from outside."""

    results: Annotated[tuple[Given, ...], Meta(min_length=1, max_length=1000)]


class Resumption(Struct, frozen=True, forbid_unknown_fields=True):
    """How to go on with a loop: with `retry`, one that ended badly is opened again."""

    retry: bool = False


class Fork(Struct, frozen=True, forbid_unknown_fields=True):
    """A loop that shares another's first `turn` turns: with another prompt, model or instructions."""

    turn: Annotated[int, Meta(ge=0, le=1_000_000)]
    prompt: str | None = None
    model: str | None = None
    instructions: str | None = None
    loop_id: NewLoopId = ""


async def read_events(asking: Asking) -> Answer:
    """A page of a loop's journal."""
    query, loop_id = asking.query(EventsQuery), asking.values["loop_id"]
    events, _ = await asking.service.load(loop_id)
    page = events[query.after : query.after + query.limit]
    end = query.after + len(page)
    recorded = tuple([Recorded(number, event) for number, event in enumerate(page, query.after + 1)])
    return Answer(EventPage(loop_id, recorded, len(events), end if end < len(events) else None))


def follow_operation(hubs: Any) -> Operation:
    """The operation that follows loops."""

    async def follow_loop(asking: Asking) -> Answer | Stream:
        loop_id, query = asking.values["loop_id"], asking.query(FollowQuery)
        start = Position.read(asking.headers.get(_LAST) or query.after)
        length, over = await asking.service.standing(loop_id)
        if start.number > length:
            start = Position()  # it is none of this loop's
        if over and start.number == length:
            return Answer(status=204)  # which tells a browser not to come again
        hub: Hub = hubs(asking.service)
        return Stream(hub.follow(loop_id, start), None, {LOOP: loop_id}, again=True)

    return Operation(
        "GET",
        "/api/loops/{loop_id}/stream",
        "Follow a loop: events and pieces of answers, as they come",
        follow_loop,
        query=FollowQuery,
        gives={200: Stream, 204: None},
        problems=(404,),
        long=True,
        about="Events: `event` (a number and an event of the journal), `piece` (a stream event of an answer "
        "that is not recorded yet), and last `over`, or `problem`. Each has an id; who sends the last one as "
        "`Last-Event-ID` goes on just after it. 204: the loop is over, and all of it was told.",
    )


async def read_response(asking: Asking) -> Answer:
    """The response of a loop that is over."""
    loop_id = asking.values["loop_id"]
    _, over = await asking.service.standing(loop_id)
    if not over:
        stage = await asking.service.stage(loop_id)
        raise NotOver(f"loop {loop_id!r} is not over: it is {stage}. Follow it, or ask again later")
    return answer_of(await asking.service.response(loop_id), asking)


async def read_trajectory(asking: Asking) -> Answer:
    """A loop's model calls and tool calls."""
    query = asking.query(TrajectoryQuery)
    events, _ = await asking.service.load(asking.values["loop_id"])
    return Answer(trajectory(events, query.detail).write())


async def send_signal(asking: Asking) -> Answer:
    """Say something to a loop."""
    said, loop_id = await asking.document(Said), asking.values["loop_id"]
    by = asking.principal.name or said.by  # who has a token speaks under its name
    signal = Signal(said.type, said.id, by, said.text, said.call_id)
    signal = await sent_as(asking.service, loop_id, signal)
    return Answer(Stood(loop_id, await asking.service.signal(loop_id, signal, who=asking.person)))


async def give_results(asking: Asking) -> Answer:
    """Give a loop results of calls that wait for them."""
    given, loop_id = await asking.document(Results), asking.values["loop_id"]
    results = [
        DeferredToolResult(one.tool_name, one.tool_call_id, one.content, one.is_error)
        for one in given.results
    ]
    return Answer(Stood(loop_id, await asking.service.answer(loop_id, results, who=asking.person)))


async def resume_loop(asking: Asking) -> Answer:
    """Have a loop driven on."""
    wanted, loop_id = await asking.document(Resumption, optional=True), asking.values["loop_id"]
    by = asking.principal.name
    retry = Signal(SignalType.RETRY, by=by) if wanted.retry else None
    await asking.service.resume(loop_id, retry=retry, who=asking.person)
    return Answer(Begun(loop_id), 202, {LOOP: loop_id})


async def fork_loop(asking: Asking) -> Answer:
    """Begin a loop that shares another's first turns."""
    if (person := asking.person) is not None:  # it goes on from what was said there
        asking.service.policy.permissions.check(person, Permission.VIEW)
    fork, loop_id = await asking.document(Fork), asking.values["loop_id"]
    changes: dict[str, Any] = {}
    if fork.model is not None:
        changes["model"] = asking.service.model(fork.model)
    if fork.instructions is not None:
        changes["instructions"] = fork.instructions
    try:
        forked = await asking.service.fork(
            loop_id,
            fork.turn,
            prompt=fork.prompt,
            new_loop_id=fork.loop_id,
            who=asking.person,
            **changes,
        )
    except UserError as error:
        error.details.setdefault("field", "turn")
        raise
    return Answer(Begun(forked), 201, {LOOP: forked, "Location": f"/api/loops/{forked}"})


def loop_operations(hubs: Any) -> list[Operation]:
    """The operations that are about loops. `hubs` gives the hub of a service."""
    base = "/api/loops/{loop_id}"
    return [
        Operation(
            "GET",
            f"{base}/events",
            "A loop's journal",
            read_events,
            query=EventsQuery,
            gives={200: EventPage},
            problems=(404,),
        ),
        follow_operation(hubs),
        Operation(
            "GET",
            f"{base}/response",
            "The response of a loop that is over",
            read_response,
            gives={200: SystemResponse},
            problems=(404, 408, 409),
        ),
        Operation(
            "GET",
            f"{base}/trajectory",
            "A loop's model calls and tool calls, with SemStreams' keys",
            read_trajectory,
            query=TrajectoryQuery,
            problems=(404,),
        ),
        Operation(
            "POST",
            f"{base}/signals",
            "Say something to a loop",
            send_signal,
            scope=Scope.SIGNAL,
            body=Said,
            gives={200: Stood},
            problems=(404, 409),
        ),
        Operation(
            "POST",
            f"{base}/results",
            "Give a loop results of calls that wait for them",
            give_results,
            scope=Scope.SIGNAL,
            body=Results,
            gives={200: Stood},
            problems=(404, 409),
        ),
        Operation(
            "POST",
            f"{base}/resume",
            "Go on with a loop that nobody drives, or try one again",
            resume_loop,
            scope=Scope.RUN,
            body=Resumption,
            body_optional=True,
            gives={202: Begun},
            problems=(404, 409),
        ),
        Operation(
            "POST",
            f"{base}/fork",
            "Go on from a loop's first turns, in a loop of its own",
            fork_loop,
            scope=Scope.RUN,
            body=Fork,
            gives={201: Begun},
            problems=(404, 409),
        ),
    ]

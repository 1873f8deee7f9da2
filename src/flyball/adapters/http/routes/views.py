"""Loops as people look at them: in a few words, step by step, explained."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct, convert
from msgspec.structs import asdict, replace

from flyball.adapters.http.asking import Answer, Asking
from flyball.adapters.http.operations import Operation
from flyball.core.errors import InvalidRequest
from flyball.orchestrate.accounts import UsageReport
from flyball.orchestrate.catalogue import LoopPage, LoopQuery
from flyball.orchestrate.family import WaitingCall
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.projections.course import CourseStep, course
from flyball.orchestrate.projections.diagram import DiagramNode, diagram
from flyball.orchestrate.projections.explanation import Explanation, explain
from flyball.orchestrate.projections.summary import LoopSummary


class ListQuery(Struct, frozen=True):
    """Which loops; see `LoopQuery`. `stage` may name several, with commas; times are seconds since 1970."""

    text: str = ""
    stage: str = ""
    agent: str = ""
    model: str = ""
    session_id: str = ""
    since: float | None = None
    until: float | None = None
    roots_only: bool = False
    limit: Annotated[int, Meta(ge=1, le=200)] = 50
    cursor: str = ""
    user_id: str = ""
    channel: str = ""


class UsageQuery(Struct, frozen=True):
    """Of which loops; as in a list of them."""

    agent: str = ""
    model: str = ""
    session_id: str = ""
    since: float | None = None
    until: float | None = None


class WhyQuery(Struct, frozen=True):
    """Which turn; without it, all of them."""

    turn: Annotated[int, Meta(ge=1)] | None = None


class Course(Struct, frozen=True):
    """The steps of a loop, in the order in which they began."""

    loop_id: str
    steps: tuple[CourseStep, ...]


class Diagram(Struct, frozen=True):
    """A flow's steps in their structure, each with how it stands; None of a loop that is no flow."""

    loop_id: str
    flow: DiagramNode | None


class Waiting(Struct, frozen=True):
    """The calls of a loop, and of the loops under it, that wait for an approval or for their results."""

    loop_id: str
    calls: tuple[WaitingCall, ...]


async def list_loops(asking: Asking) -> Answer:
    """Loops, the newest first."""
    query = asking.query(ListQuery)
    stages = tuple([one.strip() for one in query.stage.split(",") if one.strip()])
    return Answer(await asking.service.loops(convert({**asdict(query), "stage": stages}, LoopQuery)))


async def read_usage(asking: Asking) -> Answer:
    """What loops have used and cost."""
    return Answer(await asking.service.usage(convert(asdict(asking.query(UsageQuery)), LoopQuery)))


async def read_loop(asking: Asking) -> Answer:
    """A loop in a few words."""
    return Answer(await asking.service.summary(asking.values["loop_id"]))


async def read_course(asking: Asking) -> Answer:
    """A loop step by step."""
    loop_id = asking.values["loop_id"]
    events, _ = await asking.service.load(loop_id)
    return Answer(Course(loop_id, course(events)))


async def explain_loop(asking: Asking) -> Answer:
    """A loop explained: what was sent, what came back, what decided."""
    loop_id, query = asking.values["loop_id"], asking.query(WhyQuery)
    events, _ = await asking.service.load(loop_id)
    told = explain(events)
    if query.turn is not None:
        turns = tuple([turn for turn in told.turns if turn.number == query.turn])
        if not turns:
            raise InvalidRequest(f"loop {loop_id!r} has no turn {query.turn}", field="turn")
        told = replace(told, turns=turns)
    return Answer(told)


async def read_diagram(asking: Asking) -> Answer:
    """A flow as it is drawn."""
    loop_id = asking.values["loop_id"]
    _, state = await asking.service.load(loop_id)
    return Answer(Diagram(loop_id, diagram(state) if isinstance(state, FlowState) else None))


async def read_waiting(asking: Asking) -> Answer:
    """What a loop waits for."""
    loop_id = asking.values["loop_id"]
    return Answer(Waiting(loop_id, await asking.service.waiting(loop_id)))


def view_operations() -> list[Operation]:
    """The operations that show loops."""
    base = "/api/loops/{loop_id}"
    return [
        Operation(
            "GET",
            "/api/loops",
            "Loops, the newest first, of those that have all that is asked for",
            list_loops,
            query=ListQuery,
            gives={200: LoopPage},
            about="A page may have fewer loops than its limit, and still a `next`: the next page's cursor.",
        ),
        Operation(
            "GET",
            "/api/usage",
            "What loops have used and cost, by agent, model and day",
            read_usage,
            query=UsageQuery,
            gives={200: UsageReport},
            tag="agents",
        ),
        Operation("GET", base, "A loop in a few words", read_loop, gives={200: LoopSummary}, problems=(404,)),
        Operation(
            "GET",
            f"{base}/course",
            "A loop step by step: model calls, tool calls, signals, each with its time",
            read_course,
            gives={200: Course},
            problems=(404,),
        ),
        Operation(
            "GET",
            f"{base}/why",
            "A loop explained: what was sent at each turn, what came back, what decided, what may be done",
            explain_loop,
            query=WhyQuery,
            gives={200: Explanation},
            problems=(404,),
        ),
        Operation(
            "GET",
            f"{base}/diagram",
            "A flow (a plan, a vote) as it is drawn: its steps, and how each stands",
            read_diagram,
            gives={200: Diagram},
            problems=(404,),
        ),
        Operation(
            "GET",
            f"{base}/waiting",
            "The calls of a loop, and of those under it, that wait for somebody",
            read_waiting,
            gives={200: Waiting},
            problems=(404,),
        ),
    ]

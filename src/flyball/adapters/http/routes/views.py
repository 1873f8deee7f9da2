"""Loops as people look at them: in a few words, step by step, explained."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from flyball.adapters.http.asking import Answer, Asking
from flyball.adapters.http.operations import Operation
from flyball.core.errors import InvalidRequest
from flyball.orchestrate.family import WaitingCall
from flyball.orchestrate.projections.course import CourseStep, course
from flyball.orchestrate.projections.explanation import Explanation, explain
from flyball.orchestrate.projections.summary import LoopSummary


class WhyQuery(Struct, frozen=True):
    """Which turn; without it, all of them."""

    turn: Annotated[int, Meta(ge=1)] | None = None


class Course(Struct, frozen=True):
    """The steps of a loop, in the order in which they began."""

    loop_id: str
    steps: tuple[CourseStep, ...]


class Waiting(Struct, frozen=True):
    """The calls of a loop, and of the loops under it, that wait for an approval or for their results."""

    loop_id: str
    calls: tuple[WaitingCall, ...]


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


async def read_waiting(asking: Asking) -> Answer:
    """What a loop waits for."""
    loop_id = asking.values["loop_id"]
    return Answer(Waiting(loop_id, await asking.service.waiting(loop_id)))


def view_operations() -> list[Operation]:
    """The operations that show loops."""
    base = "/api/loops/{loop_id}"
    return [
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
            f"{base}/waiting",
            "The calls of a loop, and of those under it, that wait for somebody",
            read_waiting,
            gives={200: Waiting},
            problems=(404,),
        ),
    ]

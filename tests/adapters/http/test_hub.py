"""Followers of one loop: whoever comes, from wherever, is told each event once and each answer whole."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from flyball.adapters.http.course import Course, Item
from flyball.adapters.http.frames import HEARTBEAT
from flyball.adapters.http.hub import Hub
from flyball.adapters.http.position import Position
from flyball.core.errors import JournalUnreachable
from flyball.core.events import ModelAnswered, SignalReceived, Stage
from flyball.core.messages import Message
from flyball.core.signals import Signal, SignalType
from flyball.inference.stream import Restart, StreamEvent
from flyball.orchestrate.followed import Recorded
from tests.adapters.http.running import Told, events_in
from tests.adapters.http.test_position import joined, said
from tests.inference.strategies import messages, streams

PAUSE = SignalReceived(0.0, Signal(SignalType.PAUSE))


@st.composite
def courses(draw: st.DrawFn, answers: Sequence[Message]) -> list[Item]:
    """A loop as it is told: its answers in pieces, cut anywhere, each with its event, and signals between."""
    told: list[Item] = [Recorded(1, PAUSE)]
    for turn, answer in enumerate(answers, 1):
        pieces = draw(streams(answer))
        middle = draw(st.integers(0, len(pieces)))
        told += pieces[:middle]
        if turn % 2 == 0:
            told.append(Recorded(_number(told), PAUSE))  # somebody speaks in the middle of an answer
        told += pieces[middle:]
        told.append(Recorded(_number(told), ModelAnswered(0.0, turn, answer)))
    return told


def _number(told: Sequence[Item]) -> int:
    return len([one for one in told if isinstance(one, Recorded)]) + 1


async def heard(course: Course, start: Position) -> list[Told]:
    """What a follower is told, to the end."""
    text = b"".join([batch async for batch in course.follow(start)])
    return events_in(text.decode())


def a_course(items: Sequence[Item], base: int = 0) -> Course:
    course = Course(base)
    for item in items:
        course.tell(item)
    course.end(b"event: over\ndata: {}\n\n")
    return course


def understood(told: Sequence[Told]) -> tuple[list[int], list[list[tuple[str, ...]]]]:
    """The events that somebody was told, and what it made of the pieces of each answer."""
    numbers: list[int] = []
    answers: list[list[tuple[str, ...]]] = []
    pieces: list[StreamEvent] = []
    for one in told:
        if one.event == "piece":
            pieces.append(convert(one.data, StreamEvent))
        elif one.event == "event":
            numbers.append(one.data["number"])
            if one.data["event"]["event"] == "model_answered":
                answers.append(said(joined(pieces)))
                pieces = []
    return numbers, answers


@given(st.lists(messages, max_size=3), st.data())
def test_who_comes_back_is_told_the_rest(answers: list[Message], data: st.DataObject) -> None:
    items, others = data.draw(courses(answers)), data.draw(courses(answers))

    async def check() -> None:
        first = await heard(a_course(items), Position())
        whole = understood(first)
        assert whole[0] == list(range(1, _number(items)))
        assert whole[1] == [said(answer) for answer in answers]
        cut = data.draw(st.integers(1, len(first) - 1))
        seen = first[:cut]
        start = Position.read(seen[-1].id)
        # The same server; the same, from a course that was begun later; and another one.
        for course in (
            a_course(items),
            a_course(others),
            a_course(_after(items, start.number), start.number),
        ):
            rest = await heard(course, start)
            assert understood([*seen, *rest]) == whole, start

    asyncio.run(check())


def _after(items: Sequence[Item], number: int) -> list[Item]:
    """What is told to who follows from an event's number on: the answer under way from its beginning."""
    recorded = [one for one in items if isinstance(one, Recorded) and one.number <= number]
    if not recorded:
        return list(items)
    ends = [one for one in recorded if isinstance(one.event, ModelAnswered)]
    begins = items.index(ends[-1]) + 1 if ends else 0
    return [one for one in items[begins:] if not (isinstance(one, Recorded) and one.number <= number)]


async def test_somebody_who_comes_in_the_middle_is_told_as_it_goes_on() -> None:
    course = Course(0)
    course.tell(Recorded(1, PAUSE))
    async with aclosing(course.follow(Position())) as early, aclosing(course.follow(Position(1))) as late:
        assert b"id: 1\n" in await anext(early)
        waiting = asyncio.ensure_future(anext(late))
        course.tell(Restart())
        assert b"restart" in await waiting
        assert b"restart" in await anext(early)
        course.tick()
        assert await anext(late) == HEARTBEAT
        course.end(b"event: over\ndata: {}\n\n")
        assert b"over" in await anext(late)


async def test_a_loop_is_read_once_for_all_who_follow_it_and_let_go_of_with_the_last() -> None:
    readers: list[str] = []
    left = asyncio.Event()
    go = asyncio.Event()

    async def follow(loop_id: str, after: int) -> AsyncGenerator[Item]:
        readers.append(loop_id)
        try:
            yield Recorded(after + 1, PAUSE)
            await go.wait()
        finally:
            left.set()

    async def stage(_: str) -> Stage:
        return Stage.COMPLETE

    hub = Hub(follow, stage)
    following = [hub.follow("it", Position()) for _ in range(5)]
    for one in following:
        assert b"id: 1\n" in await anext(one)
    assert readers == ["it"]
    for one in following:
        await one.aclose()
    await left.wait()
    again = hub.follow("it", Position())
    assert b"id: 1\n" in await anext(again)
    assert readers == ["it", "it"]
    go.set()
    assert b'"stage":"complete"' in b"".join([batch async for batch in again])


async def test_a_journal_that_cannot_be_read_is_told_as_a_problem() -> None:
    async def follow(loop_id: str, after: int) -> AsyncGenerator[Item]:
        yield Recorded(1, PAUSE)
        raise JournalUnreachable("the server is away")

    async def stage(_: str) -> Stage:
        return Stage.COMPLETE

    told = events_in(
        b"".join([batch async for batch in Hub(follow, stage).follow("it", Position())]).decode()
    )
    assert [one.event for one in told] == ["event", "problem"]
    assert told[-1].data["code"] == "ORCHESTRATION_JOURNAL_UNREACHABLE"

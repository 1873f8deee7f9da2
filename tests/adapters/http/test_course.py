"""A course of a loop that is told: each is told all of it, wherever it joins, and little of it is kept."""

from __future__ import annotations

from contextlib import aclosing

from hypothesis import given
from hypothesis import strategies as st

from flyball.adapters.http.course import Course, Node
from flyball.adapters.http.position import Position
from flyball.inference.stream import Assembler, PartEnd, Restart, StreamEvent, TextDelta, ThinkingDelta
from tests.adapters.http.running import events_in

PIECES = st.lists(
    st.one_of(
        st.builds(TextDelta, st.just(0), st.text("ab\n ", max_size=3)),
        st.builds(TextDelta, st.just(1), st.text("ab", max_size=3)),
        st.builds(ThinkingDelta, st.just(2), st.text("ab", max_size=3)),
        st.just(Restart()),
    ),
    max_size=400,
)


def kept(course: Course) -> list[Node]:
    """The frames that somebody is told who comes now."""
    found: list[Node] = []
    node = course._events[course.base].next  # pyright: ignore[reportPrivateUsage]
    while node is not None:
        found.append(node)
        node = node.next
    return found


def message(events: list[StreamEvent]) -> str:
    """What comes of some pieces."""
    assembler = Assembler()
    for event in events:
        assembler.feed(event)
    return repr(assembler.message())


async def some(course: Course, start: Position) -> bytes:
    """What a follower is given now."""
    async with aclosing(course.follow(start)) as batches:
        return await anext(batches)


@given(PIECES)
def test_whoever_comes_is_told_the_same(pieces: list[StreamEvent]) -> None:
    course = Course(0)
    for piece in pieces:
        course.tell(piece)
    items = [node.item for node in kept(course)]
    given = [item for item in items if isinstance(item, StreamEvent)]
    assert len(given) == len(items)
    assert message(given) == message(pieces)


def test_a_long_answer_is_kept_in_a_few_frames() -> None:
    course, text = Course(0), ""
    for number in range(10_000):
        course.tell(TextDelta(0, f"{number} "))
        text += f"{number} "
    course.tell(PartEnd(0))
    frames = kept(course)
    assert len(frames) < 10_000 / 60 + 70
    assert "".join([node.item.text for node in frames if isinstance(node.item, TextDelta)]) == text
    assert str(frames[-1].position).startswith(f"0.{len(text) + 1}.1.")


async def test_who_is_in_the_middle_goes_on_piece_by_piece() -> None:
    course = Course(0)
    course.tell(TextDelta(0, "begin "))
    async with aclosing(course.follow(Position())) as batches:
        told = [await anext(batches)]
        for number in range(200):
            course.tell(TextDelta(0, f"{number} "))
            told.append(await anext(batches))
    pieces = [one.data["text"] for one in events_in(b"".join(told).decode())]
    assert pieces == ["begin ", *[f"{number} " for number in range(200)]]
    later = [one.data["text"] for one in events_in((await some(course, Position())).decode())]
    assert "".join(later) == "".join(pieces)
    assert len(later) < 100
    *_, last = events_in(b"".join(told[:51]).decode())
    back = await some(course, Position.read(last.id))  # which is in the middle of what was put together
    rest = [one.data["text"] for one in events_in(back.decode())]
    assert "".join(rest) == "".join(pieces[51:])

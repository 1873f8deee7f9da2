"""The text of answers: each piece once, also where an answer begins again."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import StreamRestarted
from flyball.core.messages import Text, Thinking
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
)
from flyball.inference.text import text_pieces, text_so_far
from tests.inference.strategies import pieces


async def source(events: Iterable[StreamEvent]) -> AsyncGenerator[StreamEvent]:
    for event in events:
        yield event


def said(*texts: str) -> list[StreamEvent]:
    return [TextDelta(0, text) for text in texts]


async def read(events: Iterable[StreamEvent]) -> list[str]:
    return [piece async for piece in text_pieces(source(events))]


async def grown(events: Iterable[StreamEvent]) -> list[str]:
    return [text async for text in text_so_far(source(events))]


async def test_text_comes_from_deltas_starts_and_ends() -> None:
    events = [
        PartStart(0, Thinking("hm")),
        ThinkingDelta(0, "hm"),
        PartStart(1, Text("a")),
        TextDelta(1, ""),
        TextDelta(1, "b"),
        PartEnd(1, Text("ab")),
        PartEnd(2, Text("c")),
        Finish(),
        TextDelta(0, "d"),
        Finish(),
    ]
    assert await read(events) == ["a", "b", "c", "d"]
    assert await grown(events) == ["a", "ab", "abc", "abcd"]


@given(st.data(), st.text(min_size=1), st.text())
async def test_what_is_repeated_is_given_once_however_it_is_cut(
    data: st.DataObject, text: str, before: str
) -> None:
    first = data.draw(pieces(text[: data.draw(st.integers(0, len(text)))]))
    again = data.draw(pieces(text))
    events = [*said(before), Finish(), *said(*first), Restart(), *said(*again), Finish()]
    assert "".join(await read(events)) == before + text
    assert (await grown(events))[-1] == before + text


@pytest.mark.parametrize(
    "events",
    [
        [*said("one ", "two"), Restart(), *said("one ", "four")],
        [*said("one ", "two"), Restart(), *said("one two", " "), Restart(), *said("one two!")],
        [*said("one two"), Restart(), *said("one"), Finish()],
        [*said("one two"), Restart(), Finish()],
    ],
)
async def test_other_text_than_was_given_is_an_error_that_tells_what_is_void(
    events: list[StreamEvent],
) -> None:
    given_out: list[str] = []

    async def reading() -> None:
        async for piece in text_pieces(source([*said("yes. "), Finish(), *events])):
            given_out.append(piece)

    with pytest.raises(StreamRestarted, match="void") as caught:
        await reading()
    assert "".join(given_out) == "yes. " + caught.value.details["void"]


async def test_all_the_text_so_far_may_become_less() -> None:
    assert await grown([*said("one ", "two"), Restart(), *said("four"), Finish()]) == [
        "one ",
        "one two",
        "four",
    ]
    assert await grown([*said("one"), Restart(), Finish()]) == ["one", ""]


async def test_nothing_was_given_so_nothing_is_void() -> None:
    assert await read([ThinkingDelta(0, "hm"), Restart(), *said("yes"), Finish()]) == ["yes"]


async def test_an_answer_that_is_broken_off_while_it_is_repeated_leaves_what_was_given() -> None:
    assert await read([*said("one ", "two"), Restart(), *said("one ")]) == ["one ", "two"]

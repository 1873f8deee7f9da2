"""Pieces that are gathered for a while: nothing is lost, nothing is held back for longer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import UserError
from flyball.inference.debouncing import debounced
from tests.patience import PATIENCE

HOUR = 3600.0


class Source:
    """Pieces, and what became of their reading."""

    def __init__(self, *pieces: str | asyncio.Event | Exception) -> None:
        self.left = list(pieces)
        self.closed = False

    async def __call__(self) -> AsyncGenerator[str]:
        try:
            while self.left:
                piece = self.left.pop(0)
                if isinstance(piece, asyncio.Event):
                    await piece.wait()
                elif isinstance(piece, Exception):
                    raise piece
                else:
                    yield piece
        finally:
            self.closed = True


async def read(pieces: Iterable[str], window: float, *, joined: bool) -> list[str]:
    return [text async for text in debounced(Source(*pieces)(), window, joined=joined)]


@given(st.lists(st.text(min_size=1, max_size=3)), st.sampled_from([0.0, HOUR]))
def test_nothing_is_lost(pieces: list[str], window: float) -> None:
    given_out = asyncio.run(read(pieces, window, joined=True))
    assert "".join(given_out) == "".join(pieces)
    assert all(given_out)
    if window == HOUR:
        assert len(given_out) == bool(pieces)


async def test_of_texts_so_far_the_last_one_stands() -> None:
    assert await read(["a", "ab", "abc"], HOUR, joined=False) == ["abc"]
    assert await read(["a", "ab", "abc"], 0.0, joined=False) == ["a", "ab", "abc"]


async def test_what_has_come_is_given_out_while_more_is_waited_for() -> None:
    more = asyncio.Event()
    source = Source("a", "b", more, "c")
    texts = debounced(source(), 0.001, joined=True)
    assert await asyncio.wait_for(anext(texts), PATIENCE) in ("a", "ab")
    more.set()
    rest = "".join([text async for text in texts])
    assert rest in ("bc", "c")
    assert source.closed


async def test_who_stops_reading_ends_what_is_under_way() -> None:
    source = Source("a", asyncio.Event(), "never")
    texts = debounced(source(), 0.0, joined=True)
    assert await anext(texts) == "a"
    await texts.aclose()
    assert source.closed


async def test_a_reader_that_is_cancelled_while_it_waits() -> None:
    source = Source(asyncio.Event())
    waiting = asyncio.ensure_future(anext(debounced(source(), HOUR, joined=True)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert source.closed


async def test_an_error_passes_after_what_had_come() -> None:
    source = Source("a", "b", ValueError("broken"))
    texts = debounced(source(), HOUR, joined=True)
    assert await anext(texts) == "ab"
    with pytest.raises(ValueError, match="broken"):
        await anext(texts)
    assert source.closed


@pytest.mark.parametrize("window", [-1, float("nan"), float("inf"), "soon"])
def test_no_window(window: float) -> None:
    with pytest.raises(UserError, match="debounce_by= takes seconds"):
        debounced(Source()(), window, joined=True)

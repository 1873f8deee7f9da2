"""Server-sent events are the same however their bytes are cut, and what the vendors' own clients read."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai._streaming import SSEDecoder

from flyball.core.errors import UnexpectedModelBehavior
from flyball.engines.wire import sse
from flyball.engines.wire.sse import EventReader

_lines = st.sampled_from([
    b"data: {}", b"data:x", b"data", b"data:  two", b"event: ping", b": a comment", b"", b"id: 7",
    b"retry: 1", b"datax: no", "data: \u6f22\u5b57 \u2028".encode(), b"data: [DONE]",
])  # fmt: skip
_ends = st.sampled_from([b"\n", b"\r\n", b"\r"])


def cut(whole: bytes, places: list[int]) -> list[bytes]:
    at = sorted({0, len(whole), *(place % (len(whole) + 1) for place in places)})
    return [whole[one:other] for one, other in pairwise(at)]


def read(pieces: list[bytes]) -> list[bytes]:
    reader = EventReader()
    return [data for piece in pieces for data in reader.feed(piece)]


@given(lines=st.lists(st.tuples(_lines, _ends)), places=st.lists(st.integers(0, 10_000)), mark=st.booleans())
def test_cuts_change_nothing(lines: list[tuple[bytes, bytes]], places: list[int], mark: bool) -> None:
    whole = (b"\xef\xbb\xbf" if mark else b"") + b"".join(line + end for line, end in lines) + b"\n\n"
    assert read(cut(whole, places)) == read([whole]) == read([whole[at : at + 1] for at in range(len(whole))])


@given(lines=st.lists(st.tuples(_lines, st.sampled_from([b"\n", b"\r\n"]))))
def test_the_official_client_reads_the_same(lines: list[tuple[bytes, bytes]]) -> None:
    whole = b"".join(line + end for line, end in lines) + b"\n\n"
    theirs = [event.data.encode() for event in SSEDecoder().iter_bytes(iter([whole])) if event.data]
    # It cuts lines at characters like U+2028, too, which the standard does not know as ends of lines.
    if "\u2028".encode() not in whole:
        assert [data for data in read([whole]) if data] == theirs


def test_an_event_that_nothing_ended_is_not_given() -> None:
    assert read([b"data: a\n\ndata: b\n"]) == [b"a"]


def test_an_event_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LONGEST", 100)
    reader = EventReader()
    reader.feed(b"data: " + b"x" * 80)
    with pytest.raises(UnexpectedModelBehavior, match="more than 100 bytes"):
        reader.feed(b"x" * 80)
    several = EventReader()
    for _ in range(3):
        several.feed(b"data: " + b"x" * 20 + b"\n")
    with pytest.raises(UnexpectedModelBehavior):
        several.feed(b"data: " + b"x" * 40)


def test_long_streams_take_no_longer_than_their_length() -> None:
    reader, found = EventReader(), 0
    for _ in range(20_000):
        found += len(reader.feed(b"data: " + b"x" * 50 + b"\n\n"))
    assert found == 20_000

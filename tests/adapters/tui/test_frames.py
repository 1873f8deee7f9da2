"""Server-sent events out of bytes: the same however the bytes are cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from flyball.adapters.http.frames import HEARTBEAT, frame
from flyball.adapters.tui.frames import Frame, Frames

DOCUMENTS = st.dictionaries(st.text(max_size=5), st.text(max_size=20), max_size=3)
NAMES = st.sampled_from(["event", "piece", "over"])
SENT = st.lists(st.tuples(NAMES, DOCUMENTS, st.sampled_from(["", "7", "3.2.1.00ff"])))


@given(SENT, st.integers(1, 40), st.booleans())
def test_events_are_what_was_sent_however_it_is_cut(
    sent: list[tuple[str, dict[str, str], str]], size: int, beats: bool
) -> None:
    written = [frame(*one) for one in sent]
    stream = (HEARTBEAT if beats else b"").join([b"", *written])
    frames = Frames()
    got = [one for start in range(0, len(stream), size) for one in frames.feed(stream[start : start + size])]
    assert [(one.event, one.id) for one in got] == [(name, identifier) for name, _, identifier in sent]
    assert [frame(one.event, one.data, one.id) for one in got] == written


def test_a_frame_that_is_not_complete_is_kept_for_later() -> None:
    frames = Frames()
    assert list(frames.feed(b"event: piece\ndata: {")) == []
    assert list(frames.feed(b"}\n")) == []
    assert list(frames.feed(b"\n: still here\n\n")) == [Frame("piece", b"{}")]

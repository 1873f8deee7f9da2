"""Headers are read as the client library reads them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from flyball.runtime.nats.client import FastClient

# pyright: reportPrivateUsage=false

_lines = st.one_of(
    st.binary(max_size=20),
    st.tuples(st.sampled_from([b"A", b" Nats-Msg-Id ", b"B C", b"\xff", b""]), st.binary(max_size=12)).map(
        lambda pair: pair[0] + b":" + pair[1]
    ),
)


@given(st.lists(_lines, max_size=6))
def test_the_same_headers_are_found(lines: list[bytes]) -> None:
    raw = b"\r\n".join(lines)
    expected = Client._parse_header_lines(raw)
    # An empty name is no name: the library keeps it, and nobody can ask for it by a name.
    expected.pop("", None)
    assert FastClient._parse_header_lines(raw) == expected
    assert FastClient._parse_header_lines(raw) == expected  # from memory, too

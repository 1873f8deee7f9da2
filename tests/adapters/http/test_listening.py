"""The socket that is listened at."""

from __future__ import annotations

import socket

import pytest

from flyball.adapters.http.server import is_loopback, listening
from flyball.core.errors import UserError


def test_answers_are_not_held_back() -> None:
    with listening("127.0.0.1", 0) as opened:
        # asyncio switches Nagle's algorithm off for sockets that say so, and for those that they accept.
        assert opened.proto == socket.IPPROTO_TCP


def test_where_somebody_else_listens_it_says_so() -> None:
    with listening("127.0.0.1", 0) as opened, pytest.raises(UserError, match="choose another --port"):
        listening("127.0.0.1", opened.getsockname()[1])


@pytest.mark.parametrize(
    ("host", "here"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("0.0.0.0", False), ("a.b", False)],
)
def test_what_only_this_machine_reaches(host: str, here: bool) -> None:
    assert is_loopback(host) is here

"""The client, where the server is none of flyball's, or the token none."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st

from flyball.adapters.tui.address import address
from flyball.adapters.tui.client import Client
from flyball.adapters.tui.connection import Connection, Unreachable
from flyball.core.errors import UserError


@asynccontextmanager
async def answering(text: str, status: int = 200) -> AsyncGenerator[Client]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=text, status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    connection = Connection(f"http://127.0.0.1:{runner.addresses[0][1]}")
    try:
        yield Client(connection)
    finally:
        await connection.aclose()
        await runner.cleanup()


@pytest.mark.parametrize("text", ["<html>", '{"x": 1}', "[]", ""])
async def test_an_answer_that_is_none_of_flyballs_is_told_as_such(text: str) -> None:
    async with answering(text) as client:
        with pytest.raises(UserError, match="none of flyball's"):
            await client.agents()


@pytest.mark.parametrize("status", [502, 503, 504])
async def test_a_proxy_without_its_server_is_a_server_that_is_away(status: int) -> None:
    async with answering("<html>Bad Gateway", status) as client:
        with pytest.raises(Unreachable):
            await client.agents()


@pytest.mark.parametrize(
    "url",
    [
        *("", "http://", "http:///x", "http://?", "http://:8000", "127.0.0.1:8000", "ftp://127.0.0.1"),
        *("http://[::1", "http://[]:1", "http://[::1]x:1", "http://[x]:1"),
        *("http://h:99999", "http://h:0", "http://h:-1", "http://h:x", "http://h:٨٧"),
        *("http://a b", "http://h :80", "http://a..b", "http://.", f"http://{'a' * 300}", "http://%zz"),
        *("http://\x1b[2J", "http://\u202eh", "http://\ud800", "http://h/?x", "http://h#x"),
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UserError, match="--server "):
        Connection(url)


@pytest.mark.parametrize("who", ["ann:secret@", ":secret@", "ann@", "ann:secret@@", "a:secret@[::1:"])
def test_a_password_in_an_address_is_refused_and_not_shown(who: str) -> None:
    with pytest.raises(UserError) as refused:
        Connection(f"http://{who}127.0.0.1:8000")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("typed", "asked"),
    [
        (" HTTP://127.0.0.1:8000/ ", "http://127.0.0.1:8000"),
        ("https://example.org/flyball/", "https://example.org/flyball"),
        ("http://[0:0::1]:8000", "http://[::1]:8000"),
        ("http://[fe80::1%25lo]:1", "http://[fe80::1%25lo]:1"),
        ("http://münchen.example", "http://xn--mnchen-3ya.example"),
        ("http://my_server.local.", "http://my_server.local."),
    ],
)
def test_an_address_is_read_as_it_is_meant(typed: str, asked: str) -> None:
    assert address(typed) == asked
    assert address(asked) == asked


@given(st.text())
def test_any_text_is_an_address_or_refused(text: str) -> None:
    for url in (text, f"http://{text}"):
        try:
            assert address(address(url)) == address(url)
        except UserError:
            pass


@pytest.mark.parametrize("token", ["a\nb", "\x1b[31m", "é"])
def test_a_token_that_can_be_none_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(UserError) as refused:
        Connection("http://127.0.0.1:1", token)
    assert token not in str(refused.value)
    assert Connection("http://127.0.0.1:1", " fly_x\n")

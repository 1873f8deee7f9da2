"""The client, where the server is none of flyball's, or the token none."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

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


@pytest.mark.parametrize("token", ["a\nb", "\x1b[31m", "é"])
def test_a_token_that_can_be_none_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(UserError) as refused:
        Connection("http://127.0.0.1:1", token)
    assert token not in str(refused.value)
    assert Connection("http://127.0.0.1:1", " fly_x\n")

"""What a server refuses is told at once, by an error that names the subject, and not by waiting in vain."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from flyball.core.errors import PermissionDenied
from flyball.runtime.nats import NatsOptions
from flyball.runtime.nats.bus import Bus
from flyball.runtime.nats.connection import Connection, connect
from flyball.runtime.nats.deliveries import Delivery, Postman
from flyball.runtime.nats.hiring import Post
from flyball.runtime.nats.layout import Layout
from tests.patience import PATIENCE
from tests.runtime.nats.test_coming_in import Guarded

MAY = """authorization { users: [ { user: "u", password: "p", permissions: {
  publish: ["$JS.API.INFO", "fly.nowhere"], subscribe: ["_INBOX.>"] } } ] }"""


@pytest.fixture
async def line(tmp_path: Path) -> AsyncGenerator[Connection]:
    async with Guarded(tmp_path / "server", MAY) as server:
        connection = await connect(NatsOptions((server.url,), user="u", password="p", patience=PATIENCE))
        yield connection
        await connection.aclose()


async def never(delivery: Delivery, error: Exception | None = None) -> None:
    raise AssertionError("there is nothing to do")


async def test_who_asks_what_he_may_not_is_told_at_once(line: Connection) -> None:
    began = time.monotonic()
    with pytest.raises(PermissionDenied, match=r"this user may not publish on agent\.task\.x") as caught:
        await line.request("agent.task.X", b"")
    assert caught.value.details == {
        "action": "publish",
        "subject": "agent.task.x",
        "role": "",
        "tenant": "",
    }
    with pytest.raises(PermissionDenied, match=r"publish on \$js.api.stream.info.journal_0"):
        await line.patiently(lambda: line.js.stream_info("JOURNAL_0"))  # asked by the client library
    assert time.monotonic() - began < PATIENCE / 2
    # Nobody else is disturbed by that.
    refused = asyncio.ensure_future(line.request("agent.task.X", b""))
    assert b"memory" in (await line.request("$JS.API.INFO", b"")).data
    with pytest.raises(PermissionDenied):
        await refused


async def test_who_hears_what_he_may_not_is_told_so(line: Connection) -> None:
    async def heard(message: Any) -> None:
        raise AssertionError("there is nothing to hear")

    await line.subscribe("agent.request.>", heard)
    with pytest.raises(PermissionDenied, match=r"may not hear agent.request.>"):
        await line.flush("agent.request.>")
    await line.flush("fly.x.*")


async def test_a_worker_that_may_not_take_messages_ends(line: Connection) -> None:
    postman = Postman(line, Post("AGENT", "loop", ("x",)), never, never, tally=Bus(line, Layout()))
    with pytest.raises(PermissionDenied, match=r"consumer.*agent.loop"):
        await asyncio.wait_for(postman.run(), PATIENCE)

"""A connection that is lost is shown, and mended by itself: nothing is lost and nothing comes twice."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flyball import Agent
from flyball.adapters.http.entry import serving_http
from flyball.adapters.http.hub import EVERY
from flyball.adapters.http.tokens import Tokens
from flyball.adapters.tui.approvals import Approvals
from flyball.adapters.tui.client import Client
from flyball.adapters.tui.connection import (
    _SILENCE,  # pyright: ignore[reportPrivateUsage] - it has to fit what the server promises
    Connection,
)
from flyball.adapters.tui.following import Following
from flyball.adapters.tui.page import TopLine
from flyball.adapters.tui.run import RunScreen
from flyball.adapters.tui.runs import RunsScreen
from flyball.core.ids import new_id
from flyball.core.signals import Signal, SignalType
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.projections.course import StepKind
from flyball.runtime.services import local_services
from tests.adapters.http.running import agents
from tests.adapters.tui.driving import Driven, answered, chat_with, driven
from tests.adapters.tui.test_runs import NONE_YET, asking
from tests.patience import PATIENCE


@asynccontextmanager
async def server(folder: Path, *given: Agent[Any, Any], port: int = 0, **options: Any) -> AsyncGenerator[str]:
    """A server over a file, which leaves what runs as it is when it ends."""
    tenants = local_services(given or agents(), folder / "runs.db")
    await tenants.open_known()
    try:
        async with serving_http(tenants, port=port, grace=0.0, **options) as url:
            yield url
    finally:
        await tenants.aclose()


def is_lost(ui: Driven) -> bool:
    """Whether it is shown that the connection is lost."""
    return ui.app.screen.query_one(TopLine).has_class("-lost") and "reconnecting" in ui.screen


def test_a_server_that_misses_three_beats_is_lost() -> None:
    assert _SILENCE == 3 * EVERY


async def test_the_end_is_told_at_once_also_after_a_look_that_took_ages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, looked = asyncio.Event(), asyncio.Event()

    async def slow(request: Request) -> str:
        await go_on.wait()
        return "Done."

    ages = itertools.count(0.0, 1_000.0)
    monkeypatch.setattr("flyball.adapters.tui.following.time", SimpleNamespace(monotonic=lambda: next(ages)))
    monkeypatch.setattr("flyball.adapters.tui.following._MOST", 3600.0)
    async with server(tmp_path, Agent(FunctionEngine(slow), name="slow")) as url:
        client = Client(Connection(url))
        await client.begin("slow", asking("Go"), "one")
        following = Following(client, "one", changed=looked.set, failed=lambda _: None)
        running = asyncio.ensure_future(following.run())
        await asyncio.wait_for(looked.wait(), PATIENCE)
        go_on.set()
        await asyncio.wait_for(running, PATIENCE)
        assert following.summary is not None
        assert following.summary.stage == "complete"
        await client.connection.aclose()


async def test_an_answer_goes_on_when_the_server_is_there_again(tmp_path: Path) -> None:
    go_on = asyncio.Event()

    async def whole(request: Request) -> str:
        return "One two three."

    async def pieces(request: Request) -> AsyncIterator[str]:
        yield "One "
        yield "two "
        await go_on.wait()
        yield "three."

    agent = Agent(FunctionEngine(whole, pieces), name="slow")
    async with server(tmp_path, agent) as url:
        port = int(url.rpartition(":")[2])
        ui_open = driven(url)
        ui = await ui_open.__aenter__()
        await chat_with(ui, "slow")
        await ui.write("Count")
        await ui.sees("One two")
    try:
        await ui.until(lambda: is_lost(ui), "that it is lost")
        go_on.set()
        async with server(tmp_path, agent, port=port):
            await ui.sees("One two three.")
            await answered(ui)
            assert not is_lost(ui)
            assert ui.said().count("One") == 1
            await ui.write("Again")
            await ui.until(lambda: ui.said().count("One two three.") == 2)
            await answered(ui)
    finally:
        await ui_open.__aexit__(None, None, None)


async def test_what_is_said_while_the_server_is_away_is_sent_when_it_is_there(tmp_path: Path) -> None:
    async with server(tmp_path) as url:
        port = int(url.rpartition(":")[2])
        ui_open = driven(url)
        ui = await ui_open.__aenter__()
        await chat_with(ui, "echo")
    try:
        await ui.write("Anybody there?")
        await ui.until(lambda: is_lost(ui), "that it is lost")
        await ui.sees("Anybody there?")
        async with server(tmp_path, port=port):
            await ui.sees("You said: Anybody there?")
            await answered(ui)
            assert len((await ui.app.client.loops()).loops) == 1
    finally:
        await ui_open.__aexit__(None, None, None)


async def test_what_is_decided_while_the_server_is_away_is_sent_when_it_is_there(tmp_path: Path) -> None:
    async with server(tmp_path) as url:
        port = int(url.rpartition(":")[2])
        ui_open = driven(url)
        ui = await ui_open.__aenter__()
        await chat_with(ui, "buyer")
        await ui.write("Pay")
        await ui.sees("buyer wants to call pay")
        await ui.until(lambda: ui.app.screen.query_one(Approvals).has_focus, "the focus")
        await ui.press("ctrl+o")
        await ui.opens(RunScreen)
        await ui.sees("buyer wants to call pay")
    try:
        await ui.press("a")
        await ui.sees("what was said will be sent when the server is back")
        await ui.press("escape", "escape")
        await ui.opens(RunsScreen)
        await ui.press("c")
        await ui.sees("↩ buyer  Pay")
        await ui.press("escape")
        await ui.opens(RunsScreen)
        async with server(tmp_path, port=port) as url:
            await ui.sees("complete")
            assert ui.app.client.owed == 0
            (run,) = (await ui.app.client.loops()).loops
            steps = [step.what for step in await ui.app.client.course(run.loop_id)]
            assert steps.count("approve") == 1
    finally:
        await ui_open.__aexit__(None, None, None)


async def test_what_is_said_to_a_loop_arrives_in_order_and_is_taken_once(tmp_path: Path) -> None:
    lost: list[str] = []
    async with server(tmp_path) as url:
        port = int(url.rpartition(":")[2])
    client = Client(Connection(url))
    client.connection.watch = lost.append
    try:
        saying = [
            asyncio.create_task(client.begin("buyer", asking("Pay"), "buying")),
            asyncio.create_task(client.signal("buying", Signal(SignalType.FEEDBACK, text="one"))),
            asyncio.create_task(client.signal("buying", Signal(SignalType.FEEDBACK, text="two"))),
        ]
        await asyncio.sleep(0)
        assert client.owed == 3
        async with server(tmp_path, port=port):
            await asyncio.gather(*saying)
            again = Signal(SignalType.PAUSE, id="once")
            await client.signal("buying", again)
            await client.signal("buying", again)
            said = [step.about for step in await client.course("buying") if step.kind is StepKind.SIGNAL]
            assert len(said) == 3
            assert ("one" in said[0], "two" in said[1]) == (True, True)
            assert client.owed == 0
    finally:
        await client.connection.aclose()


async def test_who_begins_before_the_server_does_waits_for_it(tmp_path: Path) -> None:
    async with server(tmp_path) as url:
        port = int(url.rpartition(":")[2])
    async with driven(url) as ui:
        await ui.until(lambda: is_lost(ui), "that it is lost")
        async with server(tmp_path, port=port):
            await ui.sees(NONE_YET)
            assert not is_lost(ui)


async def test_a_token_opens_a_server_that_asks_for_one(tmp_path: Path) -> None:
    file = tmp_path / "tokens.json"
    token, _ = Tokens(file).add("ann")
    async with server(tmp_path, tokens=file) as url:
        async with driven(url, token) as ui:
            await ui.sees(NONE_YET)
        async with driven(url, f"fly_{new_id()[:12]}_{'0' * 64}") as ui:
            await ui.sees("API_UNAUTHENTICATED")

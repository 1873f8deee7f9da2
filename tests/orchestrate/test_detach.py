"""Detach: a running tool is asked to move its work to the background, and decides itself what to do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent, RunContext, tool
from flyball.core.deferred import DeferredToolResult
from flyball.core.errors import Deferred, SignalRefused
from flyball.core.events import SignalReceived, Stage
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.machine import fold
from flyball.orchestrate.recorded import load, send_signal
from flyball.tool.errors import CallDeferred
from tests.orchestrate.driven import WAYS, Driven, Way
from tests.orchestrate.models import Place, Script
from tests.orchestrate.where import Where
from tests.patience import PATIENCE


class Shell:
    """A tool that runs until it is asked to detach, and what it saw."""

    def __init__(self) -> None:
        self.place = Place()
        self.seen: list[bool] = []

    def tool(self, *, defers: bool = False, **options: Any) -> Any:
        @tool(**options)
        async def shell(ctx: RunContext[Any], command: str) -> str:
            """Run a command."""
            self.seen.append(ctx.detach.is_set())
            assert ctx.detach is ctx.detach
            self.place.entered.set()
            await ctx.detach.wait()
            assert ctx.detach.is_set()
            if defers:
                raise CallDeferred(f"{command} goes on")
            return f"{command} goes on in the background"

        return shell


@pytest.mark.parametrize("way", WAYS)
async def test_a_running_tool_is_asked_and_returns(way: Way, where: Where) -> None:
    shell, driven = Shell(), Driven(way, where)
    agent = Agent(Script(call("shell", {"command": "make"}), "done"), tools=[shell.tool()])
    await driven.start(agent)
    await driven.reach(shell.place)
    assert await driven.send("detach") is Stage.EXECUTING
    result = await driven.end()
    assert result.messages[2].tool_results[0].text == "make goes on in the background"
    assert not await driven.signal("detach"), "nothing runs any more"
    assert (await driven.kinds()).count("SignalReceived") == 1


async def test_only_the_call_that_is_named_is_asked(where: Where) -> None:
    shell, driven = Shell(), Driven("journal", where)
    calls = [call("shell", {"command": "one"}), call("shell", {"command": "two"})]
    await driven.start(Agent(Script(calls, "done"), tools=[shell.tool()]))
    await driven.reach(shell.place)
    _, state = await load(where.journal, driven.loop_id)
    one, two = (each.id for each in state.calls)
    with pytest.raises(SignalRefused, match="no call 'nobody' runs"):
        await send_signal(where.journal, driven.loop_id, Signal(SignalType.DETACH, call_id="nobody"))
    await driven.send("detach", call_id=one)
    while (loaded := await load(where.journal, driven.loop_id))[1].open == 2:
        await where.journal.wait(driven.loop_id, len(loaded[0]))
    assert await driven.signal("detach", call_id=one) is False, "it has returned"
    await driven.send("detach", call_id=two)
    texts = [result.text for result in (await driven.end()).messages[2].tool_results]
    assert texts == ["one goes on in the background", "two goes on in the background"]


async def test_asking_twice_is_asking_once(orderly: Where) -> None:
    place, driven = Place(), Driven("journal", orderly)

    @tool
    async def stubborn(ctx: RunContext[Any]) -> str:
        """Looks when it has done what it does, and may see it late."""
        await place.hang()
        await asyncio.wait_for(ctx.detach.wait(), PATIENCE)
        return "asked"

    await driven.start(Agent(Script(call("stubborn"), "done"), tools=[stubborn]))
    await driven.reach(place)
    for name in ("", "", "click", "click"):
        assert await driven.send("detach", name=name) is Stage.EXECUTING
    events = await orderly.journal.read(driven.loop_id)
    assert len([event for event in events if isinstance(event, SignalReceived)]) == 1
    place.let_go.set()
    assert (await driven.end()).messages[2].tool_results[0].text == "asked"


async def test_nothing_can_be_asked_that_does_not_run(orderly: Where) -> None:
    shell, driven = Shell(), Driven("journal", orderly)
    agent = Agent(Script(call("shell", {"command": "make"}), "done"), tools=[shell.tool(approval=True)])
    await driven.start(agent)
    while not (loaded := await load(orderly.journal, driven.loop_id))[1].awaiting:
        await orderly.journal.wait(driven.loop_id, len(loaded[0]))
    with pytest.raises(SignalRefused) as caught:
        await driven.send("detach")
    assert "detach" not in caught.value.details["fits"]
    await driven.send("approve")
    await driven.reach(shell.place)
    await driven.send("detach")
    await driven.end()


async def test_a_tool_may_detach_and_be_answered_later(where: Where) -> None:
    shell, driven = Shell(), Driven("journal", where)
    agent = Agent(Script(call("shell", {"command": "make"}), "done"), tools=[shell.tool(defers=True)])
    await driven.start(agent)
    await driven.reach(shell.place)
    await driven.send("detach")
    with pytest.raises(Deferred) as caught:
        await driven.end()
    (request,) = caught.value.requests
    assert request.args_json == '{"command":"make"}'
    with pytest.raises(SignalRefused):
        await driven.send("detach")
    results = [DeferredToolResult("shell", request.tool_call_id, "exit 0")]
    result = await where.run(agent, "go", driven.loop_id, deferred_results=results)
    assert result.messages[2].tool_results[0].text == "exit 0"


async def test_a_call_that_is_run_again_after_a_crash_knows_it(journal: Journal) -> None:
    shell, driven = Shell(), Driven("journal", Where.here(journal))
    agent = Agent(Script(call("shell", {"command": "make"}), "done"), tools=[shell.tool()])
    await driven.start(agent)
    await driven.reach(shell.place)
    driven.task.cancel()
    await asyncio.gather(driven.task, return_exceptions=True)
    await send_signal(journal, driven.loop_id, SignalType.DETACH)
    assert fold(await journal.read(driven.loop_id)).detached == (0,)
    assert (await agent.resume(driven.loop_id, journal)).output == "done"
    assert shell.seen == [False, True]


async def test_the_next_turn_is_not_asked(journal: Journal) -> None:
    shell, driven = Shell(), Driven("journal", Where.here(journal))
    again = call("shell", {"command": "make"})
    await driven.start(Agent(Script(again, again, "done"), tools=[shell.tool()]))
    for _ in range(2):
        await driven.reach(shell.place)
        shell.place.entered.clear()
        await driven.send("detach")
    await driven.end()
    assert shell.seen == [False, False]

"""How calls and servers end: who cancels, or goes away, cancels the run; a server leaves it alone."""

from __future__ import annotations

import asyncio

import pytest
from mcp import MCPError

from flyball.core.events import Ended, Outcome, SignalReceived, Stage
from flyball.core.signals import SignalType
from flyball.orchestrate.service import Service
from tests.adapters.mcp.agents import Gate, service_of
from tests.adapters.mcp.clients import ERAS, served, text_of
from tests.patience import PATIENCE

ASKED = {"prompt": "Hello", "loop_id": "mine"}


async def ended(service: Service, loop_id: str) -> Ended:
    """The end of a loop, once it is recorded."""
    length = 0
    async with asyncio.timeout(PATIENCE):
        while True:
            events = await service.journal.read(loop_id)
            if events and isinstance(events[-1], Ended):
                return events[-1]
            length = len(events)
            await service.journal.wait(loop_id, length)


@pytest.mark.parametrize("era", ERAS)
async def test_who_cancels_a_call_cancels_the_run(era: str) -> None:
    gate = Gate()
    service = service_of(gate.agent)
    async with served(service, era) as server:
        calling = asyncio.create_task(server.client.call_tool("patient", ASKED))
        await gate.asked.wait()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        end = await ended(service, "mine")
        gate.go.set()
        after = await server.client.call_tool("patient", {"prompt": "Still there?"})
    assert end.outcome is Outcome.CANCELLED
    [signal] = [
        event.signal for event in await service.journal.read("mine") if isinstance(event, SignalReceived)
    ]
    assert (signal.type, signal.text) == (SignalType.CANCEL, "the call that it was begun by was cancelled")
    assert text_of(after) == "At last."


@pytest.mark.parametrize("era", ERAS)
async def test_a_client_that_goes_away_cancels_what_it_waits_for(era: str) -> None:
    gate = Gate()
    service = service_of(gate.agent)
    async with served(service, era) as server:
        calling = asyncio.create_task(server.client.call_tool("patient", ASKED))
        await gate.asked.wait()
    with pytest.raises(MCPError):
        await calling
    assert (await ended(service, "mine")).outcome is Outcome.CANCELLED
    assert server.serving.done()


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_ends_leaves_runs_as_they_are_recorded(era: str) -> None:
    gate = Gate()
    service = service_of(gate.agent)
    async with served(service, era) as server:
        calling = asyncio.create_task(server.client.call_tool("patient", ASKED))
        await gate.asked.wait()
        server.serving.cancel()
        with pytest.raises(MCPError):
            await calling
    assert server.serving.cancelled()
    assert await service.stage("mine") is Stage.EXECUTING
    gate.go.set()
    await service.resume("mine")
    assert (await ended(service, "mine")).outcome is Outcome.SUCCESS


async def test_a_run_that_is_parked_is_told_of() -> None:
    gate = Gate()
    service = service_of(gate.agent)
    async with served(service, "legacy") as server:
        calling = asyncio.create_task(server.client.call_tool("patient", ASKED))
        await gate.asked.wait()
        await service.drain(0)
        result = await calling
        gate.go.set()
    assert text_of(result) == (
        "ORCHESTRATION_RUN_CLOSED: the server ends; run mine is recorded, and goes on with the next one: "
        "call again then, with the same prompt and loop_id=mine"
    )

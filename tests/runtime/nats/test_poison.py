"""Messages that nobody can do anything with, on every subject that workers take messages from.

They are put aside with the reason, listed, and given out again on request; meanwhile others go on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from flyball import Agent
from flyball.core.errors import JournalFailure, WorkPutAside
from flyball.inference.answers import tool_call as call
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.crew import Kind
from flyball.runtime.nats.dead import DEAD, Dead, dead_letters, requeue
from flyball.runtime.nats.wire import AGENT
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import add
from tests.patience import PATIENCE
from tests.runtime.nats.crashing import nothing_left
from tests.runtime.nats.side_by_side import accounts

SUBJECTS = (
    "agent.task.x",
    "agent.request.x",
    "agent.response.x",
    "tool.execute.add",
    "tool.result.x",
    "agent.signal.x",
    "agent.timer.x",
)
BODIES = {
    "nothing": b"",
    "no JSON": b"not json",
    "no text": b"\xff\xfe\x00",
    "half": b'{"loop_id": "x", "event": {',
    "an empty object": b"{}",
    "deep": b"[" * 200_000,
    "of another version": msgspec.json.encode(
        {
            "id": "x",
            "type": {"domain": "agentic", "category": "task", "version": "v0"},
            "payload": {"loop_id": "x", "task_id": "x", "gone_since_v0": True},
            "meta": {"created_at": 1, "received_at": 1, "source": "the past"},
        }
    ),
    "2 MB": b'{"loop_id": "' + b"x" * 2_000_000 + b'"}',
}


def adder() -> Agent[None, str]:
    return Agent(Script(call("add", '{"x":1,"y":2}'), "3"), tools=[add], name="adder")


@asynccontextmanager
async def crew(
    options: NatsOptions, *agents: Agent[None, str], serve: tuple[Kind, ...]
) -> AsyncGenerator[None]:
    """Workers that have everything done over the wire."""
    opened = await NatsJournal.open(options)
    async with opened as journal, Crew(journal, agents, serve, hold=1.0, nearby=False):
        yield


async def put_aside(runtime: NatsRuntime, count: int) -> list[tuple[int, Dead]]:
    """What was put aside, once there is so much of it."""
    connection = runtime.connection
    async with asyncio.timeout(PATIENCE):
        while True:
            info = await connection.patiently(lambda: connection.js.stream_info(DEAD))
            if info.state.messages >= count:
                return await dead_letters(runtime.bus)
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
async def test_it_is_put_aside_and_others_go_on(body: bytes, tmp_path: Path) -> None:
    agent = adder()
    async with (
        accounts(tmp_path / "server", 1) as (options,),
        await NatsRuntime.open(options) as runtime,
        crew(options, agent, serve=("loop", "model", "tools")),
    ):
        for subject in SUBJECTS:
            await runtime.bus.publish(subject, body, f"poison on {subject}")
        result = await asyncio.wait_for(agent.run("1 + 2?", runtime=runtime), PATIENCE)
        assert result.output == "3"
        aside = await put_aside(runtime, len(SUBJECTS))
        assert Counter(dead.subject for _, dead in aside) == Counter(SUBJECTS)
        for _, dead in aside:
            assert dead.code == "CONFIG_INVALID_MESSAGE", dead.reason
            assert dead.reason
            assert dead.times == 1, "it was tried again, though nothing else could come of it"
            assert dead.data == body
        # Given out again, it comes back: it is as bad as it was, and nothing is lost on its way.
        for number, dead in aside:
            await requeue(runtime.bus, number, dead)
        again = await put_aside(runtime, len(SUBJECTS))
        assert Counter(dead.subject for _, dead in again) == Counter(SUBJECTS)
        assert not {number for number, _ in again} & {number for number, _ in aside}
        await asyncio.wait_for(nothing_left(runtime), PATIENCE)


async def test_what_the_server_does_not_take_is_refused_where_it_is_said(tmp_path: Path) -> None:
    async with accounts(tmp_path / "server", 1) as (options,), await NatsRuntime.open(options) as runtime:
        large = b"x" * (runtime.connection.max_payload + 1)
        for subject in SUBJECTS:
            with pytest.raises(JournalFailure, match="is larger than the"):
                await runtime.bus.publish(subject, large, "large", whole=True)
        assert (await runtime.connection.js.stream_info(AGENT)).state.messages == 0


async def test_what_is_said_to_a_loop_that_is_not_there_is_put_aside(tmp_path: Path) -> None:
    agent = adder()
    async with (
        accounts(tmp_path / "server", 2) as (options, other),
        await NatsRuntime.open(options) as runtime,
        await NatsRuntime.open(other) as elsewhere,
    ):
        # What workers say to each other, to be said where nobody knows of the loop.
        async with crew(options, agent, serve=("loop", "model", "tools")):
            await asyncio.wait_for(agent.run("1 + 2?", runtime=runtime, loop_id="known"), PATIENCE)
        js, said = runtime.connection.js, list[tuple[str, bytes]]()
        for number in range(1, (await js.stream_info(AGENT)).state.last_seq + 1):
            message = await js.get_msg(AGENT, number)
            if message.subject.startswith(("agent.response.", "tool.result.")):
                said.append((message.subject, message.data))
        assert len(said) == 3, "two answers of the model, and one of the tool"
        for subject, data in said:
            await elsewhere.bus.publish(subject, data, f"to nobody on {subject}")
        async with crew(other, agent, serve=("loop", "model", "tools")):
            result = await asyncio.wait_for(agent.run("1 + 2?", runtime=elsewhere), PATIENCE)
            assert result.output == "3"
            aside = await put_aside(elsewhere, len(said))
            await asyncio.wait_for(nothing_left(elsewhere), PATIENCE)
        assert sorted(dead.subject for _, dead in aside) == sorted(subject for subject, _ in said)
        assert all("there is no loop 'known'" in dead.reason for _, dead in aside)
        assert await elsewhere.journal.read("known") == [], "nothing is half written"


async def test_work_for_an_agent_that_is_not_here_is_put_aside_and_done_when_it_comes(tmp_path: Path) -> None:
    agent, stranger = adder(), Agent(Script("hello"), name="stranger")
    async with (
        accounts(tmp_path / "server", 1) as (options,),
        await NatsRuntime.open(options) as runtime,
        crew(options, agent, stranger, serve=("loop", "tools")),
    ):
        async with crew(options, stranger, serve=("model",)):
            running = asyncio.create_task(agent.run("1 + 2?", runtime=runtime, loop_id="early"))
            ((number, dead),) = await put_aside(runtime, 1)
            assert dead.code == "ORCHESTRATION_UNKNOWN_AGENT"
            assert "'adder' is not here; here are 'stranger'" in dead.reason
        async with crew(options, agent, stranger, serve=("model",)):
            await requeue(runtime.bus, number, dead)
            again = await asyncio.wait_for(agent.run("1 + 2?", runtime=runtime, loop_id="early"), PATIENCE)
            assert again.output == "3"
            # Who asked first has been told that it was put aside, or waited.
            (first,) = await asyncio.wait_for(asyncio.gather(running, return_exceptions=True), PATIENCE)
            assert isinstance(first, WorkPutAside) or getattr(first, "output", first) == "3"

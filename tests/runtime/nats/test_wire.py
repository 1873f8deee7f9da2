"""The wire, spoken by hand: JSON as SemStreams' document has it, and none of flyball's own forms.

Everything here that is not a worker of ours is written with nats-py and the json module alone.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from nats.js.errors import KeyNotFoundError
from pydantic import BaseModel

from flyball import Agent, AutoContext, ModelRepair, RunContext, assistant, tool, user
from flyball.inference.answers import tool_call as call
from flyball.inference.scripted import ScriptedEngine
from flyball.runtime.nats import NatsRuntime
from flyball.runtime.nats.connection import Connection
from flyball.runtime.nats.dead import dead_letters
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import add
from tests.orchestrate.test_output_approval import waits
from tests.orchestrate.tool_scenarios import BASKET
from tests.patience import PATIENCE
from tests.runtime.nats.test_runtime import runtime, working  # noqa: F401  # pyright: ignore[reportUnusedImport] - a fixture

JSON = dict[str, Any]
NOW = "2026-03-13T12:00:00Z"


def envelope(category: str, payload: JSON, name: str = "m1") -> bytes:
    """A message as the document has it."""
    return json.dumps(
        {
            "id": name,
            "type": {"domain": "agentic", "category": category, "version": "v1"},
            "payload": payload,
            "meta": {"created_at": 1773403200000, "received_at": 1773403200000, "source": "by-hand"},
        }
    ).encode()


def opened(data: bytes, category: str) -> JSON:
    """The payload of a message, which must be of this category."""
    message = json.loads(data)
    assert message["type"] == {"domain": "agentic", "category": category, "version": "v1"}
    assert message["id"]
    assert set(message["meta"]) >= {"created_at", "received_at", "source"}
    return message["payload"]


def task(name: str, **more: Any) -> bytes:
    required = {"task_id": name, "role": "general", "model": "default", "prompt": "1 + 2?"}
    return envelope("task", required | more)


@asynccontextmanager
async def component(
    runtime: NatsRuntime,  # noqa: F811
    subject: str,
    answer: Callable[[str, bytes], tuple[str, bytes]],
) -> AsyncGenerator[list[bytes]]:
    """A component of somebody else's: consumes a subject of the stream AGENT, and publishes answers."""
    js, seen = runtime.connection.js, list[bytes]()
    consumer = await js.pull_subscribe(subject, durable=f"by-hand-{len(subject)}", stream="AGENT")

    async def work() -> None:
        while True:
            try:
                messages = await consumer.fetch(1, timeout=1)
            except TimeoutError:
                continue
            for message in messages:
                seen.append(message.data)
                await js.publish(*answer(message.subject, message.data))
                await message.ack()

    working = asyncio.create_task(work())
    try:
        yield seen
    finally:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)


async def heard(runtime: NatsRuntime, subject: str) -> bytes:  # noqa: F811
    """The first message on a subject, kept in the stream."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return (await runtime.connection.js.get_last_msg("AGENT", subject)).data
            except Exception as error:
                assert "no message found" in str(error), error  # noqa: PT017
            await asyncio.sleep(0.02)


async def kept(runtime: NatsRuntime, bucket: str, key: str) -> JSON:  # noqa: F811
    """What a bucket has under a key, once it is there."""
    store = await runtime.connection.js.key_value(bucket)
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                return json.loads((await store.get(key)).value)
            except KeyNotFoundError:
                await asyncio.sleep(0.02)


async def test_a_task_by_hand_becomes_a_loop_and_its_end_is_told(runtime: NatsRuntime) -> None:  # noqa: F811
    agent = Agent(Script(call("add", '{"x":1,"y":2}'), "It is 3."), tools=[add], name="adder")
    about = {"workflow_slug": "sums", "workflow_step": "first", "user_id": "ann", "channel_type": "cli"}
    async with working(runtime, agent):
        await runtime.connection.js.publish("agent.task.t1", task("t1", channel_id="c1", **about))
        ended = opened(await heard(runtime, "agent.complete.t1"), "loop_completed")
        created = opened(await heard(runtime, "agent.created.t1"), "loop_created")
        entity = await kept(runtime, "AGENT_LOOPS", "t1")
        complete = await kept(runtime, "AGENT_LOOPS", "COMPLETE_t1")
        way = await kept(runtime, "AGENT_TRAJECTORIES", "t1")
    assert ended["outcome"] == "success"
    assert ended["result"] == "It is 3."
    assert (ended["loop_id"], ended["task_id"], ended["role"]) == ("t1", "t1", "general")
    assert (ended["workflow_slug"], ended["workflow_step"], ended["user_id"]) == ("sums", "first", "ann")
    assert ended["iterations"] == 2
    assert set(ended) >= {"model", "tokens_in", "tokens_out", "completed_at"}
    assert (created["loop_id"], created["max_iterations"]) == ("t1", 20)
    assert (entity["id"], entity["state"], entity["outcome"]) == ("t1", "complete", "success")
    assert complete == ended
    assert [step["step_type"] for step in way["steps"]] == ["model_call", "tool_call", "model_call"]
    assert way["steps"][1]["tool_arguments"] == {"x": 1, "y": 2}


@pytest.mark.parametrize("approved", [True, False])
async def test_what_nobody_approved_is_on_no_wire(runtime: NatsRuntime, approved: bool) -> None:  # noqa: F811
    agent = Agent(Script("We are broke.", "Times are hard."), name="clerk", output_approval=True)
    async with working(runtime, agent), asyncio.timeout(PATIENCE):
        await runtime.connection.js.publish("agent.task.held", task("held"))
        await runtime.journal.wait("held", 0)
        await waits(runtime.journal, "held")
        await runtime.signal("held", "reject", "softer")
        await waits(runtime.journal, "held", 2)
        before = await kept(runtime, "AGENT_LOOPS", "held")
        await runtime.signal("held", "approve" if approved else "cancel")
        complete = await kept(runtime, "AGENT_LOOPS", "COMPLETE_held")
        told = [complete, await kept(runtime, "AGENT_LOOPS", "held")]
        way = await kept(runtime, "AGENT_TRAJECTORIES", "held")
    assert "are" not in json.dumps(before)
    assert "broke" not in json.dumps([*told, way])
    assert complete["outcome"] == ("success" if approved else "cancelled")
    assert ("hard" in json.dumps(told), "hard" in json.dumps(way)) == (approved, approved)


async def test_what_becomes_of_a_context_is_told(runtime: NatsRuntime) -> None:  # noqa: F811
    talk = [message for n in range(4) for message in (user(f"Question {n}?"), assistant(f"Answer {n}."))]
    features = [AutoContext(5, keep_last_n=1, summary_model=Script("They talked."))]
    agent = Agent(Script("Gladly."), features=features, name="talker")
    async with working(runtime, agent):
        await agent.run("Go on.", messages=talk, runtime=runtime, loop_id="long")
        await heard(runtime, "agent.complete.long")
    told: list[tuple[str, str]] = []
    consumer = await runtime.connection.js.pull_subscribe("agent.context.long", stream="AGENT")
    for message in await consumer.fetch(2, timeout=10):
        event = opened(message.data, "context_event")
        told.append((event["type"], event.get("summary", "")))
    assert told == [("compaction_starting", ""), ("compaction_complete", "They talked.")]


async def test_our_loop_with_a_model_and_tools_of_somebody_elses(runtime: NatsRuntime) -> None:  # noqa: F811
    agent = Agent(Script(), tools=[add], name="adder")

    def model(_: str, data: bytes) -> tuple[str, bytes]:
        request = opened(data, "request")
        answered = {
            "request_id": request["request_id"],
            "token_usage": {"prompt_tokens": 7, "completion_tokens": 3},
        }
        last = request["messages"][-1]
        if last["role"] == "tool":
            answered |= {"status": "complete", "message": {"role": "assistant", "content": last["content"]}}
        else:
            calls = [{"id": "call_1", "name": "add", "arguments": {"x": 1, "y": 2}}]
            answered |= {"status": "tool_call", "message": {"role": "assistant", "tool_calls": calls}}
        return f"agent.response.{request['request_id']}", envelope("response", answered)

    def tools(subject: str, data: bytes) -> tuple[str, bytes]:
        asked = opened(data, "tool_call")
        assert subject == "tool.execute.add"
        assert (asked["name"], asked["arguments"], asked["loop_id"]) == ("add", {"x": 1, "y": 2}, "t2")
        assert asked["metadata"]["customer"] == "c-9"
        result = {"call_id": asked["id"], "name": "add", "content": "three"}
        return f"tool.result.{asked['id']}", envelope("tool_result", result)

    js = runtime.connection.js
    async with (
        working(runtime, agent, serve=("loop",)),
        component(runtime, "agent.request.*", model) as requests,
        component(runtime, "tool.execute.*", tools),
    ):
        await js.publish("agent.task.t2", task("t2", metadata={"customer": "c-9"}))
        ended = opened(await heard(runtime, "agent.complete.t2"), "loop_completed")
    assert ended["result"] == "three"
    assert (ended["tokens_in"], ended["tokens_out"]) == (14, 6)
    first = opened(requests[0], "request")
    assert (first["loop_id"], first["role"]) == ("t2", "general")
    assert first["messages"] == [{"role": "user", "content": "1 + 2?"}]
    (offered,) = first["tools"]
    assert (offered["name"], offered["parameters"]["type"]) == ("add", "object")


async def test_a_loop_of_somebody_elses_with_our_model_and_our_tools(runtime: NatsRuntime) -> None:  # noqa: F811
    seen: list[tuple[str, str, JSON]] = []

    @tool
    def price(ctx: RunContext[Any], item: str) -> float:
        """What an item costs."""
        seen.append((ctx.run_id, ctx.tool_call_id, ctx.metadata))
        return 2.5 if item == "tea" else 0.0

    agent = Agent(ScriptedEngine("Good day."), tools=[price], name="general")
    ours = Agent(Script("Ours."), name="ours")
    request = {
        "request_id": "r-77",
        "loop_id": "theirs",
        "role": "general",
        "model": "default",
        "messages": [{"role": "user", "content": "Hello?"}],
    }
    asked: JSON = {"id": "c-1", "name": "price", "arguments": {"item": "tea"}, "loop_id": "theirs"}
    async with working(runtime, agent, serve=("model", "tools")), working(runtime, ours):
        js = runtime.connection.js
        await js.publish("agent.request.theirs", envelope("request", request))
        await js.publish("tool.execute.price", envelope("tool_call", asked | {"metadata": {"shop": "here"}}))
        answer = opened(await heard(runtime, "agent.response.r-77"), "response")
        result = opened(await heard(runtime, "tool.result.c-1"), "tool_result")
        await asyncio.wait_for(ours.run("hi", runtime=runtime), PATIENCE)
        assert not await dead_letters(runtime.bus), "what answers others is nothing to us"
    assert (answer["request_id"], answer["status"]) == ("r-77", "complete"), answer
    assert answer["message"] == {"role": "assistant", "content": "Good day."}
    assert (result["call_id"], result["content"], result["loop_id"]) == ("c-1", "2.5", "theirs")
    assert seen == [("theirs", "c-1", {"shop": "here"})]


async def test_a_repair_by_a_model_of_somebody_elses(runtime: NatsRuntime) -> None:  # noqa: F811
    class Sum(BaseModel):
        value: int

    def model(_: str, data: bytes) -> tuple[str, bytes]:
        request = opened(data, "request")
        mends = request["model"] == "mender"
        content = '{"value": 3}' if mends else "three"
        message = {"role": "assistant", "content": content}
        answered = {"request_id": request["request_id"], "status": "complete", "message": message}
        return f"agent.response.{request['request_id']}", envelope("response", answered)

    repair = ModelRepair(Script(name="mender"))
    agent = Agent(Script(), output=Sum, output_mode="native", name="adder", features=[repair])
    async with (
        working(runtime, agent, serve=("loop",)),
        component(runtime, "agent.request.*", model) as requests,
    ):
        result = await asyncio.wait_for(agent.run("1 + 2?", runtime=runtime), PATIENCE)
    assert result.output == Sum(value=3)
    assert [opened(request, "request")["model"] for request in requests] == ["test", "mender"]


async def test_a_tool_that_remembers_begins_anew_for_somebody_elses_loop(runtime: NatsRuntime) -> None:  # noqa: F811
    """The wire has no word for a state: each call of others' begins with none, and leaves none."""
    agent = Agent(Script(), tools=[BASKET], name="shopper")
    async with working(runtime, agent, serve=("tools",)):
        js, results = runtime.connection.js, list[JSON]()
        for name in ("c-1", "c-2"):
            asked: JSON = {"id": name, "name": "put", "arguments": {"item": "tea"}, "loop_id": "theirs"}
            await js.publish("tool.execute.put", envelope("tool_call", asked, name))
            results.append(opened(await heard(runtime, f"tool.result.{name}"), "tool_result"))
    assert [(result["call_id"], result["content"]) for result in results] == [("c-1", "1"), ("c-2", "1")]
    assert all(set(result) <= {"call_id", "name", "content", "loop_id"} for result in results)


async def test_a_model_that_failed_elsewhere_fails_the_loop(runtime: NatsRuntime) -> None:  # noqa: F811
    def model(_: str, data: bytes) -> tuple[str, bytes]:
        request = opened(data, "request")
        answered = {"request_id": request["request_id"], "status": "error", "error": "out of order"}
        return f"agent.response.{request['request_id']}", envelope("response", answered)

    async with (
        working(runtime, Agent(Script(), name="adder"), serve=("loop",)),
        component(runtime, "agent.request.*", model),
    ):
        await runtime.connection.js.publish("agent.task.t3", task("t3"))
        failed = opened(await heard(runtime, "agent.failed.t3"), "loop_failed")
    assert (failed["outcome"], failed["error"]) == ("failed", "out of order")


@pytest.mark.parametrize("short", [False, True])
async def test_signals_by_hand(runtime: NatsRuntime, short: bool) -> None:  # noqa: F811
    asking = asyncio.Event()

    class Slow(Script):
        async def infer(self, request: Any) -> Any:
            asking.set()
            await asyncio.sleep(600)

    async with working(runtime, Agent(Slow("never"), name="adder")):
        js = runtime.connection.js
        await js.publish("agent.task.t4", task("t4"))
        await asyncio.wait_for(asking.wait(), PATIENCE)
        if short:
            said = {"loop_id": "t4", "type": "cancel", "reason": "enough", "timestamp": NOW}
            await js.publish("agent.signal.t4", envelope("signal_message", said))
        else:
            said = {"signal_id": "s1", "type": "cancel", "loop_id": "t4", "user_id": "ann", "timestamp": NOW}
            said |= {"channel_type": "cli", "channel_id": "c1", "payload": {"reason": "enough"}}
            await js.publish("agent.signal.t4", envelope("signal", said))
        cancelled = opened(await heard(runtime, "agent.cancelled.t4"), "loop_cancelled")
        entity = await kept(runtime, "AGENT_LOOPS", "t4")
    assert (cancelled["outcome"], cancelled["cancelled_by"]) == ("cancelled", "" if short else "ann")
    assert entity["state"] == "cancelled"
    assert "enough" in entity["error"]


async def test_a_task_brings_its_own_tools_choice_and_context(runtime: NatsRuntime) -> None:  # noqa: F811
    agent = Agent(Script(), instructions="Be brief.", tools=[add], name="adder")
    lookup: JSON = {"name": "lookup", "description": "Looks up.", "parameters": {"type": "object"}}

    def model(_: str, data: bytes) -> tuple[str, bytes]:
        answered = {"request_id": opened(data, "request")["request_id"], "status": "complete"}
        answered |= {"message": {"role": "assistant", "content": "ok"}}
        return f"agent.response.{answered['request_id']}", envelope("response", answered)

    own: JSON = {
        "tools": [lookup],
        "tool_choice": {"mode": "function", "function_name": "lookup"},
        "context": {"content": "The shop is closed.", "token_count": 5},
        "model": "gpt-by-hand",
    }
    async with (
        working(runtime, agent, serve=("loop",)),
        component(runtime, "agent.request.*", model) as requests,
    ):
        await runtime.connection.js.publish("agent.task.t5", task("t5", **own))
        await heard(runtime, "agent.complete.t5")
    request = opened(requests[0], "request")
    assert [one["name"] for one in request["tools"]] == ["lookup"]
    assert request["tool_choice"] == {"mode": "function", "function_name": "lookup"}
    assert request["model"] == "gpt-by-hand"
    assert request["messages"][0] == {
        "role": "system",
        "content": "Be brief.\n\nContext:\nThe shop is closed.",
    }


async def test_a_task_goes_on_with_a_loop(runtime: NatsRuntime) -> None:  # noqa: F811
    agent = Agent(Script("First.", "Second."), name="adder")
    async with working(runtime, agent, detail="full"):
        js = runtime.connection.js
        await js.publish("agent.task.t6", task("t6"))
        await heard(runtime, "agent.complete.t6")
        await js.publish("agent.task.t7", task("t7", loop_id="t6", prompt="And then?"))
        ended = opened(await heard(runtime, "agent.complete.t7"), "loop_completed")
        way = await kept(runtime, "AGENT_TRAJECTORIES", "t7")
    assert ended["task_id"] == "t7"
    told = [(one["role"], one["content"]) for one in way["steps"][0]["messages"]]
    assert told == [("user", "1 + 2?"), ("assistant", "First."), ("user", "And then?")]


async def test_the_same_task_twice_is_one_loop(runtime: NatsRuntime) -> None:  # noqa: F811
    agent = Agent(Script("Once."), name="adder")
    async with working(runtime, agent):
        js = runtime.connection.js
        await js.publish("agent.task.t8", task("t8"))
        await js.publish("agent.task.t8", task("t8"))
        await heard(runtime, "agent.complete.t8")
        assert (await agent.run("1 + 2?", runtime=runtime, loop_id="other")).output == "Once."
    assert len(await runtime.journal.loops()) == 2


async def test_a_message_for_an_agent_finds_the_worker_that_has_it(runtime: NatsRuntime) -> None:  # noqa: F811
    first = Agent(Script(call("add", '{"x":1,"y":2}'), "first"), tools=[add], name="first")
    second = Agent(Script(call("add", '{"x":1,"y":2}'), "second"), tools=[add], name="second")
    async with working(runtime, first), working(runtime, second):
        agents = [first, second] * 10
        runs = [agent.run("1 + 2?", runtime=runtime) for agent in agents]
        results = await asyncio.wait_for(asyncio.gather(*runs), PATIENCE)
        assert [result.output for result in results] == ["first", "second"] * 10
        await runtime.connection.js.publish("agent.task.t9", task("t9", metadata={"agent": "second"}))
        assert opened(await heard(runtime, "agent.complete.t9"), "loop_completed")["result"] == "second"


async def test_a_request_that_is_too_large_for_a_message_arrives(
    runtime: NatsRuntime,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit = 200_000
    monkeypatch.setattr(Connection, "max_payload", property(lambda _: limit))
    agent = Agent(Script("Long."), name="reader")
    async with working(runtime, agent, nearby=False, detail="full"):
        result = await asyncio.wait_for(agent.run("x" * limit, runtime=runtime, loop_id="long"), PATIENCE)
        assert result.output == "Long."
        await heard(runtime, "agent.complete.long")
        way = await kept(runtime, "AGENT_TRAJECTORIES", "long")
        store = await runtime.connection.js.object_store(way["flyball"]["object"]["bucket"])
        whole = json.loads((await store.get(way["flyball"]["object"]["name"])).data)
    assert way["steps"] == []
    assert len(whole["steps"][0]["messages"][0]["content"]) == limit

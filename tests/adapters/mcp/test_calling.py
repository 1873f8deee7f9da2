"""Calls: answers, typed answers, errors, conversations, many at once; of agents and of tools."""

from __future__ import annotations

import asyncio

import pytest
from mcp import MCPError
from mcp_types import INVALID_PARAMS, ResourceLink

from tests.adapters.mcp.agents import Gate, agent, service_of
from tests.adapters.mcp.clients import ERAS, loop_of, served, text_of

pytestmark = pytest.mark.parametrize("era", ERAS)


async def test_an_agent_answers_and_its_run_is_recorded(era: str) -> None:
    service = service_of()
    async with served(service, era) as server:
        result = await server.client.call_tool("echo", {"prompt": "Hello", "session_id": "s1"})
    assert text_of(result) == "You said: Hello"
    assert not result.is_error
    assert result.structured_content is None
    links = [part for part in result.content if isinstance(part, ResourceLink)]
    assert [link.uri for link in links] == [f"flyball://loops/{loop_of(result)}"]
    response = await service.response(loop_of(result))
    assert (response.content, response.session_id) == ("You said: Hello", "s1")


async def test_typed_answers_follow_the_schema_that_was_told(era: str) -> None:
    async with served(service_of(), era) as server:
        await server.client.list_tools()  # the client holds results against the schemas that it knows
        city = await server.client.call_tool("city", {"prompt": "Where?"})
        numbers = await server.client.call_tool("numbers", {"prompt": "Which?"})
    assert city.structured_content == {"name": "Rome", "people": 3}
    assert text_of(city) == '{"name":"Rome","people":3}'
    assert numbers.structured_content == {"result": [1, 2]}


async def test_what_goes_wrong_in_a_run_is_a_result(era: str) -> None:
    async with served(service_of(), era) as server:
        result = await server.client.call_tool("broken", {"prompt": "Hello"})
        unknown = await server.client.call_tool("echo", {"prompt": "And?", "continue_from": "nobody"})
    assert result.is_error
    assert text_of(result).startswith("INFERENCE_ENGINE_ERROR: ")
    assert "the model's wire is cut" in text_of(result)
    assert (result.meta or {})["flyball/error"] == {
        "code": "INFERENCE_ENGINE_ERROR",
        "category": "inference_failure",
        "retryable": True,
    }
    assert unknown.is_error
    assert text_of(unknown).startswith("ORCHESTRATION_LOOP_NOT_FOUND: ")


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("nobody", {"prompt": "Hello"}, "there is no tool 'nobody'; there are: echo, count"),
        ("echo", {}, "missing required field `prompt`"),
        ("echo", {"prompt": ""}, "length >= 1"),
        ("echo", {"prompt": 3}, "Expected `str`"),
        ("echo", {"prompt": "x", "color": "red"}, "unknown field `color`"),
        ("echo", {"prompt": "x", "loop_id": "../etc"}, "loop_id must match"),
    ],
)
async def test_what_cannot_be_called_is_an_error_of_the_protocol(
    era: str, name: str, arguments: dict[str, object], says: str
) -> None:
    async with served(service_of(), era) as server:
        with pytest.raises(MCPError) as raised:
            await server.client.call_tool(name, arguments)
    assert raised.value.code == INVALID_PARAMS
    assert says in raised.value.message


async def test_what_nobody_foresaw_is_not_told(era: str) -> None:
    service = service_of()

    async def fails(*_: object, **__: object) -> None:
        raise RuntimeError("secret")

    service.handle = fails  # pyright: ignore[reportAttributeAccessIssue]
    async with served(service, era) as server:
        result = await server.client.call_tool("echo", {"prompt": "Hello"})
    assert text_of(result) == "ORCHESTRATION_FAILED: the server failed unexpectedly: its log says more"


async def test_a_conversation_is_gone_on_with(era: str) -> None:
    service = service_of()
    async with served(service, era) as server:
        first = await server.client.call_tool("echo", {"prompt": "one", "session_id": "talk"})
        link = next(part.uri for part in first.content if isinstance(part, ResourceLink))
        second = await server.client.call_tool("echo", {"prompt": "two", "continue_from": link})
        third = await server.client.call_tool("echo", {"prompt": "three", "continue_from": loop_of(second)})
    assert text_of(third) == "You said: one | two | three"
    assert (await service.response(loop_of(third))).session_id == "talk"


async def test_a_call_with_the_id_of_a_run_waits_for_that_run(era: str) -> None:
    gate = Gate()
    service = service_of(gate.agent)
    asked = {"prompt": "Hello", "loop_id": "mine"}
    async with served(service, era) as server:
        both = [asyncio.create_task(server.client.call_tool("patient", asked)) for _ in range(2)]
        await gate.asked.wait()
        open_yet = await server.client.call_tool("patient", {"prompt": "More", "continue_from": "mine"})
        gate.go.set()
        results = await asyncio.gather(*both)
        again = await server.client.call_tool("patient", asked)
        other = await server.client.call_tool("patient", {"prompt": "Bye", "loop_id": "mine"})
    assert [text_of(one) for one in (*results, again)] == ["At last."] * 3
    assert await service.journal.loops() == ["mine"]
    assert text_of(other).startswith("CONFIG_LOOP_MISMATCH: ")
    assert "is not over" in text_of(open_yet)


async def test_many_calls_at_once(era: str) -> None:
    waiting, everybody = 0, asyncio.Event()

    async def together(request: object) -> str:
        nonlocal waiting
        waiting += 1
        if waiting == 25:
            everybody.set()
        await everybody.wait()
        return "All here."

    async with served(service_of(agent("crowd", together)), era) as server:
        calls = [server.client.call_tool("crowd", {"prompt": f"{number}"}) for number in range(25)]
        results = await asyncio.gather(*calls)
    assert [text_of(result) for result in results] == ["All here."] * 25
    assert len({loop_of(result) for result in results}) == 25


async def test_progress_is_told_to_who_wants_it(era: str) -> None:
    told: list[tuple[float, str | None]] = []

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, message))

    async with served(service_of(), era, tools=True) as server:
        result = await server.client.call_tool("count", {"prompt": "?"}, progress_callback=tell)
    assert text_of(result) == "It is 3."
    assert told == [
        (1, "count: turn 1"),
        (2, "count: calls add"),
        (3, "count: add returned"),
        (4, "count: turn 2"),
    ]


async def test_tools_run_by_themselves(era: str) -> None:
    service = service_of()
    async with served(service, era, tools=True) as server:
        call = server.client.call_tool
        added = await call("add", {"a": 1, "b": 2})
        wrong = await call("add", {"a": "one"})
        failed = await call("divide", {"a": 1, "b": 0})
        slow = await call("sleep")
    assert (text_of(added), added.is_error) == ("3", False)
    assert [result.is_error for result in (wrong, failed, slow)] == [True] * 3
    assert text_of(wrong).startswith("TOOL_EXECUTION_FAILED: The arguments are wrong:")
    assert text_of(failed) == "TOOL_EXECUTION_FAILED: ZeroDivisionError: division by zero"
    assert text_of(slow) == "TOOL_TIMEOUT: sleep took longer than its time-out of 0.01 seconds"
    assert (await service.response(loop_of(added))).tool_calls_made[0].result == 3

"""Requests to agents, over HTTP: what goes in reaches the system, and what it gives comes out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from flyball import Agent, FilterChain, Rate, RateFilter
from flyball.core.events import Outcome
from flyball.core.messages import assistant
from flyball.inference.scripted import ScriptedEngine
from flyball.inference.stream import Assembler
from flyball.orchestrate.contracts import SystemResponse
from flyball.orchestrate.recorded import until_done
from flyball.orchestrate.service import Service
from tests.adapters.http.running import ASK, events_in, here, problem
from tests.adapters.http.test_position import joined

NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


async def test_an_agent_serves_a_request() -> None:
    async with here() as (client, service):
        answer = await client.post("/api/agents/counter/requests", json={**ASK, "session_id": "s"})
        response = SystemResponse.from_json(answer.json())
        assert (answer.status_code, response.content, response.session_id) == (200, "It is 3.", "s")
        assert answer.headers["flyball-loop"] == response.loop_id
        assert [call.name for call in response.tool_calls_made] == ["add"]
        assert (await service.response(response.loop_id)).content == "It is 3."


@pytest.mark.parametrize("mode", ["structured", "redundant"])
async def test_modes_with_a_schema(mode: str) -> None:
    async with here(Agent("test", name="number")) as (client, _):
        asked = {**ASK, "mode": mode, "output": {"schema": NUMBER}}
        answer = await client.post("/api/agents/number/requests", json=asked)
        assert (answer.status_code, answer.json()["structured_output"]) == (200, {"n": 0})


async def test_a_plan_that_is_brought_along() -> None:
    async with here() as (client, _):
        plan = {"steps": [{"name": one, "type": "infer", "input": one} for one in ("one", "two")]}
        answer = await client.post("/api/agents/echo/requests", json={**ASK, "mode": "plan", "plan": plan})
        assert answer.status_code == 200, answer.text
        assert "two" in answer.json()["content"]


async def test_an_answer_in_pieces_is_the_answer() -> None:
    engine = ScriptedEngine("A fairly long answer.", chunk=3)
    async with here(Agent(engine, name="slow")) as (client, _):
        answer = await client.post("/api/agents/slow/stream", json=ASK)
        first, *pieces, last = events_in(answer.text)
        assert (first.event, last.event) == ("begun", "response")
        assert first.data["loop_id"] == last.data["loop_id"] == answer.headers["flyball-loop"]
        assembler = Assembler()
        for piece in _pieces(pieces):
            assembler.feed(piece)
        assert assembler.message().text == last.data["content"] == "A fairly long answer."
        assert len(pieces) > 5


def _pieces(told: list[Any]) -> list[Any]:
    import msgspec

    from flyball.inference.stream import StreamEvent

    return [msgspec.convert(one.data, StreamEvent) for one in told if one.event == "piece"]


async def test_a_stream_that_fails_ends_with_a_problem() -> None:
    engine = ScriptedEngine(OSError("the line is down"))
    async with here(Agent(engine, name="broken")) as (client, _):
        answer = await client.post("/api/agents/broken/stream", json=ASK)
        last = events_in(answer.text)[-1]
        assert (last.event, last.data["code"]) == ("problem", "INFERENCE_ENGINE_ERROR")
        assert last.data["response"]["loop_id"] == answer.headers["flyball-loop"]


async def test_a_loop_that_is_begun_goes_on_by_itself() -> None:
    async with here() as (client, service):
        begun = await client.post("/api/agents/counter/loops", json=ASK, params={"loop_id": "mine"})
        assert (begun.status_code, begun.json()) == (202, {"loop_id": "mine"})
        assert begun.headers["location"] == "/api/loops/mine"
        state = await until_done(service.journal, "mine")
        assert state.outcome is Outcome.SUCCESS
        again = await client.get("/api/loops/mine/response")
        assert again.json()["content"] == "It is 3."


async def test_the_same_request_with_the_same_id_is_the_same_loop() -> None:
    async with here() as (client, service):
        one = await client.post("/api/agents/counter/requests", json=ASK, params={"loop_id": "mine"})
        length = len(await service.journal.read("mine"))
        two = await client.post("/api/agents/counter/requests", json=ASK, params={"loop_id": "mine"})
        assert one.json()["content"] == two.json()["content"]
        assert len(await service.journal.read("mine")) == length
        other = {"messages": [{"role": "user", "content": "Something else"}]}
        taken = await client.post("/api/agents/counter/requests", json=other, params={"loop_id": "mine"})
        assert problem(taken) == (409, "CONFIG_LOOP_MISMATCH")


async def test_ids_come_from_the_request_its_headers_or_are_made() -> None:
    async with here() as (client, _):
        path = "/api/agents/echo/requests"
        trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
        headers = {"X-Request-Id": "r-1", "traceparent": trace}
        answer = await client.post(path, json=ASK, headers=headers)
        assert answer.headers["x-request-id"] == answer.json()["request_id"] == "r-1"
        assert answer.json()["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
        assert answer.headers["traceparent"] == trace
        own = await client.post(path, json={**ASK, "request_id": "r-2"}, headers=headers)
        assert own.json()["request_id"] == "r-2"
        made = await client.post(path, json=ASK, headers={"X-Request-Id": "x" * 500})
        assert made.json()["request_id"] == made.headers["x-request-id"] != "x" * 500


BAD: list[tuple[Any, int, str]] = [
    ([], 422, "CONFIG_INVALID_REQUEST"),
    ({}, 422, "CONFIG_INVALID_REQUEST"),
    ({"messages": []}, 422, "CONFIG_INVALID_REQUEST"),
    ({"messages": [{"role": "nobody", "content": "x"}]}, 422, "CONFIG_INVALID_REQUEST"),
    ({"messages": [{"role": "user", "content": 7}]}, 422, "CONFIG_INVALID_REQUEST"),
    ({**ASK, "mode": "sideways"}, 422, "CONFIG_INVALID_REQUEST"),
    ({**ASK, "mode": "structured"}, 422, "CONFIG_SCHEMA_REQUIRED"),
    ({**ASK, "output": {"schema": {"type": 7}}}, 422, "CONFIG_SCHEMA_MALFORMED"),
    ({**ASK, "output": {"grammar": "::="}}, 422, "CONFIG_GRAMMAR_MALFORMED"),
    ({**ASK, "tools": ["none of these"]}, 422, "CONFIG_INVALID_REQUEST"),
    ({**ASK, "hints": {"max_tokens": -1}}, 422, "CONFIG_INVALID_REQUEST"),
    ({**ASK, "mode": "plan", "plan": {"steps": "none"}}, 422, "CONFIG_INVALID_REQUEST"),
]


@pytest.mark.parametrize(("document", "status", "code"), BAD)
@pytest.mark.parametrize("operation", ["requests", "loops"])
async def test_what_cannot_be_served_is_refused(
    document: Any, status: int, code: str, operation: str
) -> None:
    async with here() as (client, service):
        answer = await client.post(f"/api/agents/counter/{operation}", json=document)
        assert problem(answer) == (status, code), answer.text
        assert await service.journal.loops() == []


async def test_an_agent_that_is_not_here() -> None:
    async with here() as (client, _):
        for operation in ("requests", "stream", "loops"):
            answer = await client.post(f"/api/agents/nobody/{operation}", json=ASK)
            assert problem(answer) == (404, "ORCHESTRATION_UNKNOWN_AGENT")
            assert "counter, buyer" in answer.json()["detail"]


async def test_a_run_that_fails_says_how_far_it_came() -> None:
    engine = ScriptedEngine("no number", "no number", "no number")
    async with here(Agent(engine, name="number")) as (client, _):
        asked = {**ASK, "mode": "structured", "output": {"schema": NUMBER}}
        answer = await client.post("/api/agents/number/requests", json=asked)
        assert problem(answer)[0] == 422
        document = answer.json()
        assert document["response"]["content"] == "no number"
        assert document["loop_id"] == answer.headers["flyball-loop"]


async def test_a_rate_that_is_used_up_is_429_and_says_when_to_come_again() -> None:
    rates = FilterChain(RateFilter(overall=Rate(requests_per_minute=1)), on_violation=lambda _: None)
    async with here(Agent(ScriptedEngine("one", "two"), features=[rates], name="rare")) as (client, _):
        assert (await client.post("/api/agents/rare/requests", json=ASK)).status_code == 200
        answer = await client.post("/api/agents/rare/requests", json=ASK)
        assert (answer.status_code, answer.json()["code"]) == (429, "VALIDATION_RATE_EXCEEDED")
        assert 1 <= int(answer.headers["retry-after"]) <= 60


async def test_a_run_out_of_time_is_408() -> None:
    never = asyncio.Event()
    engine = ScriptedEngine("late", pause=never.wait)
    async with here(Agent(engine, name="slow")) as (client, _):
        answer = await client.post("/api/agents/slow/requests", json={**ASK, "hints": {"timeout": 0.05}})
        assert problem(answer) == (408, "CANCELLED_TIMEOUT")


@pytest.mark.parametrize("operation", ["requests", "stream"])
@pytest.mark.parametrize("wanted", ["go_on", "cancel"])
async def test_a_caller_that_goes_away(operation: str, wanted: str) -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        asked.set()
        await go.wait()

    engine = ScriptedEngine("done", pause=pause)
    async with here(Agent(engine, name="slow")) as (client, service):
        query = {"loop_id": "left", "on_disconnect": wanted}
        calling = asyncio.create_task(client.post(f"/api/agents/slow/{operation}", json=ASK, params=query))
        await asked.wait()
        calling.cancel()
        await asyncio.gather(calling, return_exceptions=True)
        if wanted == "go_on":
            go.set()
        state = await until_done(service.journal, "left")
        assert state.outcome is (Outcome.SUCCESS if wanted == "go_on" else Outcome.CANCELLED)
        go.set()


async def test_a_flow_goes_on_without_its_caller() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        asked.set()
        await go.wait()

    engine = ScriptedEngine("one", "two", pause=pause)
    plan = {"steps": [{"name": one, "type": "infer", "input": one} for one in ("one", "two")]}
    async with here(Agent(engine, name="slow")) as (client, service):
        for number, operation in enumerate(("requests", "stream")):
            asked.clear()
            go.clear()
            engine.answers = [*engine.answers, "one", "two"]
            query = {"loop_id": f"left{number}"}
            document = {**ASK, "mode": "plan", "plan": plan}
            calling = asyncio.create_task(
                client.post(f"/api/agents/slow/{operation}", json=document, params=query)
            )
            await asked.wait()
            calling.cancel()
            await asyncio.gather(calling, return_exceptions=True)
            go.set()
            async for _ in service.follow(f"left{number}"):
                continue
            assert (await service.response(f"left{number}")).content == "two"


async def test_more_messages_than_are_taken() -> None:
    from flyball.adapters.http.limits import Limits

    async with here(limits=Limits(messages=3)) as (client, _):
        many = {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}] * 2}
        answer = await client.post("/api/agents/echo/requests", json=many)
        assert problem(answer) == (422, "CONFIG_INVALID_REQUEST")
        assert "at most 3" in answer.json()["detail"]


def test_the_helpers_join_what_engines_say() -> None:
    from flyball.inference.cut import events_of

    assert joined(list(events_of(assistant("so")))).text == "so"


async def test_a_request_goes_on_from_a_loop_without_what_was_said_in_it() -> None:
    engine = ScriptedEngine("Blue.", "The sky.")
    async with here(Agent(engine, name="poet", instructions="Rhyme.")) as (client, _):
        url = "/api/agents/poet/requests"
        first = await client.post(url, json=_asking("Your colour?"), params={"loop_id": "one"})
        assert first.status_code == 200
        system = {"role": "system", "content": "Briefly."}
        asked = {"messages": [system, *_asking("Why?")["messages"]]}
        query = {"loop_id": "two", "after": "one"}
        for _ in range(2):
            second = await client.post(url, json=asked, params=query)
            assert second.json()["content"] == "The sky.", "the same request joins"
        (sent,) = [call.messages for call in engine.calls[1:]]
        assert [message.text for message in sent[1:]] == ["Your colour?", "Blue.", "Why?"]
        assert "Briefly." in sent[0].text
        assert "Rhyme." in sent[0].text


async def test_a_loop_that_was_cancelled_in_a_call_can_be_gone_on_from_once_it_is_over() -> None:
    async with here() as (client, service):
        begun = await client.post("/api/agents/buyer/loops", json=ASK, params={"loop_id": "one"})
        assert begun.status_code == 202
        refused = await client.post("/api/agents/echo/loops", json=ASK, params={"after": "one"})
        assert problem(refused) == (409, "API_NOT_OVER")
        await until_waiting(service, "one")
        await client.post("/api/loops/one/signals", json={"type": "cancel"})
        await until_done(service.journal, "one")
        after = await client.post("/api/agents/buyer/requests", json=ASK, params={"after": "one"})
        assert after.status_code == 200, after.text
        assert after.json()["content"] == "Not finished: cancelled"


async def test_a_flow_is_gone_on_from_and_nothing_is_not() -> None:
    async with here() as (client, _):
        plan = {"steps": [{"name": one, "type": "infer", "input": one} for one in ("one", "two")]}
        asked = {**ASK, "mode": "plan", "plan": plan}
        planned = await client.post("/api/agents/echo/requests", json=asked, params={"loop_id": "flow"})
        assert planned.status_code == 200
        gone_on = await client.post("/api/agents/echo/requests", json=ASK, params={"after": "flow"})
        assert gone_on.status_code == 200
        answer = await client.post("/api/agents/echo/requests", json=ASK, params={"after": "nothing"})
        assert problem(answer)[1] == "ORCHESTRATION_LOOP_NOT_FOUND"


def _asking(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


async def until_waiting(service: Service, loop_id: str) -> None:
    """Wait until a call of a loop waits for somebody."""
    length = 0
    while not await service.waiting(loop_id):
        length = await service.journal.wait(loop_id, length)

"""What people may do, by every door: their loops are theirs, and what is not for them is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from flyball import Agent
from flyball.core.events import SignalReceived
from flyball.core.messages import Message
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.permissions import Permissions, Policy
from flyball.orchestrate.service import Service
from tests.adapters.http.people import People
from tests.adapters.http.running import here, told

HELLO = {"messages": [{"role": "user", "content": "Hello"}]}
TOOL: dict[str, Any] = {"type": "function", "name": "locate", "parameters": {"type": "object"}}
NOBODY_LOOKS = Policy(Permissions(view=("admin",)))
NOBODY_BEGINS = Policy(Permissions(submit_task=("admin",)))


async def _mapping(request: Request) -> Message | str:
    results = told(request)
    return f"It is {results[-1]}." if results else tool_call_answer("locate", {})


@pytest.fixture
def people(tmp_path: Path) -> People:
    return People(tmp_path)


async def begun_by(client: AsyncClient, headers: dict[str, str], **more: Any) -> str:
    """The id of a loop that somebody has begun, and that is over."""
    path = "/api/agents/echo/requests"
    answer = await client.post(path, json={**HELLO, **more}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["loop_id"]


async def owner(service: Service, loop_id: str) -> tuple[str, str]:
    one = await service.summary(loop_id)
    return one.user_id, one.channel


async def test_what_is_begun_by_openais_protocol_is_whose_token_it_is(people: People) -> None:
    async with here(tokens=people.tokens) as (client, service):
        body = {"model": "echo", "input": "Hello"}
        response = await client.post("/v1/responses", json=body, headers=people.headers("ann"))
        loop_id = response.json()["id"].removeprefix("resp_")
        assert await owner(service, loop_id) == ("ann", "")
        chat = {"model": "echo", **HELLO}
        await client.post("/v1/chat/completions", json=chat, headers=people.headers("ben"))
        await client.post("/v1/chat/completions", json=chat, headers=people.headers("bot"))
        newest = await service.journal.loops("", 10)
        assert sorted([(await owner(service, one))[0] for one in newest]) == ["", "ann", "ben"]


async def test_a_response_is_cancelled_by_those_who_may(people: People) -> None:
    mapper = Agent(FunctionEngine(_mapping), name="mapper")
    async with here(mapper, tokens=people.tokens) as (client, service):
        body = {"model": "mapper", "input": "Where is it?", "tools": [TOOL]}
        given = await client.post("/v1/responses", json=body, headers=people.headers("ann"))
        assert given.status_code == 200, given.text
        name, call = given.json()["id"], given.json()["output"][0]["call_id"]
        output = {"type": "function_call_output", "call_id": call, "output": "here"}
        answer = {"model": "mapper", "previous_response_id": name, "input": [output], "tools": [TOOL]}
        refused = await client.post("/v1/responses", json=answer, headers=people.headers("ben"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "ORCHESTRATION_NOT_PERMITTED")
        path = f"/v1/responses/{name}/cancel"
        refused = await client.post(path, headers=people.headers("ben"))
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "ORCHESTRATION_NOT_PERMITTED")
        assert (await client.post(path, headers=people.headers("ann"))).json()["status"] == "cancelled"
        events, _ = await service.load(name.removeprefix("resp_"))
        assert [event.signal.by for event in events if isinstance(event, SignalReceived)] == ["ann"]


async def test_a_fork_is_theirs_who_forked_it_and_is_told_on_no_channel(people: People) -> None:
    async with here(tokens=people.tokens) as (client, service):
        where = {"channel_type": "slack", "channel_id": "general", "message_id": "m", "about": "tea"}
        loop_id = await begun_by(client, people.headers("bot"), metadata={**where, "user_id": "cat"})
        assert await owner(service, loop_id) == ("cat", "slack/general")
        path, body = f"/api/loops/{loop_id}/fork", {"turn": 0, "prompt": "And now?"}
        by_ann = (await client.post(path, json=body, headers=people.headers("ann"))).json()["loop_id"]
        by_bot = (await client.post(path, json=body, headers=people.headers("bot"))).json()["loop_id"]
        assert await owner(service, by_ann) == ("ann", "")
        assert await owner(service, by_bot) == ("cat", "")
        _, state = await service.load(by_ann)
        about = {name: value for name, value in (state.metadata or {}).items() if name != "flyball"}
        assert about == {"about": "tea", "user_id": "ann"}


async def test_nobody_has_a_loop_told_on_a_channel_by_saying_so(people: People) -> None:
    async with here(tokens=people.tokens) as (client, service):
        forged = {"channel_type": "slack", "channel_id": "general", "user_id": "root"}
        loop_id = await begun_by(client, people.headers("ann"), metadata=forged)
        assert await owner(service, loop_id) == ("ann", "")


async def test_who_may_not_look_does_not_see_by_going_on(people: People) -> None:
    async with here(tokens=people.tokens, policy=NOBODY_LOOKS) as (client, _):
        loop_id = await begun_by(client, people.headers("root"))
        ann = people.headers("ann")
        body = {"model": "echo", "input": "And?", "previous_response_id": f"resp_{loop_id}"}
        refused = [
            await client.post("/v1/responses", json=body, headers=ann),
            await client.post(f"/api/loops/{loop_id}/fork", json={"turn": 0}, headers=ann),
            await client.post(
                "/api/agents/echo/requests", params={"after": loop_id}, json=HELLO, headers=ann
            ),
            await client.get(f"/v1/responses/resp_{loop_id}", headers=ann),
            await client.get(f"/api/loops/{loop_id}/events", headers=ann),
        ]
        assert [one.status_code for one in refused] == [403] * len(refused)


async def test_what_is_the_servers_is_for_those_who_may_stop_anybody(people: People) -> None:
    async with here(tokens=people.tokens) as (client, _):
        loop_id = await begun_by(client, people.headers("ann"))
        for path in ("/metrics", "/api/dead-letters"):
            for name, may in (("ann", False), ("ben", False), ("root", True), ("bot", True)):
                answer = await client.get(path, headers=people.headers(name))
                assert (answer.status_code != 403) is may, (path, name)
        path = f"/v1/responses/resp_{loop_id}"
        assert (await client.delete(path, headers=people.headers("ben"))).status_code == 403
        assert (await client.get(path, headers=people.headers("ben"))).status_code == 200


async def test_who_may_not_begin_does_by_no_door(people: People) -> None:
    async with here(tokens=people.tokens, policy=NOBODY_BEGINS) as (client, service):
        ann = people.headers("ann")
        refused = [
            await client.post("/api/agents/echo/requests", json=HELLO, headers=ann),
            await client.post("/api/agents/echo/loops", json=HELLO, headers=ann),
            await client.post("/v1/chat/completions", json={"model": "echo", **HELLO}, headers=ann),
            await client.post("/v1/responses", json={"model": "echo", "input": "x"}, headers=ann),
        ]
        assert [one.status_code for one in refused] == [403] * len(refused)
        assert not await service.journal.loops("", 10)

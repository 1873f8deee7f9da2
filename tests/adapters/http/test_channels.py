"""Channels over HTTP: people say something, and are told what becomes of it; each does what they may."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from httpx import AsyncClient

from flyball import Agent
from flyball.core.events import SignalReceived
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.permissions import Policy
from flyball.orchestrate.service import Service
from tests.adapters.http.people import People
from tests.adapters.http.running import here
from tests.patience import PATIENCE

PLACE = "/api/channels/slack/general"


async def say(client: AsyncClient, content: str, **more: Any) -> dict[str, Any]:
    answer = await client.post(f"{PLACE}/messages", json={"content": content, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def told(client: AsyncClient, **headers: str) -> AsyncGenerator[dict[str, Any]]:
    """The responses on the channel, as they come."""
    async with client.stream("GET", f"{PLACE}/responses", headers=headers) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                yield msgspec.json.decode(line[6:])


async def until(responses: AsyncGenerator[dict[str, Any]], kind: str) -> dict[str, Any]:
    async with asyncio.timeout(PATIENCE):
        async for one in responses:
            if one["type"] == kind:
                return one
    raise AssertionError("it does not end")


async def test_what_is_said_is_answered_on_the_channel() -> None:
    async with here() as (client, _):
        begun = await say(client, "Hello", metadata={"agent": "echo"}, user_id="ann")
        assert begun["type"] == "status"
        async with aclosing(told(client, **{"Last-Event-ID": begun["response_id"]})) as responses:
            result = await until(responses, "result")
        assert (result["content"], result["user_id"]) == ("You said: Hello", "ann")
        assert result["in_reply_to"] == begun["in_reply_to"]
        listed = (await client.get("/api/loops", params={"channel": "slack/general"})).json()
        assert [one["user_id"] for one in listed["loops"]] == ["ann"]


async def test_pieces_of_an_answer_are_told_to_who_follows() -> None:
    """Though nobody follows the loop before it has begun."""
    gate = asyncio.Event()

    async def slowly(_: Request) -> AsyncGenerator[str]:
        yield "Once upon a time "
        await gate.wait()
        yield "there was a governor."

    async def at_once(_: Request) -> str:
        raise AssertionError("nobody wants it at once")

    teller = Agent(FunctionEngine(at_once, slowly), name="teller")
    async with here(teller) as (client, _), aclosing(told(client)) as responses:
        await say(client, "A story", user_id="ann")
        piece = await until(responses, "stream")
        gate.set()
        result = await until(responses, "result")
    assert piece["content"].startswith("Once upon")
    assert result["content"] == "Once upon a time there was a governor."


async def test_an_approval_is_asked_for_and_given() -> None:
    async with here() as (client, _), aclosing(told(client)) as responses:
        await say(client, "Buy it", metadata={"agent": "buyer"}, user_id="ann")
        prompt = await until(responses, "prompt")
        action = prompt["actions"][0]
        signal = {"type": action["signal"], "loop_id": prompt["in_reply_to"], "user_id": "ann"}
        answer = await client.post(f"{PLACE}/signals", json=signal)
        assert answer.json()["type"] == "status", answer.text
        assert (await until(responses, "result"))["content"] == "paid 4"


async def test_who_comes_again_misses_nothing() -> None:
    async with here() as (client, _):
        begun = await say(client, "one", metadata={"agent": "echo"})
        async with aclosing(told(client, **{"Last-Event-ID": begun["response_id"]})) as responses:
            first = await until(responses, "result")
            # And live: what is said while somebody follows.
            await say(client, "/new and then", metadata={"agent": "echo"})
            assert "and then" in (await until(responses, "result"))["content"]
        await say(client, "/new two", metadata={"agent": "echo"})
        await say(client, "Buy it", metadata={"agent": "buyer"}, user_id="ben")
        async with aclosing(told(client, **{"Last-Event-ID": first["response_id"]})) as responses:
            found: list[dict[str, Any]] = []
            while len(found) < 3:
                found.append(await anext(responses))
        assert sorted([one["type"] for one in found]) == ["prompt", "result", "result"]
        # Without a place to go on from, what is not over is told.
        async with aclosing(told(client)) as responses:
            assert (await until(responses, "prompt"))["user_id"] == "ben"


async def test_a_slash_in_a_name_is_none_between_two() -> None:
    async with here() as (client, _):

        async def at(place: str, content: str, by: str) -> dict[str, Any]:
            body = {"content": content, "user_id": by, "thread_id": "t", "metadata": {"agent": "echo"}}
            return (await client.post(f"/api/channels/{place}/messages", json=body)).json()

        one, two = await at("sl%2Fack/a", "one", "ann"), await at("sl/ack%2Fa", "two", "eve")
        assert one["in_reply_to"] != two["in_reply_to"], "eve goes on from nothing of ann's"
        for place, begun, content in (("sl%2Fack/a", one, "one"), ("sl/ack%2Fa", two, "two")):
            last = {"Last-Event-ID": begun["response_id"]}
            async with client.stream("GET", f"/api/channels/{place}/responses", headers=last) as stream:
                async for line in stream.aiter_lines():
                    if line.startswith("data: "):
                        assert msgspec.json.decode(line[6:])["content"] == f"You said: {content}"
                        break


async def heard(client: AsyncClient, last: str, until: str) -> list[tuple[str, str, str]]:
    """What comes after a response, up to one whose text ends so: the id on the wire and its own, the text."""
    found: list[tuple[str, str, str]] = []
    async with asyncio.timeout(PATIENCE):
        async with client.stream("GET", f"{PLACE}/responses", headers={"Last-Event-ID": last}) as stream:
            name = ""
            async for line in stream.aiter_lines():
                if line.startswith("id: "):
                    name = line[4:]
                elif line.startswith("data: "):
                    one = msgspec.json.decode(line[6:])
                    found.append((name, one["response_id"], one["content"]))
                    name = ""
                    if one["content"].endswith(until):
                        return found
    raise AssertionError("it does not come")


async def test_who_comes_back_after_any_response_is_told_the_rest_in_order() -> None:
    async with here() as (client, _):
        begun = [
            await say(client, f"/new {n}", user_id=f"u{n}", metadata={"agent": "echo"}) for n in range(5)
        ]
        for one in begun:
            await heard(client, one["response_id"], one["user_id"][1:])
        last = (await say(client, "/new x", user_id="x", metadata={"agent": "echo"}))["response_id"]
        await heard(client, last, "x")
        whole = await heard(client, begun[0]["response_id"], "x")
        assert [name for name, _, _ in whole] == [own for _, own, _ in whole]
        assert [text[-1] for _, _, text in whole] == list("01234x")
        for number, (name, _, _) in enumerate(whole[:-1], 1):
            assert await heard(client, name, "x") == whole[number:]


async def test_what_is_told_again_gives_no_id_to_come_back_with() -> None:
    async with here() as (client, _):
        await say(client, "Buy it", metadata={"agent": "buyer"}, user_id="ben")
        begun = await say(client, "one", metadata={"agent": "echo"}, user_id="ann")
        ((result, _, _),) = [
            one for one in await heard(client, begun["response_id"], "one") if one[2].endswith("one")
        ]
        again = await heard(client, result, "may it?")
        assert [(name, own != result) for name, own, _ in again] == [("", True)]


async def test_the_headers_come_at_once() -> None:
    """Though nothing is told, and no sign of life is due yet."""
    async with (
        here(heartbeat=10 * PATIENCE) as (client, _),
        asyncio.timeout(PATIENCE),
        client.stream("GET", f"{PLACE}/responses") as stream,
    ):
        assert stream.status_code == 200
        assert stream.headers["content-type"].startswith("text/event-stream")
        assert (await anext(stream.aiter_lines())).startswith(":")


@pytest.mark.parametrize("last", ["bogus", "nowhere/7", "m/taken"])
async def test_an_id_that_is_none_is_answered_as_such(last: str) -> None:
    async with here() as (client, _):
        for header, query in (({"Last-Event-ID": last}, {}), ({}, {"after": last})):
            answer = await client.get(f"{PLACE}/responses", headers=header, params=query)
            assert (answer.status_code, answer.json()["code"]) == (422, "CONFIG_INVALID_REQUEST"), answer.text
            assert "no response on this channel" in answer.json()["detail"]


async def test_the_same_message_again_is_taken_once() -> None:
    async with here() as (client, service):
        first = await say(client, "one", message_id="m1", metadata={"agent": "echo"})
        again = await say(client, "one", message_id="m1", metadata={"agent": "echo"})
        assert first["in_reply_to"] == again["in_reply_to"]
        assert len(await service.journal.loops("", 10)) == 1


async def test_a_message_of_long_ago_is_known_when_it_comes_again() -> None:
    async with here() as (client, service):
        for number in range(6):  # more than are looked for in the journal
            begun = await say(client, f"/new {number}", message_id=f"m{number}", metadata={"agent": "echo"})
            async with aclosing(told(client, **{"Last-Event-ID": begun["response_id"]})) as responses:
                await until(responses, "result")
        await say(client, "/new 0", message_id="m0", metadata={"agent": "echo"})
        assert len(await service.journal.loops("", 10)) == 6


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ([], ""),
        ({}, "content"),
        ({"content": "x", "channel_id": "other"}, "channel_id"),
        ({"content": 7}, ""),
        ({"content": "x", "attachments": [{"type": "film"}]}, "type"),
    ],
)
async def test_what_is_no_message_is_refused(body: Any, field: str) -> None:
    async with here() as (client, service):
        answer = await client.post(f"{PLACE}/messages", json=body)
        assert answer.status_code == 422, (field, answer.text)
        assert not await service.journal.loops("", 10)


async def _buying(client: AsyncClient, people: People, service: Service) -> str:
    """Ann has something bought; gives the loop, when it waits for an approval."""
    body = {"messages": [{"role": "user", "content": "Buy it"}]}
    begun = await client.post("/api/agents/buyer/loops", json=body, headers=people.headers("ann"))
    loop = begun.json()["loop_id"]
    async with asyncio.timeout(PATIENCE):
        while not await service.waiting(loop):
            await service.journal.wait(loop, (await service.journal.sizes((loop,)))[0], 1.0)
    return loop


async def test_signals_are_for_those_who_may(tmp_path: Path) -> None:
    people = People(tmp_path)
    async with here(tokens=people.tokens) as (client, service):
        loop = await _buying(client, people, service)

        async def signal(name: str, kind: str) -> int:
            where = f"/api/loops/{loop}/signals"
            answer = await client.post(where, json={"type": kind}, headers=people.headers(name))
            return answer.status_code

        assert await signal("ann", "approve") == 403
        assert await signal("ben", "cancel") == 403
        assert await signal("ben", "pause") == 403
        assert await signal("ann", "pause") == 200
        assert await signal("root", "resume") == 200
        assert await signal("ben", "approve") == 200
        events, _ = await service.load(loop)
        said = [getattr(event, "signal", None) for event in events]
        assert [(str(one.type), one.by) for one in said if one is not None] == [
            ("pause", "ann"),
            ("resume", "root"),
            ("approve", "ben"),
        ]


async def test_two_people_may_have_signals_of_the_same_id(tmp_path: Path) -> None:
    """Nobody's signal is taken away by another's; one that comes again is taken once."""
    people = People(tmp_path)
    async with here(tokens=people.tokens) as (client, service):
        loop = await _buying(client, people, service)
        for name, kind in (("ann", "pause"), ("ann", "pause"), ("root", "resume"), ("ben", "approve")):
            said = {"type": kind, "id": "1"}
            answer = await client.post(f"/api/loops/{loop}/signals", json=said, headers=people.headers(name))
            assert answer.status_code == 200, answer.text
        other = {"type": "cancel", "id": "1"}
        answer = await client.post(f"/api/loops/{loop}/signals", json=other, headers=people.headers("ann"))
        assert answer.status_code == 409, "it is that of another of hers"
        events, _ = await service.load(loop)
        said = [event.signal for event in events if isinstance(event, SignalReceived)]
        assert [(str(one.type), one.by) for one in said] == [
            ("pause", "ann"),
            ("resume", "root"),
            ("approve", "ben"),
        ]


async def test_a_reviewer_is_asked_about_an_answer_leaves_and_is_told_the_rest(tmp_path: Path) -> None:
    """Also where somebody else decides while they are away."""
    people = People(tmp_path)
    drafts = FunctionEngine(_drafted, info="drafts")
    clerk = Agent(drafts, name="clerk", output_approval=True)
    async with here(clerk, tokens=people.tokens) as (client, service):
        ann, ben, root = people.headers("ann"), people.headers("ben"), people.headers("root")
        begun = (await client.post(f"{PLACE}/messages", json={"content": "Write"}, headers=ann)).json()
        async with aclosing(told(client, **ben)) as responses:
            prompt = await until(responses, "prompt")
        assert (prompt["user_id"], prompt["blocks"][0]["content"]) == ("ben", "draft 1")
        async with aclosing(told(client, **ann)) as responses:
            waits = await until(responses, "status")
        assert ("draft" in str(waits), waits.get("actions", [])) == (False, [])
        again = {**ben, "Last-Event-ID": prompt["response_id"]}
        async with aclosing(told(client, **again)) as responses:
            assert await until(responses, "prompt") == prompt, "it still waits"
        signal = {"type": "reject", "loop_id": begun["in_reply_to"], "payload": "softer"}
        assert (await client.post(f"{PLACE}/signals", json=signal, headers=root)).json()["type"] == "status"
        async with aclosing(told(client, **again)) as responses:
            second = prompt
            while second["response_id"] == prompt["response_id"]:
                second = await until(responses, "prompt")
        assert second["blocks"][0]["content"] == "draft 3"
        action = second["actions"][0]
        signal = {"type": action["signal"], "loop_id": second["in_reply_to"]}
        assert (await client.post(f"{PLACE}/signals", json=signal, headers=ben)).json()["type"] == "status"
        # Ann, who went away when she was told that it waits, comes again when all is over.
        async with asyncio.timeout(PATIENCE):
            while not (await service.standing(begun["in_reply_to"]))[1]:
                await service.journal.wait(
                    begun["in_reply_to"], (await service.standing(begun["in_reply_to"]))[0], 1.0
                )
        async with aclosing(told(client, **ann, **{"Last-Event-ID": waits["response_id"]})) as responses:
            result = await until(responses, "result")
        assert (waits["response_id"].endswith("/answer"), result["content"]) == (True, "draft 3")


async def _drafted(request: Request) -> str:
    return f"draft {len(request.messages)}"


async def test_a_person_speaks_for_nobody_else(tmp_path: Path) -> None:
    people = People(tmp_path)
    async with here(tokens=people.tokens) as (client, _):
        body = {"content": "Hello", "user_id": "root", "metadata": {"agent": "echo"}}
        answer = await client.post(f"{PLACE}/messages", json=body, headers=people.headers("ann"))
        assert (answer.status_code, "nobody else" in answer.text) == (422, True)
        del body["user_id"]
        answer = await client.post(f"{PLACE}/messages", json=body, headers=people.headers("ann"))
        assert answer.json()["user_id"] == "ann"


async def test_a_program_speaks_for_people_whose_roles_the_policy_knows(tmp_path: Path) -> None:
    people = People(tmp_path)
    async with here(tokens=people.tokens, policy=Policy(roles={"eve": ("reviewer",)})) as (client, service):
        loop = await _buying(client, people, service)
        signal = {"type": "approve", "loop_id": loop, "user_id": "ann"}
        headers = people.headers("bot")
        assert (await client.post(f"{PLACE}/signals", json=signal, headers=headers)).json()["type"] == "error"
        signal["user_id"] = "eve"
        assert (await client.post(f"{PLACE}/signals", json=signal, headers=headers)).json()[
            "type"
        ] == "status"

"""The official client, unchanged, talks to the agents of a server: through the gate, with its tokens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from flyball import Agent
from flyball.adapters.http.limits import Limits
from flyball.adapters.http.tokens import Scope, Tokens
from flyball.core.events import Outcome
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.recorded import until_done
from flyball.orchestrate.service import Service
from flyball.testing import tool_call
from tests.adapters.http.running import agents, here, on_disk
from tests.patience import PATIENCE

HI: Any = [{"role": "user", "content": "How much?"}]


@asynccontextmanager
async def talking(
    *given: Agent[Any, Any], key: str = "none", **options: Any
) -> AsyncGenerator[tuple[Any, Service]]:
    async with here(*given, **options) as (client, service), of(str(client.base_url), key) as official:
        yield official, service


@asynccontextmanager
async def of(url: str, key: str) -> AsyncGenerator[openai.AsyncOpenAI]:
    base = f"{url.rstrip('/')}/v1"
    async with openai.AsyncOpenAI(base_url=base, api_key=key, max_retries=0, timeout=PATIENCE) as official:
        yield official


async def test_a_chat_with_an_agent_whole_and_in_pieces() -> None:
    async with talking() as (client, service):
        answer = await client.chat.completions.create(model="counter", messages=HI)
        assert answer.choices[0].message.content == "It is 3."
        text = ""
        async for chunk in await client.chat.completions.create(model="counter", messages=HI, stream=True):
            text += chunk.choices[0].delta.content or "" if chunk.choices else ""
        assert text == "It is 3."
        assert len(await service.journal.loops()) == 2
        assert {one.id for one in (await client.models.list()).data} == {one.config.name for one in agents()}


async def test_a_typed_answer_and_a_tool_of_the_callers() -> None:
    class Number(BaseModel):
        n: int

    call = tool_call("weather", {"city": "Rome"}, "call_a")
    scripted = Agent(ScriptedEngine(call, "It rains."), name="forecaster")
    async with talking(Agent("test", name="number"), scripted) as (client, service):
        parsed = await client.chat.completions.parse(model="number", messages=HI, response_format=Number)
        assert parsed.choices[0].message.parsed == Number(n=0)
        parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
        tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]
        first = await client.chat.completions.create(model="forecaster", messages=HI, tools=tools)
        (asked,) = first.choices[0].message.tool_calls
        result = {"role": "tool", "tool_call_id": asked.id, "content": "rain"}
        talk = [*HI, first.choices[0].message.to_dict(), result]
        second = await client.chat.completions.create(model="forecaster", messages=talk, tools=tools)
        assert second.choices[0].message.content == "It rains."
        assert len(await service.journal.loops()) == 2  # the second request went on with the first one's loop


async def test_responses_one_after_the_other() -> None:
    async with talking(Agent(ScriptedEngine("One.", "Two."), name="counting")) as (client, _):
        one = await client.responses.create(model="counting", input="Count.")
        two = await client.responses.create(model="counting", input="Go on.", previous_response_id=one.id)
        assert (one.output_text, two.output_text) == ("One.", "Two.")
        assert (await client.responses.retrieve(one.id)).output_text == "One."


async def test_outputs_are_sent_again() -> None:
    call = tool_call("weather", {"city": "Rome"}, "call_a")
    async with talking(Agent(ScriptedEngine(call, "It rains."), name="forecaster")) as (client, service):
        tools: Any = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]
        first = await client.responses.create(model="forecaster", input="Rain?", tools=tools)
        output = {"type": "function_call_output", "call_id": first.output[0].call_id, "output": "rain"}
        more: Any = {"model": "forecaster", "input": [output], "previous_response_id": first.id}
        given = [await client.responses.create(tools=tools, **more) for _ in range(2)]
        assert [one.output_text for one in given] == ["It rains."] * 2
        assert given[0].output == given[1].output
        stream = await client.responses.create(tools=tools, stream=True, **more)
        assert [event async for event in stream][-1].response.output_text == "It rains."
        assert len(await service.journal.loops()) == 1


async def test_a_response_is_deleted(tmp_path: Path) -> None:
    call = tool_call("weather", {"city": "Rome"}, "call_a")
    tokens = Tokens(tmp_path / "tokens.json")
    key, _ = tokens.add("ann")
    weak, _ = tokens.add("bob", scopes=[Scope.READ, Scope.RUN, Scope.SIGNAL])
    agent = Agent(ScriptedEngine("One.", call), name="counting")
    async with on_disk(tmp_path, agent, tokens=tokens) as (client, tenants):
        url, journal = str(client.base_url), (await tenants()).journal
        async with of(url, key) as ann, of(url, weak) as bob:
            one = await ann.responses.create(model="counting", input="Count.")
            with pytest.raises(openai.PermissionDeniedError):
                await bob.responses.delete(one.id)
            raw = await ann.responses.with_raw_response.delete(one.id)
            assert raw.http_response.json() == {"id": one.id, "object": "response", "deleted": True}
            for gone in (ann.responses.retrieve, ann.responses.delete):
                with pytest.raises(openai.NotFoundError):
                    await gone(one.id)
            assert await journal.loops() == []
            tools: Any = [{"type": "function", "name": "weather", "parameters": {"type": "object"}}]
            waits = await ann.responses.create(model="counting", input="Rain?", tools=tools)
            with pytest.raises(openai.ConflictError):
                await ann.responses.delete(waits.id)
            await ann.responses.cancel(waits.id)
            await until_done(journal, waits.id.removeprefix("resp_"))
            await ann.responses.delete(waits.id)
    async with talking(Agent("test", name="kept")) as (to, _):
        kept = await to.responses.create(model="kept", input="Hello")
        with pytest.raises(openai.BadRequestError, match="keeps all"):
            await to.responses.delete(kept.id)


async def test_a_response_is_cancelled() -> None:
    asked, go = asyncio.Event(), asyncio.Event()

    async def pause() -> None:
        asked.set()
        await go.wait()

    async with talking(Agent(ScriptedEngine("late", pause=pause), name="slow")) as (client, service):
        making = asyncio.create_task(client.responses.create(model="slow", input="Go."))
        await asked.wait()
        (loop_id,) = await service.journal.loops()
        assert (await client.responses.cancel(f"resp_{loop_id}")).status == "cancelled"
        with pytest.raises(openai.ConflictError):
            await making
        go.set()


async def test_who_reads_no_longer_leaves_the_run_alone() -> None:
    go = asyncio.Event()
    engine = ScriptedEngine("A long answer, in pieces.", chunk=2, pause=go.wait)
    async with talking(Agent(engine, name="slow")) as (client, service):
        making = asyncio.create_task(client.chat.completions.create(model="slow", messages=HI, stream=True))
        while not (loops := await service.journal.loops()):  # noqa: ASYNC110 - nobody tells of it
            await asyncio.sleep(0.001)
        making.cancel()
        await asyncio.gather(making, return_exceptions=True)
        go.set()
        assert (await until_done(service.journal, loops[0])).outcome is Outcome.SUCCESS


async def test_refusals_are_the_exceptions_that_the_client_has_for_them(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    key = tokens.add("ann")[0]
    reader = tokens.add("bob", scopes=[Scope.READ])[0]
    async with here(tokens=tokens, limits=Limits(body=2000, rate=50)) as (client, _):
        url = str(client.base_url)
        async with of(url, "sk-wrong") as wrong:
            with pytest.raises(openai.AuthenticationError, match="token"):
                await wrong.chat.completions.create(model="echo", messages=HI)
        async with of(url, reader) as limited:
            assert (await limited.models.list()).data
            with pytest.raises(openai.PermissionDeniedError):
                await limited.chat.completions.create(model="echo", messages=HI)
        async with of(url, key) as official:
            with pytest.raises(openai.NotFoundError, match="nobody"):
                await official.chat.completions.create(model="nobody", messages=HI)
            with pytest.raises(openai.BadRequestError, match="n: "):
                await official.chat.completions.create(model="echo", messages=HI, n=3)
            with pytest.raises(openai.BadRequestError):
                await official.embeddings.create(model="echo", input="words")
            with pytest.raises(openai.APIStatusError) as large:
                await official.chat.completions.create(
                    model="echo", messages=[{"role": "user", "content": "x" * 3000}]
                )
            assert large.value.status_code == 413
            with pytest.raises(openai.RateLimitError):
                await asyncio.gather(*[official.models.list() for _ in range(60)])


async def test_a_tenant_goes_on_from_no_response_of_anothers(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.json")
    ann, bob = (tokens.add(name, tenant=name)[0] for name in ("ann", "bob"))
    async with on_disk(tmp_path, tokens=tokens) as (client, _):
        url = str(client.base_url)
        async with of(url, ann) as hers, of(url, bob) as his:
            said = await hers.responses.create(model="echo", input="A secret.")
            for asking in (
                his.responses.retrieve(said.id),
                his.responses.cancel(said.id),
                his.responses.create(model="echo", input="And?", previous_response_id=said.id),
            ):
                with pytest.raises(
                    (openai.NotFoundError, openai.BadRequestError), match=r"not found|no response"
                ):
                    await asking

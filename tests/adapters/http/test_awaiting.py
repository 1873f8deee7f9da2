"""A server whose model is on its way: it is there, and says so; who asks the model comes again, or waits."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient

from flyball import Agent
from flyball.core.errors import FlyballError, ModelBeingFetched
from flyball.inference.permission import allow_model_requests
from flyball.orchestrate.recorded import until_done
from tests.adapters.http.running import ASK, agents, here, problem
from tests.patience import PATIENCE

SAID = "the model tiny is being fetched (37 %)"
CHAT = {"model": "tiny", "messages": ASK["messages"]}


class Coming:
    """The model `test` is on its way until it is let come."""

    def __init__(self) -> None:
        self.here = asyncio.Event()

    def missing(self, model: str | None = None) -> FlyballError | None:
        """See `Arriving`."""
        if self.here.is_set() or model not in (None, "test"):
            return None
        return ModelBeingFetched(SAID, model="tiny", percent=37, retry_after=12)

    async def wait(self, model: str) -> None:
        """See `Arriving`."""
        await self.here.wait()


def served() -> list[Agent[Any, Any]]:
    return [Agent("test", name="tiny"), *agents()]


async def test_it_lives_and_is_not_ready() -> None:
    coming = Coming()
    async with here(*served(), arriving=coming) as (client, _):
        assert (await client.get("/health")).json()["status"] == "ok"
        ready = await client.get("/ready")
        assert (ready.status_code, ready.json()["reason"]) == (503, SAID)
        assert ready.headers["retry-after"] == "12"
        assert (await client.get("/")).status_code == 200
        assert len((await client.get("/api/agents")).json()["agents"]) == 5
        coming.here.set()
        assert (await client.get("/ready")).status_code == 200


@pytest.mark.parametrize("what", ["requests", "stream"])
async def test_who_asks_the_model_is_told_when_to_come_again(what: str) -> None:
    async with here(*served(), arriving=Coming()) as (client, _):
        refused = await client.post(f"/api/agents/tiny/{what}", json=ASK)
        assert problem(refused) == (503, "INFERENCE_MODEL_BEING_FETCHED")
        assert refused.headers["retry-after"] == "12"
        document = refused.json()
        assert (document["detail"], document["retryable"]) == (SAID, True)
        assert document["details"] == {"model": "tiny", "percent": 37, "retry_after": 12}
        assert (await client.post("/api/agents/echo/requests", json=ASK)).status_code == 200
        assert (await client.get("/api/loops")).json()["loops"][0]["agent"] == "echo", "no other began"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("chat/completions", CHAT),
        ("responses", {"model": "tiny", "input": "Hello"}),
        ("embeddings", {"model": "tiny", "input": "Hello"}),
    ],
)
async def test_openais_clients_are_told_in_their_words(path: str, body: dict[str, Any]) -> None:
    async with here(*served(), arriving=Coming()) as (client, _):
        refused = await client.post(f"/v1/{path}", json=body)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "12")
        assert refused.json()["error"]["code"] == "INFERENCE_MODEL_BEING_FETCHED"


async def test_who_would_rather_wait_is_answered_once_it_is_there() -> None:
    coming = Coming()
    async with here(*served(), arriving=coming) as (client, _):
        patient = {"Prefer": "respond-async, wait=600"}
        with allow_model_requests():
            asked = [
                asyncio.create_task(client.post("/v1/chat/completions", json=CHAT, headers=patient)),
                asyncio.create_task(client.post("/api/agents/tiny/requests", json=ASK, headers=patient)),
            ]
            while "flyball_http_requests_under_way 3.0" not in (await client.get("/metrics")).text:
                pass
            assert not any(one.done() for one in asked)
            coming.here.set()
            assert [answer.status_code for answer in await asyncio.gather(*asked)] == [200, 200]
        brief = await client.post("/api/agents/tiny/requests", json=ASK, headers={"Prefer": "wait=0"})
        assert brief.status_code == 200


async def test_who_waits_too_long_is_told_like_the_others() -> None:
    async with here(*served(), arriving=Coming()) as (client, _):
        refused = await client.post("/v1/chat/completions", json=CHAT, headers={"Prefer": "wait=0"})
        assert refused.status_code == 503


async def test_the_end_keeps_nobody_waiting() -> None:
    async with AsyncClient(headers={"Prefer": "wait=600"}, timeout=PATIENCE) as patient:
        async with here(*served(), arriving=Coming()) as (client, _):
            where = f"{client.base_url}/api/agents/tiny/requests"
            asked = asyncio.create_task(patient.post(where, json=ASK))
            while "flyball_http_requests_under_way 2.0" not in (await client.get("/metrics")).text:
                pass
        assert problem(await asked) == (503, "API_SHUTTING_DOWN")


async def test_a_loop_may_begin_all_the_same() -> None:
    async with here(*served(), arriving=Coming()) as (client, service):
        begun = await client.post("/api/agents/echo/loops", json=ASK, params={"loop_id": "one"})
        other = await client.post("/api/agents/tiny/loops", json=ASK, params={"loop_id": "two"})
        assert (begun.status_code, other.status_code) == (202, 202)
        await until_done(service.journal, "two")

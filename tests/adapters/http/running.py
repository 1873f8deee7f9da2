"""A real server on this machine, for tests: uvicorn on a socket, in the test's own event loop."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from httpx import AsyncClient, Response

from flyball import Agent, tool
from flyball.adapters.http.api import build_api
from flyball.adapters.http.awaiting import Arriving
from flyball.adapters.http.limits import Limits
from flyball.adapters.http.logs import Log
from flyball.adapters.http.server import listening, serve
from flyball.adapters.http.tokens import Tokens
from flyball.core.messages import Message
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.permissions import Policy
from flyball.orchestrate.service import Service
from flyball.runtime.services import Tenants, local_services
from flyball.tool.errors import CallDeferred
from tests.patience import PATIENCE

_NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""Nobody here speaks TLS: to read whom the system trusts takes each client longer than all the rest."""
ASK = {"messages": [{"role": "user", "content": "How much?"}]}


@tool
async def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@tool(approval=True)
async def pay(pounds: int) -> str:
    """Pay."""
    return f"paid {pounds}"


@tool
async def build(target: str) -> str:
    """Have something built; somebody says later how it went."""
    raise CallDeferred(f"{target} is in the queue")


def told(request: Request) -> list[str]:
    """What the tools have said."""
    return [result.text for message in request.messages for result in message.tool_results]


async def _counting(request: Request) -> Message | str:
    results = told(request)
    return f"It is {results[-1]}." if results else tool_call_answer("add", {"x": 1, "y": 2})


async def _buying(request: Request) -> Message | str:
    results = told(request)
    return " / ".join(results) if results else tool_call_answer("pay", {"pounds": 4})


async def _building(request: Request) -> Message | str:
    results = told(request)
    return f"The build is {results[-1]}." if results else tool_call_answer("build", {"target": "app"})


async def _echoing(request: Request) -> str:
    return f"You said: {request.messages[-1].text}"


def agents() -> list[Agent[Any, Any]]:
    """An agent that counts, one that asks before it pays, one that waits for a build, one that echoes."""
    return [
        Agent(FunctionEngine(_counting), name="counter", tools=[add]),
        Agent(FunctionEngine(_buying), name="buyer", tools=[pay]),
        Agent(FunctionEngine(_building), name="builder", tools=[build]),
        Agent(FunctionEngine(_echoing), name="echo"),
    ]


@asynccontextmanager
async def served(
    services: Callable[[str], Any],
    *,
    tokens: Tokens | None = None,
    limits: Limits | None = None,
    heartbeat: float = 15.0,
    drain: Callable[[], Any] | None = None,
    log: Log | None = None,
    arriving: Arriving | None = None,
) -> AsyncGenerator[AsyncClient]:
    """A client of a server, which ends with the block."""
    opened = listening("127.0.0.1", 0)
    begun = asyncio.Event()

    async def nothing() -> None:
        return

    api = build_api(services, tokens=tokens, limits=limits, heartbeat=heartbeat, log=log, arriving=arriving)
    serving = asyncio.create_task(serve(api, opened, begun=begun.set, drain=drain or nothing))
    await begun.wait()
    url = f"http://127.0.0.1:{opened.getsockname()[1]}"
    try:
        async with AsyncClient(base_url=url, timeout=PATIENCE, verify=_NO_TLS) as client:
            yield client
    finally:
        serving.cancel()
        await asyncio.gather(serving, return_exceptions=True)


@asynccontextmanager
async def here(*given: Agent[Any, Any], **options: Any) -> AsyncGenerator[tuple[AsyncClient, Service]]:
    """A client of a server whose loops run here and are kept in memory, and the service behind it."""
    async with LocalRuntime(MemoryJournal()) as runtime:
        service = Service(given or agents(), runtime, policy=options.pop("policy", Policy()))

        async def of(_: str) -> Service:
            return service

        async with served(of, **options) as client:
            yield client, service
        await service.aclose()


@asynccontextmanager
async def on_disk(
    folder: Path, *given: Agent[Any, Any], **options: Any
) -> AsyncGenerator[tuple[AsyncClient, Tenants]]:
    """A client of a server over SQLite, with a file for each tenant."""
    tenants = local_services(given or agents(), folder / "runs.db")
    try:
        async with served(tenants, drain=lambda: tenants.drain(5), **options) as client:
            yield client, tenants
    finally:
        await tenants.aclose()


class Told(msgspec.Struct, frozen=True):
    """A server-sent event."""

    event: str
    data: Any
    id: str = ""


def events_in(text: str) -> list[Told]:
    """The events of a stream."""
    return list(_events(text))


def _events(text: str) -> Iterator[Told]:
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if fields:
            yield Told(fields["event"], msgspec.json.decode(fields["data"]), fields.get("id", ""))


async def followed(client: AsyncClient, path: str, **options: Any) -> list[Told]:
    """The events of a stream, to its end."""
    response = await client.get(path, **options)
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "text/event-stream"
    return events_in(response.text)


def problem(response: Response) -> tuple[int, str]:
    """What a problem says to programs."""
    assert response.headers["content-type"] == "application/problem+json", response.text
    document = response.json()
    assert document["status"] == response.status_code
    assert document["request_id"] == response.headers["x-request-id"]
    return response.status_code, document["code"]

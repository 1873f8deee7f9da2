"""The smallest server around the routes, on a real socket of this machine: what any framework would do."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import uvicorn

from flyball.adapters.http.openai import routes
from flyball.adapters.http.openai.errors import Refused, unauthorized
from flyball.core.signals import SignalType
from flyball.inference.embedder import Embedder
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.system import System

KEY = "sk-test"


class Here:
    """A server's agents."""

    def __init__(self, systems: Mapping[str, System], embedder: Embedder | None = None) -> None:
        self.systems = systems
        self._embedder = embedder

    def agents(self) -> Sequence[str]:
        return tuple(self.systems)

    def system(self, name: str) -> System | None:
        return self.systems.get(name)

    def owned(self, request: SystemRequest) -> SystemRequest:
        return request  # nobody's: who may do what is tested with the whole server

    async def check_answer(self, loop_id: str) -> None:
        assert loop_id

    async def cancel(self, loop_id: str) -> None:
        for system in self.systems.values():
            if system.journal is not None and loop_id in await system.journal.loops():
                await send_signal(system.journal, loop_id, SignalType.CANCEL)

    async def delete(self, loop_id: str) -> bool:
        return False

    def embedder(self, name: str) -> Embedder | None:
        return self._embedder if name == "vectors" else None


Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class App:
    """An ASGI application. `requests` are the bodies that came."""

    def __init__(self, serving: routes.Serving) -> None:
        self.serving = serving
        self.requests: list[Any] = []

    async def __call__(self, scope: Mapping[str, Any], receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        body, more = b"", True
        while more:
            message = await receive()
            body += message.get("body", b"")
            more = message.get("more_body", False)
        try:
            if dict(scope["headers"]).get(b"authorization") != f"Bearer {KEY}".encode():
                raise unauthorized()
            document = await self._answer(scope["method"], scope["path"].split("/")[2:], body)
        except Refused as refused:
            await _send(send, refused.status, msgspec.json.encode(refused.document), refused.headers)
            return
        if isinstance(document, dict):
            await _send(send, 200, msgspec.json.encode(document), {})
            return
        try:
            await send(_start(200, "text/event-stream", {}))
            async for frame in document:
                await send({"type": "http.response.body", "body": frame, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            await document.aclose()

    async def _answer(self, method: str, path: list[str], body: bytes) -> routes.Document | routes.Frames:
        serving = self.serving
        given = msgspec.json.decode(body) if body else None
        if method == "POST":
            self.requests.append(given)
        match method, path:
            case "POST", ["chat", "completions"]:
                return await routes.chat_completions(serving, given)
            case "POST", ["responses"]:
                return await routes.responses(serving, given)
            case "GET", ["responses", name]:
                return await routes.retrieve_response(serving, name)
            case "POST", ["responses", name, "cancel"]:
                return await routes.cancel_response(serving, name)
            case "DELETE", ["responses", name]:
                return await routes.delete_response(serving, name)
            case "POST", ["embeddings"]:
                return await routes.embeddings(serving, given)
            case "GET", ["models"]:
                return await routes.models(serving)
            case "GET", ["models", name]:
                return await routes.model(serving, name)
            case _:
                raise Refused("no such path", status=404)


async def _send(send: Send, status: int, body: bytes, headers: Mapping[str, str]) -> None:
    await send(_start(status, "application/json", headers))
    await send({"type": "http.response.body", "body": body})


def _start(status: int, kind: str, headers: Mapping[str, str]) -> dict[str, Any]:
    told = {"content-type": kind, **headers}
    return {
        "type": "http.response.start",
        "status": status,
        "headers": [(name.encode(), value.encode()) for name, value in told.items()],
    }


@asynccontextmanager
async def serve(app: App) -> AsyncGenerator[str]:
    """Serve an app until the block is left; its address."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(app, lifespan="off", log_level="error", timeout_graceful_shutdown=1)  # pyright: ignore[reportArgumentType] - our own narrower types
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve([listening]))
        while not server.started:  # noqa: ASYNC110 - it says so by no event
            await asyncio.sleep(0.005)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        finally:
            server.should_exit = True
            await serving

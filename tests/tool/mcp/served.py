"""The toolbox over HTTP, on this machine: in a thread, so that it can be stopped and started again."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

import uvicorn

from tests.patience import PATIENCE
from tests.tool.mcp.toolbox import make

Scope = dict[str, Any]
App = Callable[[Any, Any, Any], Awaitable[None]]


class Served:
    """A service. `older`: it speaks the protocol's older form only, with sessions.

    `refuse` is a status that requests are answered with instead; `seen` has the headers of all that came.
    """

    def __init__(self, *, older: bool = False, port: int = 0, **app: Any) -> None:
        self.refuse = 0
        self.seen: list[dict[str, str]] = []
        self._older = older
        self._app: App = make().streamable_http_app(**app)
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            self._serve, interface="asgi3", log_level="critical", ws="none", lifespan="on"
        )
        config.timeout_graceful_shutdown = 0
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def _serve(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        self.seen.append({name.decode(): value.decode() for name, value in scope["headers"]})
        if self.refuse:
            return await _answer(send, self.refuse, b"no", "text/plain")
        if self._older and scope["method"] == "POST":
            body, more = b"", True
            while more:
                message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
            asked = json.loads(body)
            if asked.get("method") == "server/discover":
                error = {"code": -32601, "message": "Method not found"}
                reply = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error})
                return await _answer(send, 200, reply.encode(), "application/json")
            given = [{"type": "http.request", "body": body, "more_body": False}]
            again = receive

            async def whole() -> Any:
                return given.pop() if given else await again()

            receive = whole
        return await self._app(scope, receive, send)

    def __enter__(self) -> Served:
        self._thread.start()
        waiting = threading.Event()
        while not self._server.started and self._thread.is_alive():
            waiting.wait(0.002)
        return self

    def stop(self) -> None:
        """End it, whatever it is doing."""
        self._server.should_exit = self._server.force_exit = True
        self._thread.join(PATIENCE)
        self._socket.close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


async def _answer(send: Any, status: int, body: bytes, kind: str) -> None:
    headers = [(b"content-type", kind.encode()), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def until(what: Callable[[], bool]) -> None:
    """Wait for what another thread or process does."""
    async with asyncio.timeout(PATIENCE):
        while not what():  # noqa: ASYNC110 - another process does it
            await asyncio.sleep(0.002)

"""A server on this machine that hands files out as Hugging Face does: by a redirection with their hash."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.models.files import sha256


@dataclass
class Hub:
    """What it serves by path, and what was asked of it."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    cut: int | None = None
    """How many bytes it sends before it hangs up."""
    tagged: bool = True
    go: threading.Event = field(default_factory=threading.Event)
    """Whether it sends files; it does, from its start."""
    asked: list[tuple[str, str | None]] = field(default_factory=list[tuple[str, str | None]])


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def do_GET(self) -> None:
        hub = self.hub
        hub.asked.append((self.path, self.headers.get("Authorization")))
        if self.path == "/secret/repo/resolve/main/a.gguf":
            self.send_response(401)
            self.end_headers()
        elif self.path == "/busy/repo/resolve/main/a.gguf":
            self.send_error(503)
        elif self.path.startswith("/store"):
            self._send(hub.files[self.path.removeprefix("/store")])
        elif self.path in hub.files:
            data = hub.files[self.path]
            self.send_response(302)
            self.send_header("Location", f"/store{self.path}")
            if hub.tagged:
                self.send_header("X-Linked-Etag", f'"{sha256(data)}"')
                self.send_header("X-Linked-Size", str(len(data)))
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self.send_error(404)

    def _send(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.hub.go.wait()
        self.wfile.write(data if self.hub.cut is None else data[: self.hub.cut])

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name there
        """Says nothing."""


@contextmanager
def serving() -> Generator[Hub]:
    """A running hub."""
    hub = Hub()
    hub.go.set()
    handler = type("Handler", (_Handler,), {"hub": hub})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        hub.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield hub
        finally:
            hub.go.set()
            server.shutdown()
            thread.join()

"""A server with many accounts: what is done in one of them touches no other.

So a test runs many cases side by side on one server, each with all the streams and workers of its own.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from flyball.runtime.nats import EmbeddedServer, NatsOptions
from flyball.runtime.nats.server.settings import ServerSettings
from tests.patience import PATIENCE

_SECRET = "open"


class _Settings(ServerSettings, frozen=True):
    accounts: int = 1

    def text(self) -> str:
        # Here processes and lines end, not the power: a server that syncs always only takes longer.
        kept = [
            line
            for line in super().text().splitlines()
            if not line.startswith("authorization") and "sync_interval" not in line
        ]
        several = [
            f'  A{n} {{ jetstream: enabled, users: [ {{ user: "u{n}", password: "{_SECRET}" }} ] }}'
            for n in range(self.accounts)
        ]
        return "\n".join([*kept, "accounts {", *several, "}", ""])


class _Server(EmbeddedServer):
    def __init__(self, folder: Path, accounts: int) -> None:
        super().__init__(folder)
        self._settings = _Settings(folder.resolve(), "", accounts=accounts)


@asynccontextmanager
async def accounts(folder: Path, count: int) -> AsyncGenerator[list[NatsOptions]]:
    """A server inside the block; how to come into each of its accounts."""
    async with _Server(folder, count) as server:
        yield [
            NatsOptions((server.url,), user=f"u{n}", password=_SECRET, patience=PATIENCE)
            for n in range(count)
        ]

"""The same server over a journal in memory: what is left of its time when nothing is written to a disk."""

from __future__ import annotations

import asyncio
import sys

import uvloop

from bench.api import agents
from flyball.adapters.http.entry import serve_http
from flyball.orchestrate.local import LocalRuntime
from flyball.orchestrate.service import Service


class InMemory:
    """One service, for whoever asks."""

    def __init__(self) -> None:
        self._service = Service([agents.quick, agents.teller, agents.opener], LocalRuntime())

    async def __call__(self, tenant: str = "") -> Service:
        return self._service

    async def drain(self, seconds: float) -> None:
        await self._service.drain(seconds)


async def main() -> None:
    def begun(url: str) -> None:
        print(f"serving at {url}", file=sys.stderr, flush=True)

    await serve_http(InMemory(), port=0, log=False, begun=begun)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())

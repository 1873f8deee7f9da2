"""A runtime on a real NATS server keeps the promises of `Runtime`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from flyball import Agent, Runtime
from flyball.runtime.nats import Crew, NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.subjects import DEAD
from flyball.runtime.nats.wire import AGENT, CLAIMS
from flyball.testing.conformance import RuntimeConformance
from tests.runtime.nats.conftest import clear


class TestNatsRuntime(RuntimeConformance):
    options: NatsOptions

    @pytest.fixture(autouse=True)
    def use_server(self, nats: NatsOptions) -> None:
        self.options = nats

    @asynccontextmanager
    async def serving(self, *agents: Agent[Any, Any]) -> AsyncGenerator[Runtime]:
        async with await NatsJournal.open(self.options) as journal:
            await clear(journal)
        opened = await NatsRuntime.open(self.options)
        async with opened as runtime, await NatsJournal.open(self.options) as journal:
            try:
                async with Crew(journal, agents):
                    yield runtime
            finally:
                for stream in (AGENT, DEAD, f"KV_{CLAIMS}"):
                    await journal.connection.js.delete_stream(stream)
                await clear(journal)

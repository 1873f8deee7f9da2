"""A real nats-server, one for each of pytest's processes; every journal begins on an empty one."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from flyball.runtime.nats import EmbeddedServer, Layout, NatsJournal, NatsOptions
from flyball.runtime.nats.naming import journal_stream
from flyball.runtime.nats.subjects import DEAD, GOVERNANCE
from flyball.runtime.nats.wire import BLOBS, WIRE_BLOBS
from flyball.runtime.nats.workers.projector import LARGE, LOOPS, TRAJECTORIES
from tests.patience import PATIENCE


@contextmanager
def in_thread(server: EmbeddedServer) -> Generator[EmbeddedServer]:
    """A server in a thread of its own, for tests whose event loops come and go."""
    ready, stop = threading.Event(), list[asyncio.Event]()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        stop.append(asyncio.Event())
        async with server:
            ready.set()
            await stop[0].wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE), "the server did not come up"
    yield server
    loop.call_soon_threadsafe(stop[0].set)
    thread.join(PATIENCE)
    loop.close()


@pytest.fixture(scope="session")
def nats(tmp_path_factory: pytest.TempPathFactory) -> Generator[NatsOptions]:
    with in_thread(EmbeddedServer(tmp_path_factory.mktemp("nats"))) as server:
        yield server.options


@asynccontextmanager
async def emptied(options: NatsOptions, layout: Layout | None = None) -> AsyncGenerator[NatsJournal]:
    """A journal on a server that has nothing of an earlier one."""
    async with await NatsJournal.open(options) as before:
        await clear(before)
    async with await NatsJournal.open(options, layout) as journal:
        yield journal
        await clear(journal)


async def clear(journal: NatsJournal) -> None:
    """Take away all that flyball made on a journal's server."""
    js = journal.connection.js
    names = {info.config.name for info in await js.streams_info()}
    # Also what is written down of loops for others: the next test has loops of the same ids.
    stores = (f"OBJ_{BLOBS}", f"OBJ_{WIRE_BLOBS}", f"OBJ_{LARGE}", f"KV_{LOOPS}", f"KV_{TRAJECTORIES}")
    for name in [*map(journal_stream, range(journal.partitions)), *stores, GOVERNANCE]:
        if name in names:
            await js.delete_stream(name)
    if DEAD in names:
        await js.purge_stream(DEAD)


async def kill(server: EmbeddedServer) -> None:
    """End a server's process, whichever it is by now; returns when that was noticed, and another is started.

    It is known which one it is a moment after it listens: somebody may have been served by then.
    """
    restarts = server.restarts
    async with asyncio.timeout(PATIENCE):
        while (pid := _pid(server)) is None:  # noqa: ASYNC110 - the server writes it down
            await asyncio.sleep(0.01)
        os.kill(pid, signal.SIGKILL)
        while server.restarts == restarts:  # noqa: ASYNC110 - nobody tells us
            await asyncio.sleep(0.001)


def _pid(server: EmbeddedServer) -> int | None:
    try:
        return server.pid
    except IndexError:
        return None


@pytest.fixture
async def journal(nats: NatsOptions) -> AsyncGenerator[NatsJournal]:
    async with emptied(nats) as journal:
        yield journal


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "server"

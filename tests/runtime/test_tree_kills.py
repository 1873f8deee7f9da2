"""`kill -9` in the middle of a tool call of the lowest of three agents: the tree goes on where it stood."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from flyball import SQLiteJournal
from flyball.core.events import ToolReturned
from flyball.core.messages import ResultKind
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.result import RunResult
from flyball.runtime.nats import EmbeddedServer, NatsRuntime
from tests.patience import PATIENCE
from tests.runtime.tree_child import LOOP, make_tree


@contextmanager
def process(log: Path, kind: str, where: str) -> Generator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "tests.runtime.tree_child", str(log), kind, where]
    started = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def done(log: Path) -> Counter[str]:
    return Counter(log.read_text().splitlines())


async def walked(log: Path, times: int) -> None:
    """Wait until the lowest agent is in its tool call, for the so-manieth time."""
    async with asyncio.timeout(PATIENCE):
        while done(log)["walk at 2"] < times:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.005)


async def check(result: RunResult[str], journal: Journal, log: Path) -> None:
    """It came to its end as if nothing had been, and nothing was done twice that may not be."""
    assert result.output == "all done"
    assert (result.usage.requests, result.usage.input_tokens, result.usage.output_tokens) == (12, 36, 12)
    assert result.cost is not None
    assert result.cost.total == Decimal(60)
    assert done(log) == {
        "pay at 0": 2,
        "pay at 1": 2,
        "pay at 2": 2,
        "walk at 2": 3,  # in each of the lives of the process; it may be repeated
    }
    loops = await journal.loops()
    assert len(loops) == 3
    for loop_id in loops:
        returned = [event for event in await journal.read(loop_id) if isinstance(event, ToolReturned)]
        assert [event.result.status for event in returned] == [ResultKind.RETURN] * 3


@pytest.mark.slow
async def test_on_sqlite(tmp_path: Path) -> None:
    log, hold, file = tmp_path / "done", tmp_path / "hold", str(tmp_path / "runs.db")
    log.touch()
    hold.touch()
    for times in (1, 2):
        with process(log, "sqlite", file):
            await walked(log, times)
    hold.unlink()
    async with SQLiteJournal(file) as journal:
        result = await make_tree(log).resume(LOOP, journal)
        await check(result, journal, log)


@pytest.mark.slow
async def test_on_nats(tmp_path: Path) -> None:
    log, hold = tmp_path / "done", tmp_path / "hold"
    log.touch()
    hold.touch()
    async with (
        EmbeddedServer(tmp_path / "server") as server,
        await NatsRuntime.open(server.options) as runtime,
    ):
        where, agent = msgspec.json.encode(server.options).decode(), make_tree(log)
        running = asyncio.create_task(agent.run("go", runtime=runtime, loop_id=LOOP))
        for times in (1, 2):
            with process(log, "nats", where):
                await walked(log, times)
        hold.unlink()
        with process(log, "nats", where):
            result = await asyncio.wait_for(running, PATIENCE)
        await check(result, runtime.journal, log)

"""Workers and the server are killed with `kill -9` in the middle of loops: nothing is lost or doubled."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from flyball.core.events import ToolReturned
from flyball.core.messages import ResultKind
from flyball.orchestrate.projections import normal_form
from flyball.runtime.nats import EmbeddedServer, NatsOptions, NatsRuntime
from flyball.runtime.nats.crew import ALL
from tests.runtime.nats.worker_child import make_agent

LOOPS = 6


class Worker:
    """One kind of worker, in a process that can be killed and started again."""

    def __init__(self, options: NatsOptions, log: Path, kind: str) -> None:
        self._command = [
            sys.executable,
            "-m",
            "tests.runtime.nats.worker_child",
            msgspec.json.encode(options).decode(),
            str(log),
            kind,
        ]
        self.process = self._started()

    def _started(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self._command, stdout=subprocess.DEVNULL)

    def kill(self) -> None:
        """End it at once, and start another one."""
        self.process.kill()
        self.process.wait()
        self.process = self._started()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


@contextmanager
def workers(options: NatsOptions, log: Path) -> Generator[dict[str, Worker]]:
    made = {kind: Worker(options, log, kind) for kind in ALL}
    try:
        yield made
    finally:
        for worker in made.values():
            worker.stop()


@pytest.mark.slow
@pytest.mark.parametrize("victim", [*ALL, "server"])
async def test_every_history_comes_out_the_same(victim: str, tmp_path: Path) -> None:
    agent, log = make_agent(), tmp_path / "done"
    log.touch()
    here = normal_form(await (await agent.run("walk")).events())
    async with (
        EmbeddedServer(tmp_path / "server") as server,
        await NatsRuntime.open(server.options) as runtime,
    ):
        with workers(server.options, log) as made:
            runs = [
                asyncio.create_task(agent.run("walk", runtime=runtime, loop_id=f"loop-{n}"))
                for n in range(LOOPS)
            ]
            for done in (2, 8, 14):
                # In the middle of things: when so many tools have run.
                async with asyncio.timeout(60):
                    while len(log.read_text().splitlines()) < done:  # noqa: ASYNC110 - other processes write it
                        await asyncio.sleep(0.005)
                if victim == "server":
                    os.kill(server.pid, signal.SIGKILL)
                else:
                    made[victim].kill()
            await asyncio.wait_for(asyncio.gather(*runs), 60)
            histories = [await runtime.journal.read(f"loop-{n}") for n in range(LOOPS)]
    launched = [line for line in log.read_text().splitlines() if line.startswith("launch")]
    assert len(launched) <= LOOPS, "what may start once only was started twice"
    for events in histories:
        returned = [event for event in events if isinstance(event, ToolReturned)]
        assert [event.result.call_id for event in returned] == [f"call_{n}" for n in range(5)]
        if all(event.result.status is ResultKind.RETURN for event in returned):
            assert normal_form(events) == here
        else:
            # Killed while it ran: it may or may not have had its effect, and the model is told so.
            assert returned[2].result.status is ResultKind.INTERRUPTED

"""Workers and the server are killed with `kill -9` in the middle of loops: nothing is lost or doubled.

Once wherever they are just then, and once in each place of their work, where they are known to be.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from flyball.core.errors import WorkPutAside
from flyball.core.events import Event, ToolReturned
from flyball.core.messages import ResultKind
from flyball.orchestrate.projections import normal_form
from flyball.runtime.nats import EmbeddedServer, NatsOptions, NatsRuntime
from flyball.runtime.nats.crew import ALL
from flyball.runtime.nats.dead import dead_letters, requeue
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import kill
from tests.runtime.nats.worker_child import make_agent, make_bomber

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
        self.stop()
        self.start()

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()

    def start(self) -> None:
        self.process = self._started()

    def restart_if_dead(self) -> None:
        if self.process.poll() is not None:
            self.start()


@contextmanager
def workers(options: NatsOptions, log: Path) -> Generator[dict[str, Worker]]:
    made = {kind: Worker(options, log, kind) for kind in ALL}
    try:
        yield made
    finally:
        for worker in made.values():
            worker.stop()


async def tools_ran(log: Path, times: int) -> None:
    """Wait until tools have run so often."""
    await noted(log, times, "step", "launch")


async def noted(log: Path, times: int, *what: str) -> None:
    """Wait until workers have noted so many lines that begin in one of these ways."""
    async with asyncio.timeout(PATIENCE):
        while len(lines(log, *what)) < times:  # noqa: ASYNC110 - other processes write it
            await asyncio.sleep(0.005)


def lines(log: Path, *what: str) -> list[str]:
    return [line for line in log.read_text().splitlines() if line.startswith(what)]


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
                await tools_ran(log, done)
                if victim == "server":
                    await kill(server)
                else:
                    made[victim].kill()
            await asyncio.wait_for(asyncio.gather(*runs), PATIENCE)
            histories = [await runtime.journal.read(f"loop-{n}") for n in range(LOOPS)]
    assert len(lines(log, "launch")) <= LOOPS, "what may start once only was started twice"
    for events in histories:
        check(events, here, may_be_interrupted=True)


def check(events: list[Event], here: list[Event], *, may_be_interrupted: bool) -> None:
    """See to it that a history is what it would have been."""
    returned = [event for event in events if isinstance(event, ToolReturned)]
    assert [event.result.call_id for event in returned] == [f"call_{n}" for n in range(5)]
    if may_be_interrupted and returned[2].result.status is ResultKind.INTERRUPTED:
        # Killed while it ran: it may or may not have had its effect, and the model is told so.
        assert {event.result.status for event in returned} == {ResultKind.RETURN, ResultKind.INTERRUPTED}
    else:
        assert normal_form(events) == here


PLACES = {"loop": "loop", "model": "model", "step": "tools", "launch": "tools"}
"""Where work is done, and by whom."""
TIMES = {"loop": 1, "model": 6, "step": 4, "launch": 1}
"""How often it is done there for one loop."""


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["worker", "server"])
async def test_killed_in_the_middle_of_its_work(victim: str, tmp_path: Path) -> None:
    agent, log = make_agent(), tmp_path / "done"
    here = normal_form(await (await agent.run("walk")).events())
    async with (
        EmbeddedServer(tmp_path / "server") as server,
        await NatsRuntime.open(server.options) as runtime,
    ):
        with workers(server.options, log) as made:
            for place, kind in PLACES.items():
                hold = tmp_path / f"hold-{place}"
                hold.touch()
                log.write_text("")
                running = asyncio.create_task(agent.run("walk", runtime=runtime, loop_id=place))
                await noted(log, 1, f"in {place}")
                if victim == "server":
                    await kill(server)
                    hold.unlink()
                else:
                    made[kind].stop()
                    hold.unlink()
                    made[kind].start()
                await asyncio.wait_for(running, PATIENCE)
                events = await runtime.journal.read(place)
                once = victim == "worker" and place == "launch"
                check(events, here, may_be_interrupted=once)
                assert len(lines(log, "launch")) == 1
                done = len(lines(log, f"in {place}"))
                if victim == "worker":
                    # It was in the middle: who came after it did it again, where that is allowed.
                    assert done == TIMES[place] + (not once)
                    errors = [one for one in events if isinstance(one, ToolReturned) and one.result.is_error]
                    assert len(errors) == once
                else:
                    assert done <= TIMES[place] + 1


@pytest.mark.slow
async def test_what_ends_every_worker_is_put_aside_and_others_go_on(tmp_path: Path) -> None:
    bomber, walker, log, hold = make_bomber(), make_agent(), tmp_path / "done", tmp_path / "hold-boom"
    log.touch()
    hold.touch()
    async with (
        EmbeddedServer(tmp_path / "server") as server,
        await NatsRuntime.open(server.options) as runtime,
    ):
        with workers(server.options, log) as made:
            doomed = asyncio.create_task(bomber.run("go", runtime=runtime, loop_id="bomb"))
            walks = [asyncio.create_task(walker.run("walk", runtime=runtime)) for _ in range(3)]
            async with asyncio.timeout(PATIENCE):
                while not (aside := await dead_letters(runtime.bus)):
                    made["tools"].restart_if_dead()
                    await asyncio.sleep(0.02)
            ((number, dead),) = aside
            assert dead.subject == "tool.execute.boom"
            assert "none of them lived to answer" in dead.reason
            assert len(lines(log, "boom")) == 7
            assert {walk.output for walk in await asyncio.wait_for(asyncio.gather(*walks), PATIENCE)} == {
                "all done"
            }
            hold.unlink()
            await requeue(runtime.bus, number, dead)
            assert not await dead_letters(runtime.bus)
            again = await asyncio.wait_for(bomber.run("go", runtime=runtime, loop_id="bomb"), PATIENCE)
            assert again.output == "survived"
            # Who asked first has been told that it was put aside, or waited.
            (first,) = await asyncio.wait_for(asyncio.gather(doomed, return_exceptions=True), PATIENCE)
            assert isinstance(first, WorkPutAside) or getattr(first, "output", first) == "survived"
            returned = [event for event in await again.events() if isinstance(event, ToolReturned)]
            assert [event.result.content for event in returned] == ["a pop"]

"""Plans, votes and modes on real workers over a real server: what is killed, somebody else goes on with."""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from flyball import PlanResult, RedundantLoop, System, SystemRequest, user
from flyball.core.events import StepEnded
from flyball.orchestrate.contracts import Mode, OutputContract
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.projections import normal_form
from flyball.runtime.nats import NatsJournal, NatsOptions, NatsRuntime
from flyball.runtime.nats.dead import dead_letters
from flyball.runtime.nats.subjects import DEAD
from flyball.runtime.nats.wire import AGENT, CLAIMS
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import clear
from tests.runtime.nats.plan_child import LOOP, NAMES, PLAN, SCHEMA, door_agent, make_executor, vote_config


@pytest.fixture
async def runtime(nats: NatsOptions) -> AsyncGenerator[NatsRuntime]:
    options = msgspec.structs.replace(nats, patience=PATIENCE)
    async with await NatsJournal.open(options) as before:
        await clear(before)
    async with await NatsRuntime.open(options) as runtime:
        yield runtime
        for stream in (AGENT, DEAD, f"KV_{CLAIMS}"):
            await runtime.connection.js.delete_stream(stream)
        await clear(runtime.journal)


class Place:
    """The processes of one test, what they note, and where they are held."""

    def __init__(self, options: NatsOptions, log: Path) -> None:
        log.touch()
        self.log = log
        self._options = msgspec.json.encode(options).decode()
        self._processes: list[asyncio.subprocess.Process] = []

    async def start(self, what: str) -> asyncio.subprocess.Process:
        """Start a worker, or an executor."""
        command = [sys.executable, "-m", "tests.runtime.nats.plan_child", self._options, str(self.log), what]
        process = await asyncio.create_subprocess_exec(*command)
        self._processes.append(process)
        return process

    async def stop(self) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.kill()
            await process.wait()

    def hold(self, place: str) -> None:
        self.log.with_name(f"hold-{place}").touch()

    def let_go(self, place: str) -> None:
        self.log.with_name(f"hold-{place}").unlink()

    def noted(self, what: str) -> list[str]:
        """The processes in which something was done."""
        lines = [line.split() for line in self.log.read_text().splitlines()]
        return [line[-1] for line in lines if line[0] == what]

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not is_so():  # noqa: ASYNC110 - other processes write it
                await asyncio.sleep(0.005)


@pytest.fixture
async def place(runtime: NatsRuntime, tmp_path: Path) -> AsyncGenerator[Place]:
    place = Place(runtime.connection.options, tmp_path / "log")
    yield place
    await place.stop()


@asynccontextmanager
async def running(plan: Any) -> AsyncGenerator[asyncio.Future[Any]]:
    """Something that runs beside the test, and not beyond it."""
    task = asyncio.ensure_future(plan)
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


async def here(tmp_path: Path) -> PlanResult:
    """The same plan in this process alone."""
    return await make_executor(tmp_path / "here").execute(PLAN, journal=MemoryJournal(), loop_id=LOOP)


async def check_plan(result: PlanResult, runtime: NatsRuntime, tmp_path: Path) -> None:
    alone = await here(tmp_path)
    assert (result.output, result.usage) == (alone.output, alone.usage)
    assert [(step.name, step.output) for step in result.steps] == [
        (step.name, step.output) for step in alone.steps
    ]
    assert normal_form(await result.flow.events()) == normal_form(await alone.flow.events())
    ended = [event.path for event in await runtime.journal.read(LOOP) if isinstance(event, StepEnded)]
    assert ended == ["0", "1", "2", "3"], "each step has ended once"
    assert await dead_letters(runtime.bus) == []


async def test_a_plan_comes_to_the_same_end_as_in_process(
    runtime: NatsRuntime, place: Place, tmp_path: Path
) -> None:
    await place.start("worker")
    executor = make_executor(place.log)
    plan = executor.execute(PLAN, runtime=runtime, loop_id=LOOP)
    await check_plan(await asyncio.wait_for(plan, PATIENCE), runtime, tmp_path)


async def test_a_plan_whose_worker_is_killed_after_the_second_step_goes_on_with_the_third_on_another(
    runtime: NatsRuntime, place: Place, tmp_path: Path
) -> None:
    place.hold("three")
    first = await place.start("worker")
    executor = make_executor(place.log)
    async with running(executor.execute(PLAN, runtime=runtime, loop_id=LOOP)) as plan:
        await place.until(lambda: bool(place.noted("three")))
        asked = [place.noted("one"), place.noted("two")]
        first.kill()
        assert await asyncio.wait_for(first.wait(), PATIENCE) == -signal.SIGKILL
        assert not plan.done()
        second = await place.start("worker")
        await place.until(lambda: str(second.pid) in place.noted("three"))
        place.let_go("three")
        await check_plan(await asyncio.wait_for(plan, PATIENCE), runtime, tmp_path)
    assert [place.noted("one"), place.noted("two")] == asked, "what had ended is not asked again"
    assert {*place.noted("one"), *place.noted("two")} == {str(first.pid)}


async def test_a_plan_whose_executor_is_killed_is_resumed_by_another_at_the_step_it_had_come_to(
    runtime: NatsRuntime, place: Place, tmp_path: Path
) -> None:
    await place.start("worker")
    place.hold("three")
    executing = await place.start("executor")
    await place.until(lambda: bool(place.noted("three")))
    asked = [place.noted(name) for name in NAMES]
    executing.kill()
    assert await asyncio.wait_for(executing.wait(), PATIENCE) == -signal.SIGKILL
    place.let_go("three")
    place.hold("mark")
    again = await place.start("executor")
    assert await asyncio.wait_for(again.wait(), PATIENCE) == -signal.SIGKILL, "as the last step has it"
    assert place.noted("mark") == [str(again.pid)]
    place.let_go("mark")
    resumed = make_executor(place.log).resume(LOOP, runtime=runtime)
    await check_plan(await asyncio.wait_for(resumed, PATIENCE), runtime, tmp_path)
    assert [place.noted(name) for name in NAMES] == asked, "whom a worker had asked is not asked again"


async def test_a_vote_whose_worker_is_killed_is_brought_to_its_end_by_another(
    runtime: NatsRuntime, place: Place
) -> None:
    place.hold("votes")
    first = await place.start("worker")
    loop = RedundantLoop(vote_config(place.log))
    async with running(loop.call("Which?", runtime=runtime, loop_id="vote")) as vote:
        await place.until(lambda: len(place.noted("votes")) == 3)
        first.kill()
        assert await asyncio.wait_for(first.wait(), PATIENCE) == -signal.SIGKILL
        place.let_go("votes")
        second = await place.start("worker")
        result = await asyncio.wait_for(vote, PATIENCE)
    assert (result.output, result.confidence, len(result.candidates)) == ({"a": "x"}, 1.0, 3)
    assert result.usage.requests == 3, "an answer that was lost with its worker is counted once, as it came"
    assert set(place.noted("votes")[3:]) == {str(second.pid)}
    assert await dead_letters(runtime.bus) == []
    asked = place.noted("votes")
    again = await asyncio.wait_for(loop.call("Which?", runtime=runtime, loop_id="vote"), PATIENCE)
    assert (again.output, place.noted("votes")) == ({"a": "x"}, asked), "a vote that is over is told again"


STEPS = {"steps": [{"name": "a", "type": "infer"}, {"name": "b", "type": "infer"}]}
HELD = OutputContract(SCHEMA)


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"mode": Mode.STRUCTURED, "output": HELD}, {"a": "x"}),
        ({"mode": Mode.REDUNDANT, "output": HELD}, {"a": "x"}),
        ({"mode": Mode.PLAN, "plan": STEPS}, {"a": "heard Hi", "b": "heard heard Hi"}),
        (
            {"mode": Mode.PLAN, "plan": STEPS, "output": HELD},
            {"a": "heard Hi", "b": {"a": "x"}, "output": {"a": "x"}},
        ),
    ],
    ids=["structured", "redundant", "plan", "plan held to a contract"],
)
async def test_the_modes_of_a_system_are_served_by_workers(
    runtime: NatsRuntime, place: Place, asked: dict[str, Any], expected: Any
) -> None:
    worker = await place.start("worker")
    system = System(door_agent(place.log), runtime=runtime)
    response = await asyncio.wait_for(system.handle(SystemRequest(messages=(user("Hi"),), **asked)), PATIENCE)
    assert (response.error, response.structured_output) == (None, expected)
    assert set(place.noted("door")) == {str(worker.pid)}

"""Every suite that runs an agent runs under every driver: in process over two journals, and split apart.

A run that goes through `run` is also looked at from outside: its journal folds to its state, its history is
valid, each call was answered once, and replaying the journal gives the same again.

Half of these worlds are left to `make properties`, which has no tracer to slow it down.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar
from zlib import crc32

import pytest

from flyball import Agent
from flyball.core.errors import FlyballError
from flyball.core.events import Ended, Event, Outcome, Started, ToolReturned
from flyball.core.history import check_history
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.machine import fold
from flyball.orchestrate.result import RunResult
from flyball.runtime.sqlite import SQLiteJournal
from flyball.testing.split import CALM, ROUGH, SplitDriver
from tests.orchestrate.where import KINDS, Where

Failure = TypeVar("Failure", bound=FlyballError)


class Runner:
    """Runs agents under one kind of driver."""

    def __init__(self, kind: str, disk: Journal, seed: int) -> None:
        self.kind = kind
        self.disk = disk
        self.seed = seed
        self.driver: SplitDriver | None = None

    @property
    def split(self) -> bool:
        """Whether loop, model and tools share nothing but bytes."""
        return self.kind not in ("memory", "sqlite")

    @property
    def calm(self) -> bool:
        """Whether nothing goes wrong on the way, so that nothing is done twice."""
        return self.kind != "rough"

    async def __call__(self, agent: Agent[Any, Any], prompt: Any = None, **options: Any) -> RunResult[Any]:
        """Run an agent to its end, and look at what it left."""
        try:
            result = await agent.run(prompt, **self._options(options))
        except FlyballError as error:
            if error.partial is not None:
                await look_at(agent, error.partial, error)
            raise
        await look_at(agent, result)
        return result

    async def failing(
        self, kind: type[Failure], agent: Agent[Any, Any], prompt: Any = None, **options: Any
    ) -> Failure:
        """Run an agent that fails, and give the error, which must be exactly of this kind."""
        with pytest.raises(kind) as caught:
            await self(agent, prompt, **options)
        assert type(caught.value) is kind
        assert isinstance(caught.value.partial, RunResult)
        return caught.value

    def _options(self, options: dict[str, Any]) -> dict[str, Any]:
        if self.kind == "sqlite":
            return {"journal": self.disk} | options
        if not self.split:
            return options
        deps = options.pop("deps", None)
        self.driver = SplitDriver(self.seed, CALM if self.calm else ROUGH, deps=deps)
        return options | {"runtime": self.driver}


async def look_at(agent: Agent[Any, Any], result: RunResult[Any], error: FlyballError | None = None) -> None:
    """Check what holds for every run that is over."""
    events = await result.events()
    assert fold(events) == result.state
    assert isinstance(events[0], Started)
    assert [type(event) for event in events].count(Ended) == 1
    assert isinstance(events[-1], Ended)
    check_history(result.messages)
    answered = Counter((event.turn, event.index) for event in events if isinstance(event, ToolReturned))
    assert set(answered.values()) <= {1}, "a result was recorded twice"
    if error is None:
        assert result.outcome is Outcome.SUCCESS
        again = await agent.replay(result.loop_id, result.journal)
        assert again.output == result.output
        assert again.messages == result.messages
    else:
        assert result.outcome is not Outcome.SUCCESS
        with pytest.raises(type(error)) as caught:
            await agent.replay(result.loop_id, result.journal)
        assert (caught.value.code, str(caught.value)) == (error.code, str(error))


def kinds_of(events: list[Event]) -> list[str]:
    """The names of the events."""
    return [type(event).__name__ for event in events]


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SQLiteJournal]:
    """One journal on disk for all tests: loops do not disturb each other."""
    journal = SQLiteJournal(tmp_path_factory.mktemp("journal") / "runs.db", synchronous="normal")
    yield journal
    asyncio.run(journal.close())


def worlds(*kinds: str) -> list[Any]:
    """Where the tests run. Under the tracer, in memory and in the rough world: the others repeat that."""
    again = ("sqlite", "calm")
    return [pytest.param(kind, marks=pytest.mark.slow if kind in again else ()) for kind in kinds]


@pytest.fixture(params=worlds(*KINDS))
def run(request: pytest.FixtureRequest, disk: SQLiteJournal) -> Runner:
    """Runs agents: once in process in memory, once on disk, and in a split world, calm and rough.

    How rough goes by the test's name, so that the suites together see many worlds, and each always the same.
    """
    return Runner(request.param, disk, crc32(request.node.nodeid.encode()))


@pytest.fixture(params=worlds(*KINDS))
def where(request: pytest.FixtureRequest, disk: SQLiteJournal) -> Where:
    """The same places, for runs that their caller takes part in: streams, steps, signals."""
    return Where.made(request.param, disk, crc32(request.node.nodeid.encode()))


@pytest.fixture(params=worlds("memory", "sqlite", "calm"))
def orderly(request: pytest.FixtureRequest, disk: SQLiteJournal) -> Where:
    """Those of them where nothing goes wrong, for what counts how often and when things are done."""
    return Where.made(request.param, disk, 0)


@pytest.fixture(params=worlds("memory", "sqlite"))
def journal(request: pytest.FixtureRequest, disk: SQLiteJournal) -> Journal:
    """A journal for what is about driving in this process: resuming, holding, taking over."""
    return MemoryJournal() if request.param == "memory" else disk

"""Dependencies of an agent's own: all its functions get them, unless a run has others."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import Agent, Deps, LocalRuntime, MemoryJournal, RunContext, tool
from flyball.core.errors import DepsError, UserError
from flyball.inference.answers import tool_call as call
from flyball.testing.split import SplitDriver
from tests.orchestrate.conftest import Runner
from tests.orchestrate.models import Script


@tool
async def who(ctx: RunContext[Any]) -> str:
    return str(ctx.deps)


def asking(*features: Any) -> Agent[Any, Any]:
    return Agent(Script(call("who"), "done"), tools=[who], features=features)


def told(result: Any) -> Any:
    return result.messages[2].tool_results[0].content


async def test_an_agents_own_are_there_in_every_run(run: Runner) -> None:
    assert told(await run(asking(Deps("own")), "go")) == "own"
    assert told(await run(asking(), "go")) == "None"


async def test_a_runs_own_come_first(run: Runner) -> None:
    assert told(await run(asking(Deps("own")), "go", deps="the run's")) == "the run's"


async def test_an_override_comes_before_both() -> None:
    agent = asking(Deps("own"))
    with agent.override(deps="other"):
        assert told(await agent.run("go")) == "other"
        assert told(await agent.run("go", deps="the run's")) == "other"
    with agent.override(features=[]):
        assert told(await agent.run("go")) == "None"


async def test_only_a_runs_own_would_have_to_travel() -> None:
    agent = asking(Deps("own"))
    assert told(await agent.run("go", runtime=SplitDriver())) == "own"
    assert told(await agent.run("go", runtime=SplitDriver(deps="the workers'"))) == "the workers'"
    with pytest.raises(DepsError, match="does not travel"):
        await agent.run("go", deps="the run's", runtime=SplitDriver())


async def test_who_goes_on_with_a_loop_has_its_own() -> None:
    journal = MemoryJournal()
    async with asking(Deps("first")).iter("go", journal=journal) as run:
        pass
    assert told(await asking(Deps("second")).resume(run.loop_id, journal)) == "second"
    assert told(await asking(Deps("third")).fork(run.loop_id, journal, turn=0)) == "third"
    async with LocalRuntime() as runtime:
        assert told(await asking(Deps("fourth")).run("go", runtime=runtime)) == "fourth"


async def test_nothing_of_them_is_recorded() -> None:
    secret = {"password": "open sesame"}
    result = await Agent(Script("hi"), features=[Deps(secret)]).run("go")
    assert "sesame" not in repr(await result.events())
    assert "sesame" not in repr(Deps(secret))


def test_there_is_one_of_them_at_most() -> None:
    with pytest.raises(UserError, match="one Deps at most"):
        _ = asking(Deps("one"), Deps("two")).spec
    with pytest.raises(UserError, match="Deps takes"):
        Deps(None)

"""What runs have used: every model call once, wherever it was made."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from msgspec.structs import replace

from flyball import Agent, MemoryJournal
from flyball.core.errors import EngineError, InvalidRequest
from flyball.core.events import Started
from flyball.core.messages import Message, assistant, user
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.observe.cost import CostTracker
from flyball.observe.pricing import ModelPricing
from flyball.orchestrate.accounts import usage_report
from flyball.orchestrate.catalogue import Catalogue, LoopQuery
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.projections import cost
from flyball.orchestrate.projections.summary import summary_of
from flyball.orchestrate.recorded import fork, load
from tests.orchestrate.catalogue.filled import fill

DAY = 86_400.0


def said(text: str, tokens: int) -> Message:
    return replace(assistant(text), usage=Usage(tokens, 1))


async def recorded(journal: Journal, agent: Agent[Any, Any], prompt: str, loop_id: str, day: int) -> None:
    """A run that began on a day."""
    apart = MemoryJournal()
    await agent.run(prompt, journal=apart, loop_id=loop_id)
    for name in reversed(await apart.loops()):
        first, *events = await apart.read(name)
        assert isinstance(first, Started)
        await journal.append(name, [replace(first, at=day * DAY), *events], 0)


def family() -> Agent[Any, Any]:
    below = Agent(ScriptedEngine(said("wet", 10), name="small"), name="weather")
    called = replace(assistant("", tool_call("weather", {"prompt": "Rome?"})), usage=Usage(100, 1))
    return Agent(
        ScriptedEngine(called, said("Take an umbrella.", 100), name="big"),
        tools=[below.as_tool(name="weather")],
        name="guide",
    )


async def test_by_agent_by_model_and_by_day() -> None:
    journal = MemoryJournal()
    await recorded(journal, family(), "Rome?", "rome", day=0)
    await recorded(
        journal, Agent(ScriptedEngine(said("yes", 7), name="small"), name="guide"), "go", "go", day=2
    )
    report = await usage_report(Catalogue(journal))
    assert (report.total.usage.input_tokens, report.total.usage.requests, report.total.loops) == (217, 4, 3)
    assert {name: one.usage.input_tokens for name, one in report.agents.items()} == {
        "guide": 207,
        "weather": 10,
    }
    assert {name: one.usage.input_tokens for name, one in report.models.items()} == {"big": 200, "small": 17}
    days = {name: one.usage.input_tokens for name, one in report.days.items()}
    assert days == {"1970-01-01": 210, "1970-01-03": 7}
    assert report.outcomes == {"complete": 2}, "of what somebody began"
    assert report.total.usage.input_tokens == sum(
        [(await summary_of(journal, name)).usage.input_tokens for name in ("rome", "go")]
    )


async def test_what_stands_under_a_loop_that_is_wanted_counts() -> None:
    journal = MemoryJournal()
    await recorded(journal, family(), "Rome?", "rome", day=0)
    await recorded(journal, Agent(ScriptedEngine(said("yes", 7))), "go", "go", day=0)
    for query in (LoopQuery(text="umbrella"), LoopQuery(text="umbrella", roots_only=True, limit=1)):
        report = await usage_report(Catalogue(journal), query)
        assert report.total.usage.input_tokens == 210
        assert report.outcomes == {"complete": 1}
    report = await usage_report(Catalogue(journal), LoopQuery(agent="weather"))
    assert (report.total.loops, report.outcomes) == (0, {}), "it stands under one that is not wanted"


async def test_a_fork_counts_what_it_used_since() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine(said("one", 5), said("two", 6)))
    await agent.run("hi", journal=journal, loop_id="first")
    _, state = await load(journal, "first")
    forked = await fork(journal, "first", 1, state.spec, prompt=user("and?"))
    await agent.resume(forked, journal=journal)
    assert (await summary_of(journal, forked)).usage.input_tokens == 11
    assert (await usage_report(Catalogue(journal))).total.usage.input_tokens == 11


async def test_an_editor_counts_though_its_architect_was_over() -> None:
    journal = MemoryJournal()
    editor = Agent(ScriptedEngine(said("done", 3)), name="editor")
    architect = Agent(ScriptedEngine(said("the plan", 4)), name="architect", editor=editor)
    await architect.run("build", journal=journal, loop_id="a")
    assert len(await journal.loops()) == 2
    report = await usage_report(Catalogue(journal))
    assert report.total.usage.input_tokens == 7
    assert report.outcomes == {"complete": 1}


async def test_what_could_not_be_priced_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    tracker = CostTracker({"priced": ModelPricing(1, 0)})
    monkeypatch.setattr(cost, "public_prices", lambda: tracker)
    journal = MemoryJournal()
    for name in ("priced", "unheard"):
        await Agent(ScriptedEngine(said("yes", 2), name=name)).run("go", journal=journal, loop_id=name)
    report = await usage_report(Catalogue(journal))
    assert (report.total.cost.total, report.total.unpriced) == (Decimal(2), 1)
    assert report.models["unheard"].unpriced == 1
    assert report.models["priced"].unpriced == 0


async def test_of_loops_of_every_kind() -> None:
    journal = MemoryJournal()
    await fill(journal)
    report = await usage_report(Catalogue(journal))
    assert sum(report.outcomes.values()) == 14
    assert report.outcomes[""] == 1
    assert report.total.usage.requests == sum(one.usage.requests for one in report.models.values())
    assert report.total.usage.requests == sum(one.usage.requests for one in report.agents.values())
    assert report.total.usage.requests == sum(one.usage.requests for one in report.days.values())
    assert report.total.unpriced == report.total.loops, "nobody knows what scripted answers cost"


async def test_a_failure_counts_as_a_call() -> None:
    journal = MemoryJournal()
    with pytest.raises(EngineError):
        await Agent(ScriptedEngine(EngineError("gone"))).run("go", journal=journal)
    report = await usage_report(Catalogue(journal))
    assert (report.total.usage.requests, report.outcomes) == (1, {"failed": 1})


async def test_of_nothing_and_of_what_cannot_be_asked() -> None:
    report = await usage_report(Catalogue(MemoryJournal()))
    assert (report.total.loops, report.outcomes) == (0, {})
    with pytest.raises(InvalidRequest):
        await usage_report(Catalogue(MemoryJournal()), LoopQuery(stage=("asleep",)))

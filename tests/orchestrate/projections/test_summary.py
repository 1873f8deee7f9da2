"""A loop in a few words, of whatever kind, however it stands; and one that cannot be read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject
from msgspec.structs import replace

from flyball import Agent, AgentStep, MemoryJournal, Pipeline, TransformStep
from flyball.core.correlation import Correlation
from flyball.core.errors import EngineError, JournalCorrupt, LoopNotFound
from flyball.core.events import (
    VERSION,
    ChildEnded,
    ChildStarted,
    Event,
    FlowStarted,
    Forked,
    ModelAnswered,
    Started,
)
from flyball.core.flow import FlowNode
from flyball.core.messages import assistant, user
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.machines import take
from flyball.orchestrate.projections.summary import LONGEST_ANSWER, Reading, summarized, summary_of
from flyball.orchestrate.provenance import Provenance, provenance_of
from flyball.orchestrate.recorded import fork, load
from flyball.orchestrate.signalling import signal_event
from tests.orchestrate.journals import journals


@given(journals(), st.data())
def test_reading_on_gives_what_reading_all_gives(events: list[Event], data: DataObject) -> None:
    length = data.draw(st.integers(1, len(events)))
    reading = Reading(events[:length], "loop")
    reading.go_on(events[length:])
    whole = Reading(events, "loop")
    assert reading.length == len(events)
    assert summarized(reading, "any") == summarized(whole, "any")


@given(journals())
def test_what_a_loop_used_itself_is_all_that_was_used_where_nothing_is_under_it(events: list[Event]) -> None:
    told = summarized(Reading(events, "loop"), "any")
    alone = not any(isinstance(event, ChildEnded | Forked) for event in events)
    carried = isinstance(events[0], Started) and events[0].carried is not None
    if alone and not carried:
        assert sum(one.usage.requests for one in told.own) == told.usage.requests
        assert sum(one.usage.total_tokens for one in told.own) == told.usage.total_tokens
    assert sum(one.usage.total_tokens for one in told.own) <= told.usage.total_tokens


async def test_an_agents_loop() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine("yes " * 1000, name="m"), name="greeter")
    ids = Correlation(request_id="r", session_id="s", trace_id="1" * 32)
    await agent.run("Hi?", journal=journal, loop_id="loop", correlation=ids)
    told = await summary_of(journal, "loop")
    events = await journal.read("loop")
    assert (told.kind, told.agent, told.model, told.stage) == ("agent", "greeter", "m", "complete")
    assert (told.started_at, told.updated_at) == (events[0].at, events[-1].at)
    assert (told.prompt, told.turns, told.error, told.waits) == ("Hi?", 1, "", ())
    assert len(told.answer) == LONGEST_ANSWER
    assert told.answer.endswith("…")
    assert (told.request_id, told.session_id, told.trace_id) == ("r", "s", "1" * 32)
    assert [one.model for one in told.own] == ["m"]
    assert told.usage.requests == told.own[0].usage.requests == 1


async def test_a_flow_and_the_loop_under_it() -> None:
    journal = MemoryJournal()
    flow = Pipeline(AgentStep(Agent(ScriptedEngine("yes"))), TransformStep(str.upper), name="shout")
    await flow.run("go", journal=journal, loop_id="f", metadata=Provenance("test:yes", "box/1").metadata())
    told, under = await summary_of(journal, "f"), await summary_of(journal, "f-s0")
    assert (told.kind, told.agent, told.model, told.turns) == ("flow", "shout", "test:yes", 2)
    assert (told.prompt, told.answer, told.stage) == ("go", "YES", "complete")
    assert told.own == ()
    assert told.cost is None
    assert (under.parent_loop_id, under.trace_id) == ("f", told.trace_id)
    assert told.usage.requests == under.usage.requests


async def test_a_failure_has_its_code_and_no_answer() -> None:
    journal = MemoryJournal()
    with pytest.raises(EngineError):
        await Agent(ScriptedEngine(EngineError("gone"))).run("hi", journal=journal, loop_id="loop")
    told = await summary_of(journal, "loop")
    assert (told.stage, told.error, told.answer) == ("failed", EngineError("").code, "")
    assert sum(one.usage.requests for one in told.own) == 1, "it was called, and said nothing"


async def test_a_fork_used_itself_what_it_used_since() -> None:
    journal = MemoryJournal()
    first = await Agent(ScriptedEngine("one", "two")).run("hi", journal=journal, loop_id="first")
    _, state = await load(journal, first.loop_id)
    forked = await fork(journal, "first", 1, state.spec, prompt=user("and?"))
    assert (await summary_of(journal, forked)).own == ()
    assert (await summary_of(journal, forked)).usage.requests == 1


async def test_what_children_used_is_theirs() -> None:
    journal = MemoryJournal()
    below = Agent(ScriptedEngine(replace(assistant("wet"), usage=Usage(10, 2)), name="small"), name="weather")
    above = Agent(
        ScriptedEngine(tool_call("weather", {"prompt": "Rome?"}), "Take an umbrella.", name="big"),
        tools=[below.as_tool(name="weather")],
    )
    result = await above.run("Rome?", journal=journal)
    loops = [await summary_of(journal, loop_id) for loop_id in await journal.loops()]
    child, parent = sorted(loops, key=lambda one: one.loop_id == result.loop_id)
    assert parent.usage.requests == 3
    assert [(one.model, one.usage.requests) for one in parent.own] == [("big", 2)]
    assert [(one.model, one.usage.input_tokens) for one in child.own] == [("small", 10)]


async def test_what_cannot_be_read_says_why_and_what_is_not_there_is_an_error() -> None:
    journal = MemoryJournal()
    await journal.append("bad", [ModelAnswered(1.0, 1, assistant("hi"))], 0)
    told = await summary_of(journal, "bad")
    assert (told.stage, told.error) == ("", JournalCorrupt("").code)
    assert "ModelAnswered" in told.prompt
    with pytest.raises(LoopNotFound):
        await summary_of(journal, "nobody")


async def test_a_child_that_cannot_be_read_does_not_hide_its_parent() -> None:
    journal = MemoryJournal()
    node = FlowNode("pipeline", "f", (FlowNode("agent", "a"),))
    await journal.append("f", [FlowStarted(1.0, VERSION, "f", node, 3), ChildStarted(2.0, "f-s0", "a")], 0)
    await journal.append("f-s0", [ModelAnswered(1.0, 1, assistant("hi"))], 0)
    assert (await summary_of(journal, "f")).stage == "executing"


@pytest.mark.parametrize("given", [{"mode": "chat", "messages": [{"role": 3}]}, None, 7, "go"], ids=str)
async def test_whatever_a_flow_was_given_it_has_a_summary(given: object) -> None:
    journal = MemoryJournal()
    node = FlowNode("pipeline", "f", (FlowNode("agent", "a"),))
    await journal.append("f", [FlowStarted(1.0, VERSION, "f", node, given)], 0)
    assert isinstance((await summary_of(journal, "f")).prompt, str)


async def test_provenance_is_what_was_noted_or_what_the_spec_has() -> None:
    journal = MemoryJournal()
    noted = Provenance("local:x", "box/1")
    agent = Agent("test:hi")
    await agent.run("hi", journal=journal, loop_id="one", metadata={**noted.metadata(), "tenant": "t"})
    await agent.run("hi", journal=journal, loop_id="two")
    events, state = await load(journal, "one")
    assert provenance_of(events, state) == noted
    forked = await fork(journal, "one", 0, state.spec)
    assert provenance_of(*await load(journal, forked)).model == "test:hi"
    assert provenance_of(*await load(journal, "two")) == Provenance("test:hi")


def test_a_reading_that_does_not_go_on_is_corrupt() -> None:
    started = Started(1.0, VERSION, "loop", LoopSpec(agent="a", model="test"), user("hi"))
    reading = Reading([started], "loop")
    with pytest.raises(JournalCorrupt, match="event 1, Started"):
        reading.go_on([started])


@given(journals())
def test_the_signals_of_a_loop_are_those_that_it_takes(events: list[Event]) -> None:
    told = summarized(Reading(events, "loop"), "any")
    for kind in SignalType:
        state = Reading(events, "loop").state
        assert take(state, signal_event(Signal(kind, text="so"), events[-1].at)) is (kind in told.signals)

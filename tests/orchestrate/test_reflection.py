"""Reflection: valid outputs that are sent back, inside the loop."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, MemoryJournal, ModelRetry, Reflection, ReflectResult, RunContext, reflect
from flyball.core.errors import IterationLimit, RuleFailed, UnexpectedModelBehavior, UserError
from flyball.core.events import Event, TurnSettled
from flyball.core.ids import new_id
from flyball.core.limits import Limits
from flyball.core.messages import ResultKind, Retry
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import Journal
from flyball.orchestrate.state import Reflections
from flyball.testing import ScriptedEngine
from flyball.validate.reflection import CORRECTION
from tests.orchestrate.conftest import Runner
from tests.orchestrate.models import NeverAsked, Script
from tests.orchestrate.run_scenarios import never_content, says_when
from tests.orchestrate.scenarios import City, add, final, wants_long


def northern(_: RunContext[Any], city: City) -> str | None:
    return None if city.name == "Oslo" else "further north"


def settled(events: list[Event]) -> list[TurnSettled]:
    return [event for event in events if isinstance(event, TurnSettled)]


async def test_an_output_is_sent_back_until_it_is_good(run: Runner) -> None:
    model = Script("no", "later", "far later")
    result = await run(Agent(model, features=[Reflection(says_when)]), "When?")
    came = ReflectResult[str].of(result)
    assert (came.output, came.iterations, came.accepted, came.objection) == ("far later", 3, True, "")
    assert came.usage.requests == 3
    told = result.messages[2].parts[0]
    assert told == Retry(CORRECTION.format(feedback="longer, please"))
    assert [event.reflected for event in settled(await result.events())] == ["longer, please"] * 2 + [""]
    assert result.state.retries == 0


async def test_after_so_many_the_last_one_is_taken(run: Runner) -> None:
    agent = Agent(Script("one", "two", "three"), features=[Reflection(never_content, max_reflections=2)])
    came = ReflectResult[str].of(await run(agent, "go"))
    assert (came.output, came.iterations, came.accepted) == ("three", 3, False)
    assert came.objection == "'three' is not it"
    none = Agent(Script("one"), features=[Reflection(never_content, 0)])
    assert ReflectResult[str].of(await run(none, "go")).iterations == 1


async def test_an_output_that_travels_in_a_call(run: Runner) -> None:
    agent = Agent(
        Script([final(name="Rome"), call("add", {"x": 1, "y": 1})], final(name="Oslo")),
        output=City,
        output_mode="tool",
        tools=[add],
        features=[Reflection(northern, prompt="{output}")],
    )
    result = await run(agent, "Where?")
    assert result.output == City(name="Oslo")
    answered = result.messages[2].tool_results
    assert answered[0].status is ResultKind.RETRY
    assert answered[0].text == '{"name":"Rome","people":0}\n\nfurther north'
    assert answered[1].content == 2  # the other calls of that turn are run: it did not bring the output


async def test_it_is_no_retry_and_retries_are_counted_beside_it(run: Runner) -> None:
    agent = Agent(
        Script("no", "three", "no", "far later"),
        validators=[wants_long],
        features=[Reflection(says_when)],
        retries=1,
    )
    assert (await run(agent, "go")).output == "far later"
    strict = Agent(
        Script("no", "three", "no", "no"), validators=[wants_long], features=[Reflection(says_when)]
    )
    await run.failing(UnexpectedModelBehavior, strict, "go")


async def test_a_reflection_that_raises_a_retry_has_it_counted(run: Runner) -> None:
    def wrong(_: RunContext[Any], output: str) -> None:
        raise ModelRetry("that is plainly wrong")

    agent = Agent(Script("a", "b"), features=[Reflection(wrong)])
    error = await run.failing(UnexpectedModelBehavior, agent, "go")
    assert "plainly wrong" in str(error)


async def test_limits_bind(run: Runner) -> None:
    agent = Agent(Script("a", "b"), features=[Reflection(never_content)], limits=Limits(max_iterations=2))
    error = await run.failing(IterationLimit, agent, "go")
    assert error.partial.usage.requests == 2


async def test_a_reflection_that_fails_or_gives_something_else(run: Runner) -> None:
    def fails(_: RunContext[Any], __: str) -> str:
        raise RuntimeError("out of order")

    def odd(_: RunContext[Any], __: str) -> Any:
        return True

    error = await run.failing(RuleFailed, Agent(Script("a"), features=[Reflection(fails)]), "go")
    assert "the reflection 'fails' failed: RuntimeError: out of order" in str(error)
    error = await run.failing(UserError, Agent(Script("a"), features=[Reflection(odd)]), "go")
    assert "gave True" in str(error)


async def test_replay_asks_nobody_and_a_fork_asks_anew(journal: Journal) -> None:
    asked: list[str] = []

    def check(_: RunContext[Any], output: str) -> str:
        asked.append(output)
        return "no" if output == "one" else ""

    loop_id = new_id()
    agent = Agent(ScriptedEngine("one", "two", "three"), features=[Reflection(check)])
    await agent.run("go", journal=journal, loop_id=loop_id)
    assert asked == ["one", "two"]
    again = await agent.clone(model=NeverAsked()).replay(loop_id, journal)
    assert ReflectResult[Any].of(again).iterations == 2
    assert asked == ["one", "two"]
    forked = await agent.fork(loop_id, journal, turn=1)
    assert (forked.output, ReflectResult[Any].of(forked).iterations) == ("three", 2)
    assert asked == ["one", "two", "three"]
    more = agent.clone(model=ScriptedEngine("one", "four"))
    asked_anew = await more.fork(loop_id, journal, turn=2, prompt="and then?")  # another question: from 0
    assert (asked_anew.output, asked_anew.state.reflections) == ("four", Reflections(1))
    unfinished = new_id()
    await journal.append(unfinished, (await journal.read(loop_id))[:2], 0)
    with pytest.raises(UserError, match="'check'"):
        await agent.clone(features=[]).resume(unfinished, journal)


async def test_a_run_that_dies_while_it_reflects_goes_on(journal: Journal) -> None:
    reached, gate = asyncio.Event(), asyncio.Event()

    async def check(_: RunContext[Any], output: str) -> str | None:
        if output == "two" and not gate.is_set():
            reached.set()
            await gate.wait()
        return None if output == "two" else "not that"

    agent = Agent(ScriptedEngine("one", "two"), features=[Reflection(check)])
    loop_id = new_id()
    task = asyncio.create_task(agent.run("go", journal=journal, loop_id=loop_id))
    await reached.wait()
    task.cancel()
    await asyncio.wait([task])
    gate.set()
    came = ReflectResult[str].of(await agent.resume(loop_id, journal))
    assert (came.output, came.iterations, came.accepted) == ("two", 2, True)


async def test_reflect_is_a_run_with_one_feature_more() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine("no"), features=())
    with agent.override(model=ScriptedEngine("one", "much longer")):
        came = await reflect(agent, "go", says_when, journal=journal, loop_id="r")
    assert (came.output, came.iterations, came.accepted) == ("much longer", 2, True)
    assert came.result.loop_id == "r"
    assert came.result.state.spec.checks == ("says_when",)
    assert agent.config.features == ()
    with pytest.raises(UserError, match="one reflection at most, not never_content, says_when"):
        await reflect(agent.clone(features=[Reflection(never_content)]), "go", says_when)


async def test_a_streamed_run_shows_every_answer() -> None:
    agent = Agent(ScriptedEngine("one", "longer one"), features=[Reflection(says_when)])
    async with agent.run_stream("go") as stream:
        assert [piece async for piece in stream.text()] == ["one", "longer one"]
    assert stream.result.output == "longer one"


async def test_what_a_reflection_changes_in_place_is_what_is_recorded() -> None:
    def check(_: RunContext[Any], city: City) -> None:
        city.people = 7

    agent = Agent(
        ScriptedEngine(final(name="Rome")), output=City, output_mode="tool", features=[Reflection(check)]
    )
    result = await agent.run("go")
    assert result.output == City(name="Rome", people=7)
    assert (await agent.replay(result.loop_id, result.journal)).output == result.output


@given(st.text(), st.text())
def test_what_is_filled_in_is_only_text(output: str, feedback: str) -> None:
    made = Reflection(says_when, prompt="[{output}|{feedback}|{other}]").correction(output, feedback)
    assert made == f"[{output}|{feedback}|{{other}}]"


def test_texts_that_look_like_places_are_not_filled_in_again() -> None:
    reflection = Reflection(says_when, prompt="{output}: {feedback}")
    assert reflection.correction("{feedback}", "{output}") == "{feedback}: {output}"
    assert Reflection(says_when, prompt="Again.").correction("x", "why") == "Again.\n\nwhy"


@pytest.mark.parametrize("wrong", [{"max_reflections": -1}, {"max_reflections": True}, {"prompt": ""}])
def test_wrong_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        Reflection(says_when, **wrong)
    with pytest.raises(UserError, match="takes a function"):
        Reflection("no")  # pyright: ignore[reportArgumentType]

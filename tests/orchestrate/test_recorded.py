"""Recorded loops: resumed after a crash at any point, taken over, replayed, forked, tried again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, Limits, RunContext, ToolChoice, tool
from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    ConstraintFailure,
    EngineError,
    FlyballError,
    IterationLimit,
    JournalCorrupt,
    LoopMismatch,
    LoopNotFound,
    LoopTakenOver,
    SignalRefused,
    UserError,
)
from flyball.core.events import (
    VERSION,
    Event,
    Forked,
    Resumed,
    Started,
    ToolReturned,
)
from flyball.core.history import check_history
from flyball.core.ids import new_id
from flyball.core.messages import ResultKind, Retry, assistant, system, user
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.recorded import send_signal
from flyball.orchestrate.result import RunResult
from flyball.testing.bytes_journal import BytesJournal
from flyball.testing.split import ROUGH, SplitDriver
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.driven import Driven, hanging_in
from tests.orchestrate.models import NeverAsked, Script
from tests.orchestrate.scenarios import (
    SCENARIOS,
    TEN,
    WELL,
    City,
    Scenario,
    add,
    dynamic,
    final,
    launch,
    step,
)
from tests.orchestrate.where import Where

RETRY = Signal(SignalType.RETRY)


async def finished(scenario: Scenario) -> tuple[list[Event], RunResult[Any]]:
    """The journal of a scenario's run, and its result (or what it had reached)."""
    result, _ = await ending(scenario.make().run(scenario.prompt, **scenario.options))
    return await result.events(), result


async def ending(run: Awaitable[RunResult[Any]]) -> tuple[RunResult[Any], str]:
    """How a run ends: its result and no code, or what it had reached and the code of its error."""
    try:
        return await run, ""
    except FlyballError as error:
        return error.partial, error.code


async def cut(events: list[Event], length: int, journal: Journal | None = None) -> tuple[str, Journal]:
    """A journal as a crash leaves it: the loop's first events, and nothing more."""
    journal = journal or BytesJournal()
    loop_id = events[0].loop_id if isinstance(events[0], Started) else ""
    await journal.append(loop_id, events[:length], 0)
    return loop_id, journal


# The same loop again


async def test_a_loop_that_is_over_gives_its_result_again_and_calls_nothing(run: Runner) -> None:
    script = Script(call("add", {"x": 1, "y": 1}), "2")
    agent = Agent(script, tools=[add])
    journal = MemoryJournal()
    first = await run(agent, "go", loop_id="one", journal=journal)
    calls, length = script.calls, len(await journal.read("one"))
    again = await run(agent, "go", loop_id="one", journal=journal)
    assert (again.output, again.messages, again.usage) == (first.output, first.messages, first.usage)
    assert script.calls == calls
    assert len(await journal.read("one")) == length


async def test_a_loop_that_failed_fails_again_and_calls_nothing(run: Runner) -> None:
    script = Script(EngineError("down"))
    journal = MemoryJournal()
    for _ in range(2):
        error = await run.failing(EngineError, Agent(script), "go", loop_id="one", journal=journal)
        assert str(error) == "down"
    if run.calm:
        assert script.calls == 1


DIFFERENT: dict[str, tuple[dict[str, Any], list[str]]] = {
    "prompt": ({"prompt": "stop"}, ["prompt"]),
    "history": ({"messages": [user("a"), assistant("b")]}, ["history"]),
    "metadata": ({"metadata": {"a": 2}}, ["metadata"]),
    "settings": ({"limits": Limits(max_iterations=3)}, ["spec"]),
    "tools": ({"tools": []}, ["spec"]),
    "several": ({"prompt": "stop", "tools": []}, ["prompt", "spec"]),
}


@pytest.mark.parametrize(("changes", "differs"), DIFFERENT.values(), ids=DIFFERENT)
async def test_a_loop_id_belongs_to_one_loop(
    run: Runner, changes: dict[str, Any], differs: list[str]
) -> None:
    journal = MemoryJournal()
    agent = Agent(Script("ok"), tools=[add])
    options: dict[str, Any] = {"loop_id": "one", "journal": journal, "metadata": {"a": 1}}
    await run(agent, "go", **options)
    prompt = changes.get("prompt", "go")
    with pytest.raises(LoopMismatch, match=" and ".join(differs)) as caught:
        await run(
            agent, prompt, **options | {key: value for key, value in changes.items() if key != "prompt"}
        )
    assert caught.value.details == {"loop_id": "one", "differs": differs}
    assert len(await journal.read("one")) == 3


async def test_another_agent_is_another_spec(run: Runner) -> None:
    journal = MemoryJournal()
    await run(Agent(Script("ok"), instructions="One."), "go", loop_id="one", journal=journal)
    with pytest.raises(LoopMismatch, match="spec"):
        await run(Agent(Script("ok"), instructions="Two."), "go", loop_id="one", journal=journal)


# Resuming after a crash


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_wherever_a_run_is_cut_off_resume_brings_it_to_the_same_end(scenario: Scenario) -> None:
    events, original = await finished(scenario)
    wanted = (normal_form(events), original.messages, original.usage)
    for length in range(1, len(events) + 1):
        loop_id, journal = await cut(events, length)
        result, code = await ending(scenario.make().resume(loop_id, journal))
        assert (result.output, code) == (scenario.output, scenario.code)
        assert (normal_form(await result.events()), result.messages, result.usage) == wanted
        assert (await result.events())[:length] == events[:length], "what was recorded stays"
        check_history(result.messages)


@pytest.mark.parametrize("scenario", WELL, ids=repr)
async def test_what_one_driver_began_another_can_finish(scenario: Scenario) -> None:
    events, original = await finished(scenario)
    for length in range(1, len(events) + 1, 2):
        loop_id, journal = await cut(events, length)
        driver = SplitDriver(length, ROUGH)
        result = await scenario.make().run(
            scenario.prompt, loop_id=loop_id, journal=journal, runtime=driver, **scenario.options
        )
        assert normal_form(await result.events()) == normal_form(events)
        assert result.messages == original.messages


@given(st.sampled_from(WELL), st.lists(st.floats(0, 1), max_size=4))
async def test_however_often_a_run_is_cut_off_it_comes_to_the_same_end(
    scenario: Scenario, cuts: list[float]
) -> None:
    events, original = await finished(scenario)
    wanted = normal_form(events)
    for where in cuts:
        loop_id, journal = await cut(events, 1 + int(where * (len(events) - 1)))
        result = await scenario.make().resume(loop_id, journal)
        assert (result.output, result.messages) == (scenario.output, original.messages)
        events = await result.events()
        assert normal_form(events) == wanted


async def test_a_result_that_was_recorded_is_neither_lost_nor_made_again(journal: Journal) -> None:
    ran: list[int] = []

    @tool
    async def work(n: int) -> int:
        ran.append(n)
        return n * n

    def agent() -> Agent[Any, str]:
        return Agent(Script([call("work", {"n": n}) for n in range(5)], "done"), tools=[work])

    first = await agent().run("go")
    events = await first.events()
    for length in range(1, len(events) + 1):
        recorded = {event.index for event in events[:length] if isinstance(event, ToolReturned)}
        ran.clear()
        begun = events[0]
        assert isinstance(begun, Started)
        loop_id = new_id()
        renamed = Started(begun.at, VERSION, loop_id, begun.spec, begun.prompt)
        await journal.append(loop_id, [renamed, *events[1:length]], 0)
        result = await agent().resume(loop_id, journal)
        assert sorted(ran) == sorted(set(range(5)) - recorded)
        assert [found.content for found in result.messages[2].tool_results] == [0, 1, 4, 9, 16]


async def test_an_at_most_once_call_that_had_started_is_interrupted_not_repeated() -> None:
    def agent() -> Agent[Any, str]:
        return Agent(
            Script([call("launch", {"name": "a"}), call("add", {"x": 1, "y": 1})], "done"),
            tools=[launch, add],
        )

    events = await (await agent().run("go")).events()
    kinds = kinds_of(events)
    started, returned = (
        kinds.index("ToolStarted"),
        next(n for n, event in enumerate(events) if isinstance(event, ToolReturned) and event.index == 0),
    )
    for length in range(1, len(events) + 1):
        loop_id, journal = await cut(events, length)
        result = await agent().resume(loop_id, journal)
        found = result.messages[2].tool_results[0]
        in_between = started < length <= returned
        assert found.status is (ResultKind.INTERRUPTED if in_between else ResultKind.RETURN)
        check_history(result.messages)


async def test_the_recorded_spec_wins(journal: Journal) -> None:
    script = Script("ok")
    agent = Agent(NeverAsked(), instructions="Old.", name="one")
    async with agent.iter("go", journal=journal) as begun:
        pass
    await agent.clone(model=script, instructions="New.").resume(begun.loop_id, journal)
    assert script.last.messages[0] == system("Old.")


async def test_a_tool_that_is_not_there_any_more_is_unavailable(journal: Journal) -> None:
    agent = Agent(Script(call("add", {"x": 1, "y": 1}), "ok"), tools=[add, step])
    async with agent.iter("go", journal=journal) as begun:
        pass
    result = await agent.clone(tools=[step]).resume(begun.loop_id, journal)
    found = result.messages[2].tool_results[0]
    assert found.metadata == {"code": "TOOL_UNAVAILABLE"}
    assert "not bound" in found.text


async def test_dependencies_are_bound_anew(journal: Journal) -> None:
    @tool
    async def look(ctx: RunContext[Any]) -> str:
        return f"{ctx.deps}"

    agent = Agent(Script(call("look"), "ok"), tools=[look])
    async with agent.iter("go", deps="old", journal=journal) as begun:
        pass
    result = await agent.resume(begun.loop_id, journal, deps="new")
    assert result.messages[2].tool_results[0].content == "new"


async def test_a_loop_that_is_over_is_not_resumed_but_read(journal: Journal) -> None:
    agent = Agent(Script("ok"))
    first = await agent.run("go", journal=journal)
    again = await agent.clone(model=NeverAsked()).resume(first.loop_id, journal)
    assert again.output == "ok"
    assert len(await journal.read(first.loop_id)) == 3


async def test_no_time_is_left_nothing_is_begun(journal: Journal) -> None:
    agent = Agent(NeverAsked(), limits=Limits(timeout=5))
    loop_id = new_id()
    await journal.append(loop_id, [Started(1000.0, VERSION, loop_id, agent.spec, user("go"))], 0)
    with pytest.raises(CancelledTimeout):
        await agent.resume(loop_id, journal)
    assert kinds_of(await journal.read(loop_id)) == ["Started", "Resumed", "TimePassed", "Ended"]


@pytest.mark.parametrize("how", ["resume", "replay", "fork"])
async def test_a_loop_that_is_not_there_is_not_found(journal: Journal, how: str) -> None:
    agent = Agent(NeverAsked())
    options = {"turn": 0} if how == "fork" else {}
    with pytest.raises(LoopNotFound, match="'nobody'"):
        await getattr(agent, how)("nobody", journal, **options)


BROKEN: dict[str, Callable[[list[Event]], list[Event]]] = {
    "no beginning": lambda events: events[1:],
    "an event too many": lambda events: [*events[:2], events[1]],
    "one after the end": lambda events: [*events, events[-1]],
    "one missing": lambda events: [events[0], events[2]],
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
async def test_a_journal_that_makes_no_sense_is_refused(
    broken: Callable[[list[Event]], list[Event]],
) -> None:
    agent = Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add])
    first = await agent.run("go")
    journal = MemoryJournal()
    await journal.append("one", broken(await first.events()), 0)
    for read in (agent.resume, agent.replay):
        with pytest.raises(JournalCorrupt, match="loop one"):
            await read("one", journal)


# Two drivers


@pytest.mark.parametrize("name", ["model", "tool", "tools", "at_most_once", "validator"])
async def test_the_driver_that_is_taken_over_stops_at_once_and_the_other_finishes(
    journal: Journal, name: str
) -> None:
    first, hanging = hanging_in(name)
    second, free = hanging_in(name)
    free.let_go.set()
    driven = Driven("journal", Where.here(journal))
    await driven.start(first)
    await hanging.entered.wait()
    result = await second.resume(driven.loop_id, journal)
    with pytest.raises(LoopTakenOver, match="another driver"):
        await driven.end()
    assert hanging.cancelled == hanging.times
    assert result.output == "done"
    events = await journal.read(driven.loop_id)
    assert fold(events) == result.state
    answered = [(event.turn, event.index) for event in events if isinstance(event, ToolReturned)]
    assert len(set(answered)) == len(answered)


async def test_a_driver_that_was_fenced_off_can_write_nothing_more() -> None:
    """Its own answer comes, and finds that the loop is another's."""
    journal = MemoryJournal()
    agent = Agent(Script(call("add", {"x": 1, "y": 1}), "2"), tools=[add])
    async with agent.iter("go", journal=journal) as run:
        await run.next()
        length = len(await journal.read(run.loop_id))
        await journal.append(run.loop_id, [Resumed(5.0, VERSION, 1)], length)
        with pytest.raises(LoopTakenOver):
            await run.next()
        assert len(await journal.read(run.loop_id)) == length + 1


async def test_of_several_who_resume_at_once_one_finishes_and_nothing_is_doubled(journal: Journal) -> None:
    agent = Agent(Script(*TEN, "done"), tools=[add])
    async with agent.iter("go", journal=journal) as begun:
        await begun.next()
    ends = await asyncio.gather(
        *[agent.resume(begun.loop_id, journal) for _ in range(5)], return_exceptions=True
    )
    assert {type(end) for end in ends} <= {RunResult, LoopTakenOver}
    results = [end for end in ends if isinstance(end, RunResult)]
    assert results
    assert {result.output for result in results} == {"done"}
    assert kinds_of(await journal.read(begun.loop_id)).count("ToolReturned") == 10


# Replay


@pytest.mark.parametrize("scenario", SCENARIOS, ids=repr)
async def test_a_replay_needs_nothing_but_the_journal(scenario: Scenario) -> None:
    events, original = await finished(scenario)
    loop_id, journal = await cut(events, len(events))
    agent = Agent(output=scenario.make().config.output)  # no model, no tools, no callbacks
    if scenario.code:
        with pytest.raises(FlyballError) as caught:
            await agent.replay(loop_id, journal)
        assert caught.value.code == scenario.code
        assert caught.value.partial.messages == original.messages
    else:
        result = await agent.replay(loop_id, journal)
        assert (result.output, result.messages, result.usage) == (
            scenario.output,
            original.messages,
            original.usage,
        )


async def test_a_loop_that_is_not_over_cannot_be_replayed(journal: Journal) -> None:
    async with Agent(NeverAsked()).iter("go", journal=journal) as begun:
        pass
    with pytest.raises(UserError, match=r"not over.*resume"):
        await Agent(NeverAsked()).replay(begun.loop_id, journal)


async def test_an_answer_that_is_not_of_the_type_asked_for_is_told_as_such(journal: Journal) -> None:
    first = await Agent(Script("hello")).run("go", journal=journal)
    for output in (int, City):
        with pytest.raises(ConstraintFailure, match="recorded"):
            await Agent(output=output).replay(first.loop_id, journal)


# Forks


def turns(*tail: Answer) -> Script:
    return Script(*TEN[:3], *tail)


@pytest.mark.parametrize("turn", range(5))
@pytest.mark.parametrize("prompt", [None, "Rather so."])
async def test_a_fork_goes_on_from_any_turn_with_another_model(
    journal: Journal, turn: int, prompt: str | None
) -> None:
    agent = Agent(turns("three"), tools=[add])
    first = await agent.run("go", journal=journal)
    before = await first.events()
    other = Script("forked", first=turn + 1, name="other")
    forked = agent.clone(model=other)
    if turn == 4 and prompt is None:
        with pytest.raises(UserError, match="give a prompt"):
            await forked.fork(first.loop_id, journal, turn=turn)
        return
    result = await forked.fork(first.loop_id, journal, turn=turn, prompt=prompt)
    assert result.output == "forked"
    assert result.loop_id != first.loop_id
    assert result.state.spec.model == "other"
    check_history(result.messages)
    shared = 1 + 2 * min(turn, 3) + (turn == 4)
    if turn == 0 and prompt is not None:
        assert other.last.messages == (user(prompt),)
    else:
        assert other.last.messages[:shared] == first.messages[:shared]
        assert other.last.messages[shared:] == (() if prompt is None else (user(prompt),))
    assert await first.events() == before, "the loop that was forked stays as it is"
    assert [type(event) for event in await result.events()].count(Forked) == 1


async def test_a_fork_may_go_into_another_journal_under_a_chosen_name() -> None:
    one, two = MemoryJournal(), BytesJournal()
    agent = Agent(turns("three"), tools=[add])
    first = await agent.run("go", journal=one)
    result = await agent.clone(model=Script("forked", first=2)).fork(
        first.loop_id, one, turn=1, into=two, new_loop_id="fork"
    )
    assert result.loop_id == "fork"
    assert await one.loops() == [first.loop_id]
    assert await two.loops() == ["fork"]
    assert (await agent.replay("fork", two)).output == "forked"


async def test_a_fork_can_be_forked_resumed_and_replayed(journal: Journal) -> None:
    agent = Agent(turns("three"), tools=[add])
    first = await agent.run("go", journal=journal)
    second = await agent.clone(model=Script(TEN[5], "second", first=3)).fork(first.loop_id, journal, turn=2)
    third = await agent.clone(model=Script("third", first=4)).fork(second.loop_id, journal, turn=3)
    assert (second.output, third.output) == ("second", "third")
    assert third.messages[:-1] == second.messages[:-1]
    events = await third.events()
    memory = MemoryJournal()
    await memory.append(third.loop_id, events[:-2], 0)
    resumed = await agent.clone(model=Script("third", first=4)).resume(third.loop_id, memory)
    assert resumed.messages == third.messages


async def test_a_fork_does_not_go_where_a_loop_is_already(journal: Journal) -> None:
    agent = Agent(turns("three"), tools=[add])
    first = await agent.run("go", journal=journal)
    with pytest.raises(UserError, match="already"):
        await agent.fork(first.loop_id, journal, turn=1, new_loop_id=first.loop_id)
    assert len(await first.events()) == 9


@pytest.mark.parametrize("turn", [-1, 5, 100])
async def test_a_turn_that_the_loop_has_not_cannot_be_forked(journal: Journal, turn: int) -> None:
    agent = Agent(turns("three"), tools=[add])
    first = await agent.run("go", journal=journal)
    with pytest.raises(UserError, match=f"4 turns.*after turn {turn}"):
        await agent.fork(first.loop_id, journal, turn=turn)


async def test_a_fork_has_its_own_instructions(journal: Journal) -> None:
    agent = Agent(turns("three"), tools=[add], instructions=["Old.", dynamic])
    first = await agent.run("go", journal=journal)
    script = Script("forked", first=2)
    result = await agent.clone(model=script, instructions="New.").fork(first.loop_id, journal, turn=1)
    assert result.messages[0] == system("New.")


async def test_a_choice_that_was_met_in_the_shared_turns_is_met_in_a_fork(journal: Journal) -> None:
    required = ToolChoice("required", auto_reset=True)
    agent = Agent(Script(*TEN[:2], "done"), tools=[add], tool_choice=required)
    first = await agent.run("go", journal=journal)
    asked: list[ToolChoice | None] = []
    for turn in (0, 1, 2):
        script = Script("forked", first=turn + 1)
        await agent.clone(model=script).fork(first.loop_id, journal, turn=turn)
        asked.append(script.last.tool_choice)
    assert asked == [required, None, None]


async def test_another_question_or_another_choice_begins_with_the_forks_own(journal: Journal) -> None:
    required, forced = ToolChoice("required", auto_reset=True), ToolChoice(tool_name="add", auto_reset=True)
    agent = Agent(Script(TEN[0], "done"), tools=[add], tool_choice=required)
    first = await agent.run("go", journal=journal)
    script = Script("forked", first=2)
    await agent.clone(model=script).fork(first.loop_id, journal, turn=1, prompt="Once more.")
    assert script.last.tool_choice == required
    script = Script("forked", first=2)
    await agent.clone(model=script, tool_choice=forced).fork(first.loop_id, journal, turn=1)
    assert script.last.tool_choice == forced


async def test_a_forks_prompt_functions_are_asked_anew(journal: Journal) -> None:
    agent = Agent(turns("three"), tools=[add], instructions=["Old.", dynamic])
    first = await agent.run("go", journal=journal)
    for turn in range(5):
        script = Script("forked", first=turn + 1)
        result = await agent.clone(model=script, instructions=["New.", dynamic]).fork(
            first.loop_id, journal, turn=turn, prompt="Rather so."
        )
        assert result.messages[0] == system("New.", "You were asked: Rather so.")
        assert result.output == "forked"
        check_history(result.messages)


async def test_a_loop_that_failed_can_be_forked_before_it_did(journal: Journal) -> None:
    agent = Agent(turns(EngineError("down")), tools=[add])
    with pytest.raises(EngineError) as caught:
        await agent.run("go", journal=journal)
    loop_id = caught.value.partial.loop_id
    for turn in range(4):
        result = await agent.clone(model=Script("better", first=turn + 1)).fork(loop_id, journal, turn=turn)
        assert result.output == "better"
    result = await agent.clone(model=Script("better", first=5)).fork(loop_id, journal, turn=4)
    assert result.messages[:-1] == caught.value.partial.messages


async def test_a_forks_limits_count_from_its_own_beginning(journal: Journal) -> None:
    agent = Agent(turns("three"), tools=[add], limits=Limits(max_iterations=4))
    first = await agent.run("go", journal=journal)
    result = await agent.clone(model=Script(*TEN[4:7], "forked", first=4)).fork(
        first.loop_id, journal, turn=3
    )
    assert result.output == "forked"


# Trying again


async def test_a_failed_loop_is_opened_again_by_a_retry(journal: Journal) -> None:
    attempts: list[tuple[int, str]] = []

    @tool
    async def note(ctx: RunContext[Any]) -> str:
        attempts.append((ctx.facts.attempt, ctx.idempotency_key))
        return "noted"

    agent = Agent(Script(call("note"), EngineError("down"), call("note"), "at last"), tools=[note])
    with pytest.raises(EngineError) as caught:
        await agent.run("go", journal=journal)
    loop_id = caught.value.partial.loop_id
    assert await send_signal(journal, loop_id, Signal(SignalType.RETRY, by="me"))
    with pytest.raises(SignalRefused, match="takes no retry: what fits now is cancel, pause, feedback"):
        await send_signal(journal, loop_id, RETRY)
    result = await agent.resume(loop_id, journal)
    assert result.output == "at last"
    assert attempts == [(1, f"{loop_id}/1/1/execute/0"), (2, f"{loop_id}/2/3/execute/0")]
    assert kinds_of(await result.events())[4:7] == ["Ended", "Reopened", "Resumed"]
    check_history(result.messages)


async def test_a_retry_after_used_up_iterations_has_them_anew(journal: Journal) -> None:
    agent = Agent(Script(*TEN[:4], "done"), tools=[add], limits=Limits(max_iterations=3))
    with pytest.raises(IterationLimit) as caught:
        await agent.run("go", journal=journal)
    assert await send_signal(journal, caught.value.partial.loop_id, RETRY)
    assert (await agent.resume(caught.value.partial.loop_id, journal)).output == "done"


async def test_a_retry_tells_the_model_what_did_not_work(journal: Journal) -> None:
    script = Script("one", "two", final(name="Rome"))
    agent = Agent(script, output=City, output_mode="tool", retries=0)
    with pytest.raises(FlyballError) as caught:
        await agent.run("go", journal=journal)
    loop_id = caught.value.partial.loop_id
    await send_signal(journal, loop_id, RETRY)
    with pytest.raises(FlyballError):
        await agent.resume(loop_id, journal)
    told = script.last.messages[-1].parts[0]
    assert isinstance(told, Retry)
    assert told.text.startswith("That did not work (no acceptable answer")
    await send_signal(journal, loop_id, RETRY)
    assert (await agent.resume(loop_id, journal)).output == City(name="Rome")


async def test_a_cancelled_loop_can_be_tried_again(where: Where) -> None:
    agent, place = hanging_in("tool")
    driven = Driven("journal", where)
    await driven.start(agent)
    await driven.reach(place)
    await driven.signal("cancel")
    with pytest.raises(CancelledSignal):
        await driven.end()
    assert await driven.signal("retry")
    assert (await where.resume(agent, driven.loop_id)).output == "done"


async def test_a_loop_that_ended_well_is_not_tried_again(journal: Journal) -> None:
    first = await Agent(Script("ok")).run("go", journal=journal)
    with pytest.raises(SignalRefused, match="is complete and takes no retry: nothing fits any more"):
        await send_signal(journal, first.loop_id, RETRY)
    assert len(await first.events()) == 3


async def test_a_loop_that_was_tried_again_can_be_forked_at_every_turn(journal: Journal) -> None:
    agent = Agent(Script(TEN[0], EngineError("down"), TEN[1], "done"), tools=[add])
    with pytest.raises(EngineError) as caught:
        await agent.run("go", journal=journal)
    loop_id = caught.value.partial.loop_id
    await send_signal(journal, loop_id, RETRY)
    await agent.resume(loop_id, journal)
    for turn in (0, 1, 2, 3):
        result = await agent.clone(model=Script("forked", first=turn + 1)).fork(loop_id, journal, turn=turn)
        assert result.output == "forked"
        check_history(result.messages)


# What is written


async def test_what_is_read_back_is_what_was_written() -> None:
    for scenario in SCENARIOS:
        events, original = await finished(scenario)
        loop_id, journal = await cut(events, len(events))
        assert await journal.read(loop_id) == events
        assert fold(await journal.read(loop_id)) == original.state


async def test_the_journal_of_a_run_grows_with_the_work_not_with_its_square() -> None:
    async def size(count: int) -> int:
        driver = SplitDriver()
        agent = Agent(
            Script(*[call("add", {"x": n, "y": 1}) for n in range(count)], "done"),
            tools=[add],
            limits=Limits(max_iterations=None),
        )
        result = await agent.run("go", runtime=driver)
        return sum(len(data) for data in driver.journal.bytes[result.loop_id])

    ten, twenty, forty = await size(10), await size(20), await size(40)
    assert forty - twenty < 2.2 * (twenty - ten)

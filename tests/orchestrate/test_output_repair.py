"""Repairs of answers that cannot be read: by the user's functions, by a model, and then by asking again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from flyball import (
    Agent,
    CostTracker,
    FlyballError,
    Limits,
    MemoryJournal,
    ModelPricing,
    ModelRepair,
    ModelRetry,
    ModelSettings,
    OutputContract,
    OutputRepair,
    RunContext,
    Signal,
    SignalType,
    SystemRequest,
    UsageLimits,
    send_signal,
    user,
)
from flyball.core.errors import (
    EngineError,
    RuleFailed,
    UnexpectedModelBehavior,
    UsageLimitExceeded,
    UserError,
)
from flyball.core.events import Event, ModelAnswered, ModelFailed, TurnSettled
from flyball.core.messages import FinishReason, Message, Retry, Text, ToolResult
from flyball.core.usage import Usage
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.observe.timeline import InferenceStartEvent
from flyball.orchestrate.agent import Agent as AnyAgent
from flyball.orchestrate.correlation import correlate
from flyball.orchestrate.lifecycle import Phase, phase_of
from flyball.orchestrate.machine import accepts, fold, owed
from flyball.orchestrate.projections import timeline, tool_calls_made, trajectory
from flyball.orchestrate.replay import steps
from flyball.orchestrate.schema_output import SchemaOutput
from flyball.orchestrate.spending import spent
from flyball.orchestrate.system import System
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.models import Script
from tests.orchestrate.output_scenarios import River
from tests.orchestrate.scenarios import City, add, final, grown, said
from tests.orchestrate.where import Where

NO_JSON = "It is Rome."
FIXED = '{"name": "Rome"}'


def settled(events: list[Event]) -> list[TurnSettled]:
    return [event for event in events if isinstance(event, TurnSettled)]


def native(*answers: Answer, **options: Any) -> AnyAgent[Any, Any]:
    return Agent(Script(*answers), output=City, output_mode="native", **options)


# By functions


@OutputRepair
def last_word(ctx: RunContext[Any], raw: str, error: Exception) -> City:
    return City(name=raw.rsplit(maxsplit=1)[-1].strip("."))


async def test_a_function_puts_right_what_cannot_be_read_and_that_is_recorded(run: Runner) -> None:
    agent = native(NO_JSON, features=[last_word], retries=0)
    result = await run(agent, "go")
    assert result.output == City(name="Rome")
    assert result.text == NO_JSON, "what the model said stays what it said"
    (event,) = settled(await result.events())
    assert event.repairs == ("function last_word",)
    assert event.output == {"name": "Rome", "people": 0}


async def test_code_comes_first_and_functions_are_not_asked_about_what_can_be_read(run: Runner) -> None:
    asked: list[str] = []

    def never(ctx: RunContext[Any], raw: str, error: Exception) -> None:
        asked.append(raw)

    for answer in (FIXED, "```json\n{name: 'Rome'}\n```"):
        assert (await run(native(answer, features=[OutputRepair(never)]), "go")).output == City(name="Rome")
    assert asked == []


GIVEN: dict[str, tuple[Any, Any]] = {
    "an instance": (City(name="Rome"), City(name="Rome")),
    "what its type can be made of": ({"name": "Rome", "people": "3"}, City(name="Rome", people=3)),
    "text that is read": (FIXED, City(name="Rome")),
    "text that is mended": ("{name: 'Rome',}", City(name="Rome")),
}


@pytest.mark.parametrize(("value", "expected"), GIVEN.values(), ids=GIVEN)
async def test_a_function_gives_the_output_or_text_that_is_read_as_one(
    run: Runner, value: Any, expected: Any
) -> None:
    async def fix(ctx: RunContext[Any], raw: str, error: Exception) -> Any:
        return value

    assert (await run(native(NO_JSON, features=[OutputRepair(fix)]), "go")).output == expected


def cannot(kind: str) -> OutputRepair:
    def fix(ctx: RunContext[Any], raw: str, error: Exception) -> Any:
        if kind == "retries":
            raise ModelRetry("no")
        if kind == "fails":
            raise ValueError("no")
        if kind == "cannot reach anybody":
            raise EngineError("down")
        return None if kind == "gives nothing" else {"people": 3}

    return OutputRepair(fix, kind)


@pytest.mark.parametrize(
    "kind", ["retries", "fails", "cannot reach anybody", "gives nothing", "gives another thing"]
)
async def test_a_function_that_cannot_leaves_it_to_the_next_and_then_to_the_model(
    run: Runner, kind: str
) -> None:
    result = await run(native(NO_JSON, features=[cannot(kind), last_word], retries=0), "go")
    assert result.output == City(name="Rome")
    agent = native(NO_JSON, FIXED, features=[cannot(kind)])
    result = await run(agent, "go")
    assert result.output == City(name="Rome")
    first, second = settled(await result.events())
    assert (first.accepted, second.accepted, second.repairs) == (False, True, ())
    assert "no JSON" in first.feedback[0], "the model reads what was wrong with its own answer"


async def test_a_function_that_breaks_fails_the_run(run: Runner) -> None:
    def breaks(ctx: RunContext[Any], raw: str, error: Exception) -> City:
        raise KeyError("oops")

    error = await run.failing(RuleFailed, native(NO_JSON, features=[OutputRepair(breaks)]), "go")
    assert str(error) == "the output repair 'breaks' failed: KeyError: 'oops'"


async def test_a_function_is_told_what_is_wrong_and_about_its_run(run: Runner) -> None:
    told: list[tuple[Any, str, str]] = []

    def look(ctx: RunContext[Any], raw: str, error: Exception) -> City:
        told.append((ctx.deps, raw, str(error)))
        return City(name="Rome")

    await run(native('{"people": 3}', features=[OutputRepair(look)]), "go", deps=7)
    assert told[0][:2] == (7, '{"people": 3}')
    assert "name: Field required" in told[0][2]


async def test_what_a_function_put_right_is_validated(run: Runner) -> None:
    agent = native(NO_JSON, features=[last_word], validators=[grown])
    assert (await run(agent, "go")).output == City(name="Rome", people=1)


async def test_repairs_of_unions(run: Runner) -> None:
    def longer(ctx: RunContext[Any], raw: str, error: Exception) -> River:
        return River(km=9)

    wrong = call("final_result_City", {"name": 5})
    agent = Agent(Script(wrong), output=City | River, output_mode="tool", features=[OutputRepair(longer)])
    result = await run(agent, "go")
    assert result.output == River(km=9)


async def test_text_in_the_place_of_what_a_tool_carried_is_no_repair(run: Runner) -> None:
    def same(ctx: RunContext[Any], raw: str, error: Exception) -> str:
        return raw

    script = Script(final(name=5), final(name="Rome"))
    agent = Agent(script, output=[City, str], output_mode="tool", features=[OutputRepair(same)])
    assert (await run(agent, "go")).output == City(name="Rome")


async def test_repairs_of_values_that_follow_a_schema(run: Runner) -> None:
    for value in ({"a": 1}, '{"a": 1}'):

        def fix(ctx: RunContext[Any], raw: str, error: Exception, value: Any = value) -> Any:
            return value

        output = SchemaOutput({"type": "object", "required": ["a"]}, retry=False)
        agent = Agent(Script("what?"), output=output, output_mode="native", features=[OutputRepair(fix)])
        assert (await run(agent, "go")).output == {"a": 1}


def test_a_repair_that_there_is_nothing_for_costs_nothing() -> None:
    agent = Agent(Script("hi"), features=[last_word, ModelRepair()])
    assert not agent.spec.output.checked
    assert agent.spec.output.repairer is None


# By a model


async def test_a_model_puts_right_what_cannot_be_read(run: Runner) -> None:
    mender, script = Script(FIXED, name="mender"), Script(final(name=5))
    agent = Agent(script, output=City, output_mode="tool", features=[ModelRepair(mender)], retries=0)
    result = await run(agent, "go")
    assert result.output == City(name="Rome")
    assert result.text == FIXED
    events = await result.events()
    assert kinds_of(events) == [
        "Started",
        "ModelAnswered",
        "TurnSettled",
        "ModelAnswered",
        "TurnSettled",
        "Ended",
    ]
    assert [event.purpose for event in events if isinstance(event, ModelAnswered)] == ["turn", "repair"]
    assert [event.repairs for event in settled(events)] == [(), ("model",)]
    assert (result.usage.requests, result.state.iterations) == (2, 1)
    assert all(FIXED not in str(message) for message in result.messages), "it is no part of the history"


async def test_a_model_is_sent_what_was_written_what_is_wrong_and_the_schema_and_nothing_else(
    run: Runner,
) -> None:
    mender = Script(FIXED, name="mender")
    repair = ModelRepair(mender, instructions="Mend it.", settings=ModelSettings(max_tokens=9))
    agent = native('{"name": 5}', instructions="Secret.", tools=[add], features=[repair])
    await run(agent, "go")
    request = mender.last
    assert request.id.endswith("/1/1/repair/0")
    assert request.messages[0].text == "Mend it."
    told = request.messages[1].text
    assert '{"name": 5}' in told
    assert "name: Input should be a valid string" in told
    assert '"people"' in told
    assert request.tools == ()
    assert request.settings == ModelSettings(max_tokens=9)
    assert request.output is not None, "the script's profile says that it can be held to a schema"
    assert "Secret." not in str(request)


async def test_without_a_model_of_its_own_the_agents_does_it(run: Runner) -> None:
    def answer(request: Any) -> str:
        return FIXED if "/repair/" in request.id else NO_JSON

    result = await run(native(answer, features=[ModelRepair()], retries=0), "go")
    assert result.output == City(name="Rome")


async def test_functions_come_before_the_model(run: Runner) -> None:
    mender = Script(FIXED)
    result = await run(native(NO_JSON, features=[ModelRepair(mender), last_word]), "go")
    assert mender.calls == 0
    result = await run(native(NO_JSON, features=[ModelRepair(mender), cannot("fails")], retries=0), "go")
    assert result.output == City(name="Rome")
    assert len(mender.requests) == 1


async def test_what_a_model_put_right_is_read_like_any_answer(run: Runner) -> None:
    mender = Script("Here:\n```json\n{name: 'Rome'}\n```")
    agent = native(NO_JSON, features=[ModelRepair(mender)], validators=[grown], retries=0)
    result = await run(agent, "go")
    assert result.output == City(name="Rome", people=1)
    assert settled(await result.events())[1].repairs == ("model", "json")


NO_REPAIR: dict[str, Answer] = {
    "other nonsense": "Neither do I.",
    "nothing": said(),
    "an error": EngineError("down"),
    "an answer that was cut": said(Text(FIXED), reason=FinishReason.LENGTH),
    "a tool call": call("final_result", {"name": "Rome"}),
}


@pytest.mark.parametrize("answer", NO_REPAIR.values(), ids=NO_REPAIR)
async def test_where_a_model_cannot_either_the_agents_own_is_asked_again(run: Runner, answer: Answer) -> None:
    script = Script(NO_JSON, FIXED)
    agent = Agent(script, output=City, output_mode="native", features=[ModelRepair(Script(answer))])
    result = await run(agent, "go")
    assert result.output == City(name="Rome")
    told = script.last.messages[-1].parts[0]
    assert isinstance(told, Retry)
    assert "no JSON" in told.text, "it is told of its own answer"
    assert result.usage.requests == 3


async def test_each_turn_has_one_repair(run: Runner) -> None:
    mender = Script("no", "no", "no")
    agent = native(NO_JSON, NO_JSON, NO_JSON, features=[ModelRepair(mender)], retries=2)
    error = await run.failing(UnexpectedModelBehavior, agent, "go")
    assert "no JSON" in error.details["feedback"]
    assert len(mender.requests) == 3
    assert error.partial is not None
    assert error.partial.usage.requests == 6


async def test_a_validator_has_the_last_word_on_what_a_model_put_right(run: Runner) -> None:
    def bigger(ctx: RunContext[Any], city: City) -> City:
        if not city.people:
            raise ModelRetry("a bigger one")
        return city

    script = Script(NO_JSON, '{"name": "Rome", "people": 3}')
    repair = ModelRepair(Script(FIXED))
    agent = Agent(script, output=City, output_mode="native", features=[repair], validators=[bigger])
    result = await run(agent, "go")
    assert result.output == City(name="Rome", people=3)
    assert script.last.messages[-1].parts == (Retry("a bigger one"),)


async def test_what_a_validator_refuses_is_not_repaired(run: Runner) -> None:
    def never(ctx: RunContext[Any], city: City) -> City:
        raise ModelRetry("another")

    mender = Script()
    agent = native(FIXED, features=[ModelRepair(mender)], validators=[never], retries=0)
    await run.failing(UnexpectedModelBehavior, agent, "go")
    assert mender.calls == 0


async def test_an_answer_that_was_cut_is_not_repaired_by_anybody(run: Runner) -> None:
    mender, cut = Script(), said(Text('{"name": "Ro'), reason=FinishReason.LENGTH)
    agent = native(cut, FIXED, features=[ModelRepair(mender), last_word])
    result = await run(agent, "go")
    assert result.output == City(name="Rome")
    assert mender.calls == 0
    assert settled(await result.events())[0].feedback == (
        "The answer was cut off before its end. Answer again, and more briefly.",
    )


@pytest.mark.parametrize("strategy", ["early", "exhaustive"])
async def test_the_first_output_that_cannot_be_read_is_repaired(run: Runner, strategy: Any) -> None:
    calls = [final(name=1), call("add", {"x": 1, "y": 1}), final(name=2)]
    mender = Script(FIXED)
    agent = Agent(
        Script(calls),
        output=City,
        output_mode="tool",
        tools=[add],
        end_strategy=strategy,
        features=[ModelRepair(mender)],
    )
    result = await run(agent, "go")
    assert result.output == City(name="Rome")
    assert '{"name":1}' in mender.last.messages[1].text
    assert [one.status for one in result.messages[-1].tool_results] == [
        "return",
        "skipped" if strategy == "early" else "return",
        "skipped",
    ]


async def test_the_member_whose_tool_was_called_is_repaired(run: Runner) -> None:
    mender, wrong = Script('{"km": 3}'), call("final_result_River", {"km": "far"})
    agent = Agent(Script(wrong), output=[City, River], output_mode="tool", features=[ModelRepair(mender)])
    assert (await run(agent, "go")).output == River(km=3)
    assert '"km"' in mender.last.messages[1].text
    assert mender.last.output is not None
    assert mender.last.output.name == "final_result_River"


async def test_what_a_tool_ended_the_loop_with_is_repaired_too(run: Runner) -> None:
    async def stop() -> ToolResult:
        return ToolResult("", "", "Rome", stop_loop=True)

    mender = Script(FIXED)
    agent = Agent(
        Script(call("stop")), output=City, output_mode="tool", tools=[stop], features=[ModelRepair(mender)]
    )
    result = await run(agent, "go")
    assert result.output == City(name="Rome")
    assert result.text == FIXED


async def test_a_function_that_does_not_follow_the_schema_has_put_nothing_right(run: Runner) -> None:
    schema = {"type": "object", "required": ["a"]}
    agent = Agent(
        Script("what?", '{"a": 1}'),
        output=schema,
        output_mode="native",
        features=[cannot("gives another thing")],
    )
    assert (await run(agent, "go")).output == {"a": 1}


async def test_a_strict_schema_is_repaired_before_it_ends_the_run(run: Runner) -> None:
    output = SchemaOutput({"type": "object", "required": ["a"]}, retry=False)
    repair = ModelRepair(Script('{"a": 1}'))
    agent = Agent(Script("{}"), output=output, output_mode="native", features=[repair])
    assert (await run(agent, "go")).output == {"a": 1}
    agent = Agent(Script("{}"), output=output, output_mode="native", features=[ModelRepair(Script("{}"))])
    with pytest.raises(FlyballError) as caught:
        await run(agent, "go")
    assert caught.value.code == "CONSTRAINT_SCHEMA_INVALID"


# Limits, and what counts


async def test_limits_bind_a_repair_and_its_tokens_count(run: Runner) -> None:
    limits = Limits(usage=UsageLimits(request_limit=1))
    mender = Script(FIXED)
    error = await run.failing(
        UsageLimitExceeded, native(NO_JSON, features=[ModelRepair(mender)], limits=limits), "go"
    )
    assert mender.calls == 0, "there was no request left for it"
    assert error.details["limit"] == "request_limit"
    costly = Script(said(Text(FIXED), usage=Usage(40, 60)))
    limits = Limits(usage=UsageLimits(total_tokens_limit=99))
    error = await run.failing(
        UsageLimitExceeded, native(NO_JSON, features=[ModelRepair(costly)], limits=limits), "go"
    )
    assert error.details["limit"] == "total_tokens_limit"
    assert error.partial is not None
    assert error.partial.usage.total_tokens == 100


async def test_a_repair_costs_what_its_model_costs(run: Runner) -> None:
    tracker = CostTracker({"test": ModelPricing(1, 2), "mender": ModelPricing(100, 200)})
    mender = Script(said(Text(FIXED), usage=Usage(3, 1)), name="mender")
    agent = native(said(Text(NO_JSON), usage=Usage(1, 1)), features=[ModelRepair(mender), tracker])
    result = await run(agent, "go")
    assert [call.asked for call in spent(result.state)] == ["test", "mender"]
    assert result.cost is not None
    assert result.cost.total == 3 + 500
    if run.calm:
        assert tracker.cost == result.cost, "it is heard of as it is made"


async def test_the_last_iteration_may_be_repaired(run: Runner) -> None:
    agent = native(NO_JSON, features=[ModelRepair(Script(FIXED))], limits=Limits(max_iterations=1))
    assert (await run(agent, "go")).output == City(name="Rome")


async def test_what_could_not_be_read_must_be_there() -> None:
    result = await native(NO_JSON, features=[ModelRepair(Script(FIXED))]).run("go")
    state = fold((await result.events())[:2])
    for unread, fits in ((0, True), (1, False), (-1, False)):
        event = TurnSettled(1.0, 1, accepted=False, feedback=("no",), unread=unread)
        assert accepts(state, event) is fits
    assert not accepts(state, TurnSettled(1.0, 1, accepted=True, unread=0))


# Not allowed


async def test_a_contract_that_allows_no_repair_switches_all_of_it_off() -> None:
    mender = Script()
    agent = Agent(Script(NO_JSON), features=[ModelRepair(mender), last_word], retries=3)
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    for allowed in (False, True):
        request = SystemRequest(
            messages=(user("go"),), output=OutputContract(schema=schema, repair_allowed=allowed)
        )
        response = await System(agent).handle(request)
        if allowed:
            assert response.structured_output == {"name": "Rome", "people": 0}
        else:
            assert response.error is not None
            assert response.error.code == "CONSTRAINT_JSON_INVALID"
    assert mender.calls == 0


def test_features_that_cannot_be_are_refused() -> None:
    with pytest.raises(UserError, match="one model"):
        _ = native(features=[ModelRepair(Script()), ModelRepair(Script())]).spec
    with pytest.raises(UserError, match="not empty"):
        ModelRepair(instructions="")
    with pytest.raises(UserError, match="takes a function"):
        OutputRepair(3)  # pyright: ignore[reportArgumentType] - that is the point
    assert repr(ModelRepair("openai:gpt-5")) == "ModelRepair('openai:gpt-5')"


# Pauses, resuming, views


async def test_a_loop_may_be_paused_before_its_repair_and_resumed(where: Where) -> None:
    """The pause comes while the first answer is being made; the repair then waits for the resume."""
    mender, asked = Script(FIXED, name="mender"), asyncio.Event()

    class Held(Script):
        async def infer(self, request: Any) -> Any:
            asked.set()
            await go_on.wait()
            return await super().infer(request)

    go_on = asyncio.Event()
    agent = Agent(Held(NO_JSON), output=City, output_mode="native", features=[ModelRepair(mender)])
    running = asyncio.ensure_future(where.run(agent, "go", "held"))
    await asked.wait()
    await send_signal(where.journal, "held", Signal(SignalType.PAUSE, id="p"))
    go_on.set()
    while fold(events := await where.journal.read("held")).at != "settle":
        await where.journal.wait("held", len(events))
    assert mender.calls == 0
    await send_signal(where.journal, "held", Signal(SignalType.RESUME, id="r"))
    assert (await running).output == City(name="Rome")


async def test_a_loop_that_was_left_before_its_repair_goes_on_with_it() -> None:
    journal, mender = MemoryJournal(), Script(FIXED, name="mender")
    agent = native(NO_JSON, features=[ModelRepair(mender)])
    result = await agent.run("go", journal=journal, loop_id="whole")
    events = await journal.read("whole")
    for length in range(1, len(events)):
        other = MemoryJournal()
        await other.append("whole", events[:length], 0)
        again = await agent.resume("whole", other)
        assert again.output == result.output
        assert again.usage == result.usage
    state = fold(events[:3])
    (effect,) = owed(state)
    assert (effect.id, state.at, phase_of(state)) == ("whole/1/1/repair/0", "repair", Phase.VALIDATE)
    with pytest.raises(UserError, match="model_repair"):
        await native(NO_JSON).resume("whole", await copied(events[:3]))


async def copied(events: list[Event]) -> MemoryJournal:
    journal = MemoryJournal()
    await journal.append("whole", events, 0)
    return journal


async def test_a_fork_after_a_repaired_turn_knows_nothing_of_it() -> None:
    journal = MemoryJournal()
    agent = native(NO_JSON, FIXED, features=[ModelRepair(Script("no", name="mender"))])
    await agent.run("go", journal=journal, loop_id="whole")
    script = Script(FIXED, first=2)
    other = Agent(script, output=City, output_mode="native")
    result = await other.fork("whole", journal, turn=1)
    assert result.output == City(name="Rome")
    assert fold(await result.events()).unread is None


async def test_views_of_a_repair() -> None:
    mender = Script(said(Text(FIXED), usage=Usage(3, 4)), name="mender")
    wrong = [call("add", {"x": 1, "y": 1}), final(name=5)]
    agent = Agent(
        Script(wrong),
        output=City,
        output_mode="tool",
        tools=[add],
        features=[ModelRepair(mender)],
        end_strategy="exhaustive",
    )
    result = await agent.run("go", loop_id="views")
    events = await result.events()
    gone = trajectory(events, "full")
    assert [step.request_id for step in gone.steps] == [
        "views/1/1/infer/0",
        "views/1/1/infer/0",
        "views/1/1/repair/0",
    ]
    assert gone.steps[-1].response == FIXED
    assert gone.steps[-1].prompt.startswith("What was written:")
    assert gone.steps[-1].tokens_out == 4
    assert [made.name for made in tool_calls_made(events)] == ["add"]
    starts = [one for one in timeline(events) if isinstance(one, InferenceStartEvent)]
    assert [one.correlation.model_request_id for one in starts] == ["views/1/1/infer/0", "views/1/1/repair/0"]
    assert [one.message_count for one in starts] == [1, 2]
    spans = {
        ids.span_id for ids, event in correlate(events) if isinstance(event, ModelAnswered | ModelFailed)
    }
    assert len(spans) == 2


# Algebra


@given(
    st.lists(st.sampled_from(["right", "mendable", "hopeless"]), min_size=1, max_size=5), st.integers(0, 3)
)
async def test_an_output_comes_with_the_first_answer_that_can_be_read_or_repaired(
    turns: list[str], retries: int
) -> None:
    answers: dict[str, Answer] = {"right": FIXED, "mendable": "Rome", "hopeless": "?"}

    def mend(request: Any) -> Message:
        given = request.messages[1].text
        return said(Text(FIXED if "What was written:\nRome" in given else "?"))

    mender = Script(*[mend] * len(turns), name="mender")
    agent = native(*[answers[turn] for turn in turns], features=[ModelRepair(mender)], retries=retries)
    good = next((number for number, turn in enumerate(turns) if turn != "hopeless"), None)
    if good is not None and good <= retries:
        result = await agent.run("go")
        assert result.output == City(name="Rome")
        assert result.usage.requests == good + 1 + good + (turns[good] == "mendable")
    else:
        with pytest.raises(FlyballError):
            await agent.run("go")


class Sized(BaseModel):
    size: int


async def test_steps_and_streams_show_no_pieces_of_a_repair(where: Where) -> None:
    agent = Agent(
        Script("forty", chunk=2),
        output=Sized,
        output_mode="native",
        features=[ModelRepair(Script('{"size": 40}', name="mender"))],
    )
    async with where.stream(agent) as stream:
        assert "".join([piece async for piece in stream.text()]) == "forty"
        assert stream.result.output == Sized(size=40)
    async with where.iter(agent) as run:
        (step,) = [step async for step in run]
        assert step.message is not None
        assert step.message.text == "forty"
        assert run.result.output == Sized(size=40)


async def test_a_state_on_the_way_can_be_looked_at() -> None:
    agent = native(NO_JSON, features=[ModelRepair(Script(FIXED, name="mender"))])
    result = await agent.run("go", loop_id="a")
    seen = [(state.at, [effect.id for effect in owed(state)]) for _, state in steps(await result.events())]
    assert seen[1:5] == [
        ("settle", ["a/1/1/settle/0"]),
        ("repair", ["a/1/1/repair/0"]),
        ("settle", ["a/1/1/settle/1"]),
        ("end", ["a/1/1/end/0"]),
    ]

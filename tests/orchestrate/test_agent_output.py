"""Typed outputs: how each mode asks for them, what is repaired, what is asked for again, what is recorded."""

from __future__ import annotations

import asyncio
import datetime as dt
import enum
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, field_validator
from typing_extensions import TypedDict

from flyball import Agent, Limits, ModelRetry, RunContext, tool
from flyball.core.encodable import as_text
from flyball.core.errors import (
    GrammarMalformed,
    RuleFailed,
    SchemaMalformed,
    UnexpectedModelBehavior,
    UserError,
)
from flyball.core.events import TurnSettled
from flyball.core.messages import FinishReason, ResultKind, Retry, Role, Text, ToolCall
from flyball.core.spec import OutputMode
from flyball.core.tools import ToolKind
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.result import RunResult
from flyball.testing.split import SplitDriver
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import City, add, final, grown, louder, said, wants_long


@dataclass
class Point:
    x: int
    y: int = 0


class Person(TypedDict):
    name: str
    age: int


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Country(BaseModel):
    """A country, with its capital."""

    country: str
    capital: City | None = None


JSON_MODES = ("native", "prompted")
MODES = ("tool", *JSON_MODES)

KINDS: dict[str, tuple[Any, Any, Any, bool]] = {
    "a pydantic model": (City, City(name="Rome", people=3), {"name": "Rome", "people": 3}, False),
    "a nested model": (
        Country,
        Country(country="Italy", capital=City(name="Rome")),
        {"country": "Italy", "capital": {"name": "Rome"}},
        False,
    ),
    "a dataclass": (Point, Point(1, 2), {"x": 1, "y": 2}, False),
    "a TypedDict": (Person, {"name": "Ann", "age": 5}, {"name": "Ann", "age": 5}, False),
    "a dict": (dict[str, int], {"a": 1}, {"a": 1}, False),
    "a whole number": (int, 7, 7, True),
    "a number": (float, 0.5, 0.5, True),
    "a truth value": (bool, True, True, True),
    "a list": (list[int], [1, 2, 3], [1, 2, 3], True),
    "a list of models": (list[City], [City(name="Rome")], [{"name": "Rome"}], True),
    "an option": (int | None, None, None, True),
    "a choice of words": (Literal["yes", "no"], "no", "no", True),
    "an enumeration": (Colour, Colour.BLUE, "blue", True),
    "a date": (dt.date, dt.date(2024, 2, 29), "2024-02-29", True),
    "a tuple": (tuple[int, str], (1, "a"), [1, "a"], True),
    "a set": (set[int], {1, 2}, [1, 2], True),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("kind", "output", "plain", "wrapped"), KINDS.values(), ids=KINDS)
async def test_any_type_can_be_the_output(
    run: Runner, mode: str, kind: Any, output: Any, plain: Any, *, wrapped: bool
) -> None:
    body = {"result": plain} if wrapped else plain
    answer: Answer = final(**body) if mode == "tool" else as_text(body)
    script = Script(answer)
    agent = Agent(script, output=kind, output_mode=mode)
    result = await run(agent, "go")
    assert result.output == output
    assert type(result.output) is type(output)
    assert agent.spec.output.outer_key == ("result" if wrapped else None)
    assert result.text == as_text(body)
    assert kinds_of(await result.events()) == ["Started", "ModelAnswered", "TurnSettled", "Ended"]


# How each mode asks


async def test_mode_tool_offers_a_tool_and_takes_no_text(run: Runner) -> None:
    script = Script(final(name="Rome"))
    result = await run(Agent(script, output=City, tools=[add], output_mode="tool"), "go")
    offered = script.last.tools[-1]
    assert [definition.name for definition in script.last.tools] == ["add", "final_result"]
    assert offered.kind is ToolKind.OUTPUT
    assert offered.parameters["required"] == ["name"]
    assert not script.last.allows_text
    assert script.last.output is None
    assert result.messages[-1].tool_results[0].content == "Final result processed."
    assert result.usage.tool_calls == 0, "the output is no tool call"


async def test_mode_native_sends_the_schema(run: Runner) -> None:
    script = Script('{"country": "Italy"}')
    await run(Agent(script, output=Country, output_mode="native"), "go")
    assert script.last.tools == ()
    assert script.last.allows_text
    assert script.last.output is not None
    assert script.last.output.name == "Country"
    assert script.last.output.description == "A country, with its capital."
    assert script.last.output.schema["required"] == ["country"]


async def test_mode_prompted_puts_the_schema_into_the_instructions(run: Runner) -> None:
    script = Script('{"name": "Rome"}')
    await run(Agent(script, output=City, output_mode="prompted", instructions="Be brief."), "go")
    instructions = script.last.messages[0].text
    assert instructions.startswith("Be brief.\n\n")
    assert '"people"' in instructions
    assert script.last.output is None


GRAMMAR = 'root ::= "yes" | "no"'


@pytest.mark.parametrize("mode", [None, "grammar"])
async def test_a_grammar_reaches_the_engine_and_its_text_is_the_output(run: Runner, mode: str | None) -> None:
    script = Script("yes")
    result = await run(Agent(script, grammar=GRAMMAR, output_mode=mode), "go")
    assert script.last.grammar == GRAMMAR
    assert result.output == "yes"
    assert kinds_of(await result.events()) == ["Started", "ModelAnswered", "TurnSettled", "Ended"]


async def test_text_held_to_a_grammar_can_be_validated(run: Runner) -> None:
    result = await run(
        Agent(Script("yes"), grammar=GRAMMAR, output_mode="grammar", validators=[louder]), "go"
    )
    assert result.output == "YES"


ROME = r'root ::= "{\"name\": \"Rome\"}"'


async def test_a_grammar_with_a_type_is_parsed(run: Runner) -> None:
    script = Script('{"name": "Rome"}')
    agent = Agent(script, output=City, grammar=ROME)
    result = await run(agent, "go")
    assert agent.spec.output.mode is OutputMode.GRAMMAR
    assert script.last.grammar == ROME
    assert result.output == City(name="Rome")


@pytest.mark.parametrize(
    ("grammar", "code"),
    [
        ('answer ::= "yes"', "CONFIG_GRAMMAR_NO_ROOT"),
        ("", "CONFIG_GRAMMAR_NO_ROOT"),
        ("root ::= object", "CONFIG_GRAMMAR_MALFORMED"),
        ("%llguidance {}", "CONFIG_GRAMMAR_MALFORMED"),
    ],
)
def test_a_grammar_that_is_none_is_refused_where_the_agent_is_made(grammar: str, code: str) -> None:
    with pytest.raises(GrammarMalformed) as caught:
        Agent(Script(), grammar=grammar)
    assert caught.value.code == code
    with pytest.raises(GrammarMalformed):
        Agent(Script()).clone(grammar=grammar)


def test_a_grammar_is_text() -> None:
    with pytest.raises(UserError, match="the text of a GBNF grammar, not 3"):
        Agent(Script(), grammar=3)  # pyright: ignore[reportArgumentType, reportCallIssue] - that is the point


def test_text_is_the_default_for_str_and_a_tool_for_the_rest() -> None:
    assert Agent(Script()).spec.output.mode is OutputMode.TEXT
    assert not Agent(Script()).spec.output.checked
    assert Agent(Script(), output=int).spec.output.mode is OutputMode.TOOL


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"output": int, "output_mode": "text"}, UserError),
        ({"output": int, "output_mode": "telepathy"}, UserError),
        ({"output": object(), "output_mode": "tool"}, SchemaMalformed),
        ({"output": type("Odd", (), {}), "output_mode": "native"}, SchemaMalformed),
        ({"end_strategy": "late"}, UserError),
        ({"retries": -1}, UserError),
        ({"colour": "red"}, UserError),
    ],
)
def test_an_output_that_cannot_be_is_refused(options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        _ = Agent(Script(), **options).spec


# Asking again


@pytest.mark.parametrize("mode", MODES)
async def test_what_is_wrong_goes_back_to_the_model(run: Runner, mode: str) -> None:
    bodies: list[dict[str, Any]] = [{"people": "many"}, {"name": "Rome", "people": 1}]
    answers: list[Answer] = [final(**body) if mode == "tool" else as_text(body) for body in bodies]
    script = Script(*answers)
    result = await run(Agent(script, output=City, output_mode=mode), "go")
    assert result.output == City(name="Rome", people=1)
    last = script.last.messages[-1]
    if mode == "tool":
        assert last.tool_results[0].status is ResultKind.RETRY
        told = last.tool_results[0].text
    else:
        assert last.role is Role.USER
        assert isinstance(last.parts[0], Retry)
        told = last.parts[0].text
    assert "name" in told
    assert "many" in told


@pytest.mark.parametrize("retries", [0, 1, 3])
async def test_an_output_that_is_never_right_fails_the_run(run: Runner, retries: int) -> None:
    script = Script(*[final(name=n) for n in range(9)])
    agent = Agent(script, output=City, output_mode="tool", retries=retries)
    error = await run.failing(UnexpectedModelBehavior, agent, "go")
    assert error.details["allowed"] == retries
    assert "name" in error.details["feedback"]
    assert len(script.requests) == retries + 1


async def test_good_tool_calls_in_between_make_the_count_begin_anew(run: Runner) -> None:
    wrong, good = final(), call("add", {"x": 1, "y": 1})
    script = Script(wrong, good, wrong, good, wrong, final(name="Rome"))
    result = await run(Agent(script, output=City, output_mode="tool", tools=[add], retries=1), "go")
    assert result.output == City(name="Rome")


async def test_text_where_a_tool_is_needed_is_asked_for_again(run: Runner) -> None:
    script = Script("It is Rome.", final(name="Rome"))
    result = await run(Agent(script, output=City, output_mode="tool"), "go")
    assert result.output == City(name="Rome")
    told = script.last.messages[-1].parts[0]
    assert isinstance(told, Retry)
    assert "final_result" in told.text


async def test_an_empty_answer_where_a_tool_is_needed_is_asked_for_again(run: Runner) -> None:
    script = Script(said(), final(name="Rome"))
    assert (await run(Agent(script, output=City, output_mode="tool"), "go")).output == City(name="Rome")


async def test_a_refused_output_beside_an_unknown_tool_counts_once(run: Runner) -> None:
    script = Script([final(), call("nope")], final(name="Rome"))
    assert (await run(Agent(script, output=City, output_mode="tool", retries=1), "go")).output.name == "Rome"


# Repair


BROKEN: dict[str, str] = {
    "a fence": '```json\n{"name": "Rome"}\n```',
    "a fence and prose": 'Here it is:\n```\n{"name": "Rome"}\n```\nI hope it helps.',
    "thinking": '<think>It could be {"name": "Oslo"}.</think>{"name": "Rome"}',
    "prose around": 'The answer is {"name": "Rome"}',
    "cut": '{"name": "Rome", "people": 0',
    "cut in a text": '{"people": 0, "name": "Rome',
    "single quotes": "{'name': 'Rome'}",
    "a comma too many": '{"name": "Rome",}',
    "keys without quotes": '{name: "Rome"}',
}


@pytest.mark.parametrize("mode", ["native", "prompted", "tool"])
@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
async def test_broken_json_is_repaired_and_that_is_recorded(run: Runner, mode: str, text: str) -> None:
    answer: Answer = ToolCall("a", "final_result", text) if mode == "tool" else text
    result = await run(Agent(Script(answer), output=City, output_mode=mode), "go")
    assert result.output == City(name="Rome")
    settled = [event for event in await result.events() if isinstance(event, TurnSettled)]
    assert [event.repairs for event in settled] == [("json",)]


class Paint(BaseModel):
    colour: Literal["red", "dark_blue"]
    coats: int = 1


MISSPELT = {
    "case": ('{"colour": "Red"}', ('enum colour: "Red" is taken for "red"',)),
    "spaces": ('{"colour": " red "}', ('enum colour: " red " is taken for "red"',)),
    "broken too": ("{'colour': 'RED',}", ("json", 'enum colour: "RED" is taken for "red"')),
}


@pytest.mark.parametrize("mode", ["native", "prompted", "tool"])
@pytest.mark.parametrize(("text", "repairs"), MISSPELT.values(), ids=MISSPELT)
async def test_misspelt_members_are_put_right_and_that_is_recorded(
    run: Runner, mode: str, text: str, repairs: tuple[str, ...]
) -> None:
    answer: Answer = ToolCall("a", "final_result", text) if mode == "tool" else text
    agent = Agent(Script(answer), output=Paint, output_mode=mode)
    result = await run(agent, "go")
    assert result.output == Paint(colour="red")
    settled = [event for event in await result.events() if isinstance(event, TurnSettled)]
    assert [event.repairs for event in settled] == [repairs]
    assert (await agent.replay(result.loop_id, result.journal)).output == Paint(colour="red")


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


async def test_members_of_pythons_enums_are_put_right_also_where_they_are_wrapped(run: Runner) -> None:
    result = await run(Agent(Script('{"result": "Good!"}'), output=Mood, output_mode="native"), "go")
    assert result.output is Mood.GOOD


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"colour": "yellow"}', 'got "yellow"'),
        ('{"colour": "Red", "coats": "many"}', "coats: Input should be a valid integer"),
        ('{"colour": "Red", "coats": NaN}', "coats: Input should be a finite number"),
    ],
)
async def test_what_is_still_wrong_is_asked_for_again(run: Runner, text: str, told: str) -> None:
    script = Script(text, '{"colour": "red"}')
    result = await run(Agent(script, output=Paint, output_mode="native"), "go")
    assert result.output == Paint(colour="red")
    assert told in str(script.requests[1].messages[-1].parts[-1])


async def test_what_cannot_be_repaired_is_asked_for_again(run: Runner) -> None:
    script = Script("I do not know.", '{"name": "Rome"}')
    assert (await run(Agent(script, output=City, output_mode="native"), "go")).output == City(name="Rome")


async def test_repair_does_not_make_up_what_is_missing(run: Runner) -> None:
    script = Script('```json\n{"people": 5}\n```', '{"name": "Rome"}')
    result = await run(Agent(script, output=City, output_mode="native"), "go")
    assert result.output == City(name="Rome")
    assert len(script.requests) == 2


async def test_json_that_the_length_limit_cut_is_asked_for_again_for_nobody_knows_what_is_missing(
    run: Runner,
) -> None:
    cut = said(Text('{"name": "Rome", "people": 28'), reason=FinishReason.LENGTH)
    script = Script(cut, '{"name": "Rome", "people": 2800000}')
    result = await run(Agent(script, output=City, output_mode="native"), "go")
    assert result.output == City(name="Rome", people=2_800_000)
    assert "cut off" in str(script.requests[1].messages[-1].parts[-1])


async def test_where_the_last_answer_was_cut_the_error_says_what_to_raise(run: Runner) -> None:
    cut = said(Text('{"name": "Rome", "people": 28'), reason=FinishReason.LENGTH)
    with pytest.raises(UnexpectedModelBehavior, match="cut off at its limit of tokens: raise max_tokens"):
        await run(Agent(Script(cut), output=City, output_mode="native", retries=0), "go")


# Several calls in one turn


def kinds_and_texts(result: RunResult[Any]) -> list[tuple[str, str]]:
    return [(found.status.value, found.text) for found in result.messages[-1].tool_results]


@pytest.mark.parametrize("strategy", ["early", "exhaustive"])
async def test_the_end_strategy_decides_about_the_other_calls(run: Runner, strategy: Any) -> None:
    ran: set[str] = set()

    @tool
    async def work(ctx: RunContext[Any]) -> str:
        ran.add(ctx.tool_call_id)
        return "worked"

    calls = [call("work", id="a"), final(name="Rome"), call("work", id="b"), final(name="Oslo")]
    agent = Agent(Script(calls), output=City, output_mode="tool", tools=[work], end_strategy=strategy)
    result = await run(agent, "go")
    assert result.output == City(name="Rome"), "the first that can be taken"
    assert ran == (set() if strategy == "early" else {"a", "b"})
    left = ("skipped", "Not run: the final result was already there.")
    done = ("return", "worked")
    other = left if strategy == "early" else done
    assert kinds_and_texts(result) == [
        other,
        ("return", "Final result processed."),
        other,
        ("skipped", "Not used: another final result was taken."),
    ]
    assert result.usage.tool_calls == (0 if strategy == "early" else 2)


@pytest.mark.parametrize("strategy", ["early", "exhaustive"])
async def test_of_several_outputs_the_first_valid_one_counts(run: Runner, strategy: Any) -> None:
    calls = [final(), final(name=5), final(name="Rome"), final(name="Oslo")]
    agent = Agent(Script(calls), output=City, output_mode="tool", end_strategy=strategy)
    assert (await run(agent, "go")).output == City(name="Rome")


@pytest.mark.parametrize("strategy", ["early", "exhaustive"])
async def test_each_refused_output_is_told_what_is_wrong_with_it_and_the_other_calls_run(
    run: Runner, strategy: Any
) -> None:
    script = Script([final(name=5), call("add", {"x": 1, "y": 2}), final(people="many")], final(name="Rome"))
    agent = Agent(script, output=City, output_mode="tool", tools=[add], end_strategy=strategy)
    result = await run(agent, "go")
    first, second, third = script.last.messages[-1].tool_results
    assert "name" in first.text
    assert second.content == 3
    assert "people" in third.text
    assert result.output == City(name="Rome")


async def test_calls_that_may_not_be_made_do_not_keep_an_output_from_counting(run: Runner) -> None:
    calls = [call("nope"), final(name="Rome")]
    result = await run(Agent(Script(calls), output=City, output_mode="tool", retries=0), "go")
    assert result.output == City(name="Rome")


# Validators


async def test_validators_change_the_output_one_after_the_other(run: Runner) -> None:
    async def trimmed(_: RunContext[Any], output: str) -> str:
        return output.strip()

    result = await run(Agent(Script("  rome  "), validators=[trimmed, louder]), "go")
    assert result.output == "ROME"
    assert result.text == "  rome  "
    settled = [event for event in await result.events() if isinstance(event, TurnSettled)]
    assert [event.output for event in settled] == ["ROME"]


async def test_what_a_validator_left_alone_is_not_written_twice(run: Runner) -> None:
    def same(_: RunContext[Any], output: City) -> City:
        return output

    result = await run(
        Agent(Script(final(name="Rome")), output=City, output_mode="tool", validators=[same]), "go"
    )
    settled = [event for event in await result.events() if isinstance(event, TurnSettled)]
    assert not settled[0].output


async def test_a_change_in_place_is_recorded(run: Runner) -> None:
    result = await run(
        Agent(Script(final(name="Rome")), output=City, output_mode="tool", validators=[grown]), "go"
    )
    assert result.output == City(name="Rome", people=1)


async def test_a_validator_may_ask_for_another_output(run: Runner) -> None:
    script = Script("no", "rather so")
    result = await run(Agent(script, validators=[wants_long]), "go")
    assert result.output == "rather so"
    assert script.last.messages[-1].parts == (Retry("longer, please"),)


async def test_a_validator_may_ask_for_another_output_call(run: Runner) -> None:
    def bigger(_: RunContext[Any], city: City) -> City:
        if city.people < 5:
            raise ModelRetry("a bigger one")
        return city

    script = Script([final(name="Rome"), final(name="Oslo", people=9)], final(name="Never"))
    result = await run(Agent(script, output=City, output_mode="tool", validators=[bigger]), "go")
    assert result.output == City(name="Oslo", people=9), "the second candidate passed"


async def test_a_validator_that_is_never_content_fails_the_run(run: Runner) -> None:
    error = await run.failing(
        UnexpectedModelBehavior, Agent(Script("a", "b", "c"), validators=[wants_long]), "go"
    )
    assert "longer, please" in str(error)


CITY_SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@pytest.mark.parametrize(
    ("output", "answer", "given"),
    [
        (int, final(result=7), "number 7"),
        (str, "Rome", 7),
        (str, "Rome", ["Rome"]),
        (City, final(name="Rome"), {"nom": "Rome"}),
        ([City, int], call("final_result_City", {"name": "Rome"}), ["Rome"]),
        (CITY_SCHEMA, final(name="Rome"), {"nom": "Rome"}),
    ],
    ids=["int", "text", "text as a list", "model", "union", "schema"],
)
async def test_a_validator_gives_an_output_of_the_type(
    run: Runner, output: Any, answer: Any, given: Any
) -> None:
    agent = Agent(Script(answer), output=output, validators=[lambda _, __: given])
    error = await run.failing(UserError, agent, "go")
    assert "is not what the agent is to give" in str(error)


async def test_a_validator_whose_own_task_was_cancelled_has_failed(run: Runner) -> None:
    async def odd(_: RunContext[Any], output: str) -> str:
        raise asyncio.CancelledError

    error = await run.failing(RuleFailed, Agent(Script("a"), validators=[odd]), "go")
    assert "cancelled" in str(error)


async def test_an_output_type_that_breaks_fails_the_run(run: Runner) -> None:
    class Odd(BaseModel):
        name: str

        @field_validator("name")
        @classmethod
        def check(cls, name: str) -> str:
            raise KeyError(name)

    error = await run.failing(
        RuleFailed, Agent(Script(final(name="Rome")), output=Odd, output_mode="tool"), "go"
    )
    assert "KeyError: 'Rome'" in str(error)


async def test_a_validator_that_breaks_fails_the_run(run: Runner) -> None:
    def breaks(_: RunContext[Any], output: str) -> str:
        raise ZeroDivisionError("oops")

    error = await run.failing(RuleFailed, Agent(Script("a"), validators=[breaks]), "go")
    assert "oops" in str(error)
    assert not error.retryable


async def test_a_validator_that_gives_what_cannot_be_recorded_fails_the_run(run: Runner) -> None:
    def odd(_: RunContext[Any], output: str) -> object:
        return object()

    error = await run.failing(UserError, Agent(Script("a"), validators=[odd]), "go")
    assert "object" in str(error)


async def test_a_validator_that_forgot_to_return_the_output_is_told_so(run: Runner) -> None:
    def forgetful(_: RunContext[Any], output: str) -> None:
        assert output

    error = await run.failing(UserError, Agent(Script("a"), validators=[forgetful]), "go")
    assert "'forgetful' returned None" in str(error)


async def test_a_validator_is_told_about_its_run(run: Runner) -> None:
    seen: dict[int, tuple[Any, ...]] = {}

    def look(ctx: RunContext[Any], output: str) -> str:
        seen[ctx.run_step] = (
            ctx.deps,
            ctx.prompt,
            ctx.retry,
            ctx.max_retries,
            ctx.usage.requests,
            len(ctx.messages),
        )
        return wants_long(ctx, output)

    await run(Agent(Script("no", "rather so"), validators=[look], retries=3), "go", deps=7)
    assert seen == {1: (7, "go", 0, 3, 1, 2), 2: (7, "go", 1, 3, 2, 4)}


class Strict(BaseModel):
    model_config = ConfigDict(strict=True)
    when: dt.datetime
    tags: set[str] = set()


class Aliased(BaseModel):
    the_name: str = Field(alias="theName")


RESTORED: dict[str, tuple[Any, Any, Any]] = {
    "a dataclass": (Point, {"x": 1}, Point(2, 1)),
    "a strict model": (
        Strict,
        {"when": "2024-01-01T00:00:00Z"},
        Strict(when=dt.datetime(2024, 1, 2, tzinfo=dt.UTC), tags={"b", "a"}),
    ),
    "a model with aliases": (Aliased, {"theName": "a"}, Aliased(theName="b")),
    "a date": (dt.date, {"result": "2024-01-01"}, dt.date(2024, 1, 2)),
    "an enumeration": (Colour, {"result": "red"}, Colour.BLUE),
    "a list of models": (list[City], {"result": []}, [City(name="Rome")]),
    "a set": (set[int], {"result": [1]}, {1, 2}),
}


@pytest.mark.parametrize(("kind", "answer", "changed"), RESTORED.values(), ids=RESTORED)
async def test_a_changed_output_comes_back_from_the_journal_as_what_it_was(
    run: Runner, kind: Any, answer: dict[str, Any], changed: Any
) -> None:
    def change(_: RunContext[Any], output: Any) -> Any:
        assert output != changed
        return changed

    agent = Agent(Script(final(**answer)), output=kind, output_mode="tool", validators=[change])
    result = await run(agent, "go")
    again = await agent.replay(result.loop_id, result.journal)
    assert result.output == again.output == changed
    assert type(result.output) is type(again.output) is type(changed)


# Algebra


@given(
    st.lists(st.sampled_from(["right", "wrong", "text", "empty", "unknown", "tool"]), max_size=6),
    st.integers(0, 2),
)
async def test_an_output_comes_if_and_only_if_it_is_given_before_the_retries_are_used_up(
    turns: list[str], retries: int
) -> None:
    answers: dict[str, Answer] = {
        "right": final(name="Rome"),
        "wrong": final(),
        "text": "Rome",
        "empty": said(),
        "unknown": call("nope"),
        "tool": call("add", {"x": 1, "y": 1}),
    }
    agent = Agent(
        Script(*[answers[turn] for turn in turns], answers["right"]),
        output=City,
        output_mode="tool",
        tools=[add],
        retries=retries,
        limits=Limits(repeated_calls=None),
    )
    in_a_row, expected = 0, False
    for turn in [*turns, "right"]:
        if turn == "right":
            expected = True
            break
        in_a_row = 0 if turn == "tool" else in_a_row + 1
        if in_a_row > retries:
            break
    worlds: list[dict[str, Any]] = [{}, {"runtime": SplitDriver()}]
    for options in worlds:
        if expected:
            assert (await agent.run("go", **options)).output == City(name="Rome")
        else:
            with pytest.raises(UnexpectedModelBehavior):
                await agent.run("go", **options)

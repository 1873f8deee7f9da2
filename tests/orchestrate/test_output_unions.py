"""One of several outputs: each by its own tool, or all by one schema; text among them; how each is asked."""

from __future__ import annotations

from typing import Annotated, Any, Literal, assert_type

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from typing_extensions import TypeAliasType, TypedDict

from flyball import (
    Agent,
    GrammarOutput,
    MemoryJournal,
    ModelRetry,
    NativeOutput,
    PromptedOutput,
    RunContext,
    TextOutput,
    ToolOutput,
    tool,
)
from flyball.core.encodable import as_text
from flyball.core.errors import RuleFailed, SchemaInvalid, SchemaMalformed, UserError
from flyball.core.events import TurnSettled
from flyball.core.messages import Retry, Text, ToolResult
from flyball.core.spec import OutputMode
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.output_plan import plan_of
from flyball.orchestrate.outputs import as_output
from flyball.orchestrate.requesting import recorded_output
from flyball.orchestrate.system import System
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.models import Script
from tests.orchestrate.output_scenarios import River
from tests.orchestrate.scenarios import City, add, final, said

Places = TypeAliasType("Places", City | River)


class Twin(BaseModel):
    """Has the same fields as a city."""

    name: str
    people: int = 0


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]


class Person(TypedDict):
    age: int


class Named(BaseModel):
    """Says itself what it looks like."""

    name: str

    @classmethod
    def __json_schema__(cls) -> dict[str, Any]:
        return {"type": "object", "properties": {"name": {"enum": ["a", "b"]}}, "title": "Mine"}


def names(output: Any, mode: str = "tool") -> list[str]:
    return [one.name for one in Agent(Script(), output=output, output_mode=mode).spec.output.tools]


# In tool mode


NAMES: dict[str, tuple[Any, list[str]]] = {
    "one type": (City, ["final_result"]),
    "a union": (City | River, ["final_result_City", "final_result_River"]),
    "a list": ([City, River], ["final_result_City", "final_result_River"]),
    "a list of one": ([City], ["final_result"]),
    "a list with a union": ([City | River, Cat], [f"final_result_{one}" for one in ("City", "River", "Cat")]),
    "an alias": (Places, ["final_result_City", "final_result_River"]),
    "text beside one": (City | str, ["final_result"]),
    "text beside two": ([City, River, str], ["final_result_City", "final_result_River"]),
    "an option": (City | None, ["final_result"]),
    "an option of text": (str | None, ["final_result"]),
    "two or nothing": (
        City | River | None,
        ["final_result_City", "final_result_River", "final_result_None"],
    ),
    "plain types": (int | list[str], ["final_result_int", "final_result_list"]),
    "two of one name": (list[int] | list[str], ["final_result_list", "final_result_list_2"]),
    "a literal": (Literal["a", "b"], ["final_result"]),
    "a discriminated union": (Annotated[Cat | Dog, Field(discriminator="kind")], ["final_result"]),
    "a name of its own": (ToolOutput(City, name="city"), ["city"]),
    "names of their own": ([ToolOutput(City, name="city"), River], ["city", "final_result_River"]),
    "a union in a wrapper": (ToolOutput(City | River), ["final_result"]),  # pyright: ignore[reportArgumentType]
    "schemas": (
        [{"type": "object", "title": "Big Sky"}, City],
        ["final_result_Big_Sky", "final_result_City"],
    ),
}


@pytest.mark.parametrize(("output", "expected"), NAMES.values(), ids=NAMES)
def test_each_member_has_a_tool_with_a_name_that_one_would_expect(output: Any, expected: list[str]) -> None:
    assert names(output) == expected


@given(
    st.lists(
        st.sampled_from([City, River, Cat, Dog, int, list[int], list[str], bool])
        | st.sampled_from([ToolOutput(City), ToolOutput(River, name="final_result_City")]),
        min_size=1,
        max_size=6,
    )
)
def test_names_differ_and_are_the_same_each_time(members: list[Any]) -> None:
    if sum(getattr(one, "name", None) is not None for one in members) > 1:
        with pytest.raises(UserError, match="two outputs are called"):
            plan_of(as_output(members))
        return
    tools = [member.tool for member in plan_of(as_output(members)).members]
    assert len(set(tools)) == len(tools) == len(members)
    assert tools == [member.tool for member in plan_of(as_output(members)).members]
    assert all(len(tool) <= 64 for tool in tools)


ANSWERS: dict[str, tuple[Any, Answer, Any]] = {
    "the first": (City | River, call("final_result_City", {"name": "Rome"}), City(name="Rome")),
    "the second": (City | River, call("final_result_River", {"km": 2}), River(km=2)),
    "told by its tool alone": (City | Twin, call("final_result_Twin", {"name": "Rome"}), Twin(name="Rome")),
    "wrapped": (int | list[str], call("final_result_list", {"result": ["a"]}), ["a"]),
    "nothing": (City | River | None, call("final_result_None", {"result": None}), None),
    "a TypedDict": (City | Person, call("final_result_Person", {"age": 5}), {"age": 5}),
    "text": ([City, str], "Nowhere.", "Nowhere."),
    "text that looks like a number": ([int, str], "42", "42"),
    "text that is JSON of a member": ([City, str], '{"name": "Rome"}', City(name="Rome")),
    "text that is other JSON": ([City, str], '{"km": 2}', '{"km": 2}'),
    "a discriminated one": (
        Annotated[Cat | Dog, Field(discriminator="kind")],
        final(result={"kind": "dog"}),
        Dog(kind="dog"),
    ),
    "by a schema": (
        [{"type": "array", "title": "list"}, City],
        call("final_result_list", {"result": [1]}),
        [1],
    ),
}


@pytest.mark.parametrize(("output", "answer", "expected"), ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_is_read_by_the_tool_that_carried_it(
    run: Runner, output: Any, answer: Answer, expected: Any
) -> None:
    agent = Agent(Script(answer), output=output, output_mode="tool")
    result = await run(agent, "go")
    assert result.output == expected
    assert type(result.output) is type(expected)
    assert kinds_of(await result.events()) == ["Started", "ModelAnswered", "TurnSettled", "Ended"]


async def test_the_request_offers_a_tool_each_and_says_whether_text_will_do(run: Runner) -> None:
    script = Script(call("final_result_City", {"name": "Rome"}))
    await run(Agent(script, output=City | River, output_mode="tool", tools=[add]), "go")
    assert [one.name for one in script.last.tools] == ["add", "final_result_City", "final_result_River"]
    assert not script.last.allows_text
    script = Script("No.")
    await run(Agent(script, output=[City, River, str], output_mode="tool"), "go")
    assert script.last.allows_text


async def test_text_where_no_text_is_asked_for_names_all_tools(run: Runner) -> None:
    script = Script("Rome!", call("final_result_City", {"name": "Rome"}))
    await run(Agent(script, output=City | River, output_mode="tool"), "go")
    told = script.last.messages[-1].parts[0]
    assert isinstance(told, Retry)
    assert "final_result_City or final_result_River" in told.text


async def test_each_wrong_output_is_told_what_is_wrong_by_its_own_type(run: Runner) -> None:
    wrong = [call("final_result_City", {"km": 1}), call("final_result_River", {"name": "Po"})]
    script = Script(wrong, call("final_result_River", {"km": 1}))
    result = await run(Agent(script, output=City | River, output_mode="tool"), "go")
    first, second = script.last.messages[-1].tool_results
    assert "name: Field required" in first.text
    assert "km: Field required" in second.text
    assert result.output == River(km=1)


@pytest.mark.parametrize("strategy", ["early", "exhaustive"])
async def test_the_first_valid_one_counts_and_the_end_strategy_holds(run: Runner, strategy: Any) -> None:
    ran: set[int] = set()

    @tool
    async def work(n: int) -> int:
        ran.add(n)
        return n

    calls = [
        call("work", {"n": 1}),
        call("final_result_City", {}),
        call("final_result_River", {"km": 3}),
        call("final_result_City", {"name": "Rome"}),
    ]
    agent = Agent(Script(calls), output=City | River, output_mode="tool", tools=[work], end_strategy=strategy)
    result = await run(agent, "go")
    assert result.output == River(km=3)
    assert ran == (set() if strategy == "early" else {1})
    assert result.state.answer_tool == "final_result_River"


async def test_what_a_tool_ends_the_loop_with_is_the_first_member_that_it_can_be(run: Runner) -> None:
    @tool
    async def stop(km: float) -> ToolResult:
        return ToolResult("", "", {"km": km}, stop_loop=True)

    script = Script(call("stop", {"km": 2}))
    result = await run(Agent(script, output=[City, River], output_mode="tool", tools=[stop]), "go")
    assert result.output == River(km=2)
    script = Script(call("stop", {"km": 2}), call("final_result_City", {"name": "Rome"}))
    result = await run(Agent(script, output=[City, Cat], output_mode="tool", tools=[stop]), "go")
    assert result.output == City(name="Rome")
    assert "name: Field required" in str(script.last.messages[-1])


async def test_validators_see_whichever_it_is_and_may_make_another_of_it(run: Runner) -> None:
    def doubled(_: RunContext[Any], output: City | River | str) -> City | River | str:
        if isinstance(output, str):
            return output * 2
        return River(km=output.people) if isinstance(output, City) else City(name=f"{output.km}")

    for answer, expected in [
        ("ha", "haha"),
        (call("final_result_City", {"name": "Rome", "people": 3}), River(km=3)),
        (call("final_result_River", {"km": 3.5}), City(name="3.5")),
    ]:
        agent = Agent(Script(answer), output=[City, River, str], output_mode="tool", validators=[doubled])
        result = await run(agent, "go")
        assert result.output == expected


async def test_a_validator_asks_again_for_whichever_it_is(run: Runner) -> None:
    def shorter(_: RunContext[Any], output: City | River) -> City | River:
        if isinstance(output, River) and output.km > 1:
            raise ModelRetry("a shorter one")
        return output

    script = Script(call("final_result_River", {"km": 9}), call("final_result_City", {"name": "Rome"}))
    agent = Agent(script, output=City | River, output_mode="tool", validators=[shorter])
    assert (await run(agent, "go")).output == City(name="Rome")


async def test_an_answer_for_another_agents_outputs_is_no_answer_of_this_one() -> None:
    journal = MemoryJournal()
    script = Script(call("final_result_River", {"km": 9}))
    await Agent(script, output=City | River, output_mode="tool").run("go", journal=journal, loop_id="a")
    with pytest.raises(SchemaInvalid, match="recorded answer of loop 'a'"):
        await Agent(Script(), output=[City, Twin], output_mode="tool").replay("a", journal)


# In the other modes


@pytest.mark.parametrize("mode", ["native", "prompted", "grammar"])
async def test_elsewhere_one_schema_describes_them_all(run: Runner, mode: str) -> None:
    script = Script(as_text({"result": {"km": 2}}))
    agent = Agent(script, output=[City, River], output_mode=mode)
    result = await run(agent, "go")
    assert result.output == River(km=2)
    schema = agent.spec.output.schema
    assert schema is not None
    assert len(schema["properties"]["result"]["anyOf"]) == 2
    assert script.last.tools == ()


@pytest.mark.parametrize("mode", ["native", "prompted"])
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Nowhere.", "Nowhere."),
        ('{"result": "Nowhere."}', "Nowhere."),
        ("42", "42"),
        ('{"result": {"name": "Rome"}}', City(name="Rome")),
        ('Here:\n```json\n{"result": {"name": "Rome"}}\n```', City(name="Rome")),
    ],
)
async def test_text_may_be_an_answer_there_too(run: Runner, mode: str, answer: str, expected: Any) -> None:
    result = await run(Agent(Script(answer), output=City | str, output_mode=mode), "go")
    assert result.output == expected


async def test_a_json_object_that_is_none_of_them_is_asked_for_again(run: Runner) -> None:
    script = Script('{"km": 2}', '{"result": {"name": "Rome"}}')
    assert (await run(Agent(script, output=City | str, output_mode="native"), "go")).output.name == "Rome"


# How one is asked for


async def test_a_tool_output_says_how_its_tool_looks(run: Runner) -> None:
    marked = ToolOutput(City, name="city", description="Say which city.", strict=True)
    script = Script(call("city", {"name": "Rome"}))
    result = await run(Agent(script, output=marked), "go")
    (definition,) = script.last.tools
    assert (definition.name, definition.description, definition.strict) == ("city", "Say which city.", True)
    assert result.output == City(name="Rome")


@pytest.mark.parametrize(
    ("wrapper", "mode"),
    [
        (NativeOutput, OutputMode.NATIVE),
        (PromptedOutput, OutputMode.PROMPTED),
        (GrammarOutput, OutputMode.GRAMMAR),
    ],
    ids=["native", "prompted", "grammar"],
)
async def test_a_wrapper_of_the_whole_sets_the_mode(run: Runner, wrapper: Any, mode: OutputMode) -> None:
    marked = wrapper(City, name="place", description="A place.", strict=True)
    agent = Agent(Script('{"name": "Rome"}'), output=marked)
    output = agent.spec.output
    assert (output.mode, output.name, output.description, output.strict) == (mode, "place", "A place.", True)
    assert (await run(agent, "go")).output == City(name="Rome")
    both = Agent(Script('{"result": {"km": 1}}'), output=wrapper([City, River]))
    assert (await run(both, "go")).output == River(km=1)


async def test_a_schema_in_a_wrapper(run: Runner) -> None:
    schema: Any = {"type": "object", "required": ["a"]}
    result = await run(Agent(Script(call("a", {"a": 1})), output=ToolOutput(schema, name="a")), "go")
    assert result.output == {"a": 1}
    result = await run(Agent(Script('{"a": 1}'), output=NativeOutput(schema)), "go")
    assert result.output == {"a": 1}


async def test_a_types_own_schema_is_used(run: Runner) -> None:
    script = Script(final(name="A"))
    result = await run(Agent(script, output=Named, output_mode="tool"), "go")
    assert script.last.tools[0].parameters == Named.__json_schema__()
    assert result.output == Named(name="A"), "pydantic takes it, so nothing is put right"


class Wrong(BaseModel):
    @classmethod
    def __json_schema__(cls) -> Any:
        return ["no schema"]


class Failing(BaseModel):
    @classmethod
    def __json_schema__(cls) -> Any:
        raise KeyError("no schema")


@pytest.mark.parametrize("kind", [Wrong, Failing, list[Failing]])
def test_a_type_whose_own_schema_is_none_is_refused(kind: Any) -> None:
    with pytest.raises(SchemaMalformed, match=r"Wrong|Failing"):
        _ = Agent(Script(), output=kind).spec


class Tree(BaseModel):
    """Holds itself."""

    name: str
    children: list[Tree] = []


@pytest.mark.parametrize("mode", ["tool", "native"])
async def test_a_type_that_holds_itself_is_not_wrapped(run: Runner, mode: str) -> None:
    answer = {"name": "a", "children": [{"name": "b"}]}
    script = Script(final(**answer) if mode == "tool" else as_text(answer))
    agent = Agent(script, output=Tree, output_mode=mode)
    assert agent.spec.output.outer_key is None
    result = await run(agent, "go")
    assert result.output == Tree(name="a", children=[Tree(name="b")])
    if mode == "tool":
        assert script.last.tools[0].parameters["type"] == "object"


def loud(text: str) -> str:
    return text.upper()


async def counted(ctx: RunContext[int], text: str) -> City:
    if not text.isalpha():
        raise ModelRetry("letters only")
    return City(name=text, people=ctx.deps)


async def test_a_function_makes_the_output_of_the_text_and_is_not_asked_again(run: Runner) -> None:
    script = Script("R0me", "Rome")
    agent = Agent(script, output=TextOutput(counted))
    result = await run(agent, "go", deps=7)
    assert result.output == City(name="Rome", people=7)
    settled = [event for event in await result.events() if isinstance(event, TurnSettled)]
    assert [event.accepted for event in settled] == [False, True]
    assert settled[1].output == {"name": "Rome", "people": 7}
    assert script.last.messages[-1].parts == (Retry("letters only"),)


async def test_a_function_for_the_text_beside_other_outputs(run: Runner) -> None:
    for answer, expected in [("yes", "YES"), (final(name="Rome"), City(name="Rome"))]:
        agent = Agent(Script(answer), output=[City, TextOutput(loud)])
        assert agent.spec.output.mode is OutputMode.TOOL
        assert (await run(agent, "go")).output == expected


async def test_a_function_that_breaks_fails_the_run(run: Runner) -> None:
    def breaks(text: str) -> int:
        return 1 // len(text[:0])

    error = await run.failing(RuleFailed, Agent(Script("a"), output=TextOutput(breaks)), "go")
    assert "the output function 'breaks' failed: ZeroDivisionError" in str(error)


async def test_what_a_function_without_a_type_gives_is_plain_when_it_is_read_again(run: Runner) -> None:
    def parts(text):  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType]
        return text.split()  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]

    assert (await run(Agent(Script("a b"), output=TextOutput(parts)), "go")).output == ["a", "b"]  # pyright: ignore[reportUnknownArgumentType]


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no type": ({"output": []}, "names no type"),
    "two modes": ({"output": ToolOutput(City), "output_mode": "native"}, "asks for 'tool'"),
    "a wrapper in a list": ({"output": [NativeOutput(City), River]}, "NativeOutput stands alone"),
    "a wrapper in a wrapper": ({"output": NativeOutput(ToolOutput(City))}, "no other wrapper"),  # pyright: ignore[reportArgumentType]
    "text in a wrapper": ({"output": NativeOutput(str)}, "plain text"),
    "one name twice": (
        {"output": [ToolOutput(City, name="a"), ToolOutput(River, name="a")]},
        "two outputs are called 'a'",
    ),
    "text twice": ({"output": [str, TextOutput(loud)]}, "leave str or it out"),
    "two functions": ({"output": [TextOutput(loud), TextOutput(loud)]}, "one function"),
    "no function": ({"output": TextOutput(3)}, "one function"),  # pyright: ignore[reportArgumentType]
    "text mode": ({"output": City | River, "output_mode": "text"}, "gives a str"),
    "a function in JSON": ({"output": TextOutput(loud), "output_mode": "native"}, "made of text"),
    "a function beside JSON": ({"output": [City, TextOutput(loud)], "output_mode": "native"}, "mode 'tool'"),
    "a schema beside a type": (
        {"output": [City, {"type": "object"}], "output_mode": "native"},
        "in tool mode only",
    ),
    "a name that a tool has": ({"output": ToolOutput(City, name="add"), "tools": [add]}, "'add' is taken"),
}


@pytest.mark.parametrize(("options", "why"), REFUSED.values(), ids=REFUSED)
def test_outputs_that_cannot_be_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UserError, match=why):
        _ = Agent(Script(), **options).spec


# Recorded, and read by somebody without the types


async def test_the_system_reads_recorded_unions_by_their_schemas() -> None:
    journal = MemoryJournal()
    script = Script(call("final_result_list", {"result": ["a"]}))
    typed = Agent(script, output=int | list[str] | str, output_mode="tool")
    await typed.run("go", journal=journal, loop_id="a")
    response = await System(Script(), journal=journal).replay("a")
    assert response.error is None
    assert response.structured_output == ["a"]
    again = recorded_output(typed.spec.output)
    assert names(again) == names(int | list[str] | str)


async def test_text_beside_calls_is_no_answer(run: Runner) -> None:
    answer = said(Text("Let me add. "), call("add", {"x": 1, "y": 1}))
    script = Script(answer, "2")
    agent = Agent(script, output=[City, str], output_mode="tool", tools=[add])
    assert (await run(agent, "go")).output == "2"


def test_types_are_known_to_type_checkers() -> None:
    assert_type(Agent(Script(), output=City), Agent[Any, City])
    assert_type(Agent(Script(), output=[City, River]), Agent[Any, City | River])
    assert_type(Agent(Script(), output=[City, str]), Agent[Any, City | str])
    assert_type(Agent(Script(), output=ToolOutput(City, name="a")), Agent[Any, City])
    tools = [ToolOutput(City), ToolOutput(River)]
    assert_type(Agent(Script(), output=tools), Agent[Any, City | River])
    both = NativeOutput([City, River])
    assert_type(Agent(Script(), output=both), Agent[Any, City | River])
    assert_type(Agent(Script(), output=TextOutput(loud)), Agent[Any, str])
    assert_type(Agent(Script(), output=TextOutput(counted)), Agent[Any, City])

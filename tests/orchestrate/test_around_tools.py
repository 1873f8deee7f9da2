"""What an agent puts around its tools: preparation, validators, truncation, time-outs, toolsets."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from flyball import (
    Agent,
    DefaultToolTimeout,
    ModelRetry,
    RunContext,
    ToolChoice,
    ToolDefinition,
    ToolOutputTruncation,
    ToolResultValidator,
    Toolset,
    ToolsPrepare,
    tool,
    truncate_tool_output,
)
from flyball.core.errors import FlyballError, GuardrailError, RuleFailed, ToolRetriesExceeded, UserError
from flyball.core.events import ToolReturned, TurnPrepared
from flyball.core.messages import Image, ResultKind, Text, ToolResult
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.machine import owed
from flyball.orchestrate.replay import steps
from flyball.orchestrate.requests import request_of, request_parts
from flyball.validate.guardrails import MaxTurns
from tests.orchestrate.conftest import Runner, kinds_of
from tests.orchestrate.models import NeverAsked, Script
from tests.orchestrate.scenarios import City, add, final, pay, step
from tests.orchestrate.where import Where

ADD = call("add", {"x": 1, "y": 2})


def results_of(result: Any) -> list[ToolResult]:
    return [found for message in result.messages for found in message.tool_results]


def described(script: Script) -> list[list[tuple[str, str]]]:
    """The tools that the model was told of, in each request."""
    return [[(one.name, one.description) for one in request.tools] for request in script.requests]


# Preparation


def later(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
    """Not in the first turn; then with who asks."""
    return None if ctx.run_step == 1 else replace(definition, description=f"for {ctx.metadata.get('who')}")


async def later_too(ctx: RunContext[Any], definition: ToolDefinition) -> ToolDefinition | None:
    await asyncio.sleep(0)
    return later(ctx, definition)


@pytest.mark.parametrize("prepare", [later, later_too], ids=["sync", "async"])
async def test_a_tools_own_preparation(run: Runner, prepare: Callable[..., Any]) -> None:
    @tool(prepare=prepare)
    async def send(x: int) -> str:
        return f"sent {x}"

    script = Script(ADD, call("send", {"x": 1}), "done")
    result = await run(Agent(script, tools=[add, send]), "go", metadata={"who": "ann"})
    told = [("add", add.definition.description), ("send", "for ann")]
    assert described(script) == [told[:1], told, told]
    prepared = [event for event in await result.events() if isinstance(event, TurnPrepared)]
    assert [(event.tools, [one.name for one in event.definitions]) for event in prepared] == [
        (("add",), []),
        (("add", "send"), ["send"]),
        (("add", "send"), ["send"]),
    ]
    assert results_of(result)[1].content == "sent 1"


async def test_a_tool_that_is_left_out_cannot_be_called(run: Runner) -> None:
    @tool(prepare=later)
    async def send() -> str: ...

    script = Script(call("send"), "done")
    result = await run(Agent(script, tools=[add, send]), "go")
    assert results_of(result)[0].text == "The tool 'send' is not available now. The tools are: add."


async def test_the_agents_preparation_comes_after_the_tools_own(run: Runner) -> None:
    @tool(prepare=later)
    async def send() -> str: ...

    seen: dict[int, list[tuple[str, str]]] = {}

    @ToolsPrepare
    async def only_send(ctx: RunContext[Any], definitions: list[ToolDefinition]) -> list[ToolDefinition]:
        seen[ctx.run_step] = [(one.name, one.description) for one in definitions]
        assert ctx.messages[0].text == "go", "it may look at what was said"
        return [one for one in reversed(definitions) if one.name != "add" or ctx.run_step == 1]

    @ToolsPrepare
    def shout(_: RunContext[Any], definitions: list[ToolDefinition]) -> Any:
        return (replace(one, description=one.description.upper()) for one in definitions)

    script = Script(ADD, "done")
    agent = Agent(script, tools=[add, send, step], features=[only_send, shout])
    assert agent.spec.prepares
    assert agent.spec.checks == ("only_send", "shout")
    await run(agent, "go")
    assert [name for name, _ in seen[1]] == ["add", "step"]
    assert seen[2][1] == ("send", "for None")
    first, second = described(script)
    assert first == [(one.name, one.definition.description.upper()) for one in (add, step)]
    assert second == [("send", "FOR NONE"), ("step", step.definition.description.upper())]


async def test_definitions_may_be_changed_in_place_and_the_spec_stays(run: Runner) -> None:
    @ToolsPrepare
    def narrow(_: RunContext[Any], definitions: list[ToolDefinition]) -> list[ToolDefinition]:
        definitions[0].parameters["properties"]["x"]["maximum"] = 9
        return definitions

    script = Script(ADD, "done")
    agent = Agent(script, tools=[add], features=[narrow])
    result = await run(agent, "go")
    assert [one.tools[0].parameters["properties"]["x"]["maximum"] for one in script.requests] == [9, 9]
    assert "maximum" not in agent.spec.tools["add"].definition.parameters["properties"]["x"]
    assert result.state.spec == agent.spec
    # What was sent follows from the journal.
    requests = [
        request_of(state, owed(state)[0], request_parts(state.spec))  # pyright: ignore[reportArgumentType]
        for _, state in steps(await result.events())
        if state.at == "infer"
    ]
    assert [one.tools for one in requests] == [one.tools for one in script.requests]


async def test_the_outputs_tool_is_nobodys_to_prepare(run: Runner) -> None:
    script = Script(final(name="Rome"))
    agent = Agent(script, output=City, tools=[add], features=[ToolsPrepare(gives([]), "nothing")])
    assert (await run(agent, "go")).output == City(name="Rome")
    assert [one.name for one in script.requests[0].tools] == ["final_result"]


def gives(value: Any) -> Callable[..., Any]:
    def give(_: Any, __: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return give


OTHER = ToolDefinition("other", {"type": "object"})
MISTAKES: dict[str, tuple[Any, type[FlyballError], str]] = {
    "another tool": (OTHER, UserError, "gave the tool 'other', which is not on offer"),
    "something else": ("add", UserError, "gave a str, not a ToolDefinition"),
    "an error": (KeyError("no"), RuleFailed, "failed: KeyError: 'no'"),
    "no json": (
        ToolDefinition("send", {"type": object}),
        UserError,
        "the definition of the tool 'send' cannot be recorded",
    ),
}


@pytest.mark.parametrize(("given", "kind", "told"), MISTAKES.values(), ids=MISTAKES)
async def test_a_preparation_that_gives_what_cannot_be_ends_the_run(
    run: Runner, given: Any, kind: type[FlyballError], told: str
) -> None:
    @tool(prepare=gives(given))
    async def send() -> str: ...

    error = await run.failing(kind, Agent(NeverAsked(), tools=[send]), "go")
    assert told in error.message

    @tool(name="send")
    async def plain() -> str: ...

    many = given if isinstance(given, Exception) else [given]
    feature = ToolsPrepare(gives(many), "mine")
    error = await run.failing(kind, Agent(NeverAsked(), tools=[plain], features=[feature]), "go")
    assert told in error.message


async def test_replay_prepares_nothing_again(run: Runner) -> None:
    asked: set[int] = set()

    @ToolsPrepare
    def counted(ctx: RunContext[Any], definitions: list[ToolDefinition]) -> list[ToolDefinition]:
        asked.add(ctx.run_step)
        return definitions

    agent = Agent(Script(ADD, "done"), tools=[add], features=[counted])
    result = await run(agent, "go")
    asked.clear()
    await agent.replay(result.loop_id, result.journal)
    assert asked == set()


async def test_what_is_not_used_is_not_owed(run: Runner) -> None:
    @ToolResultValidator
    def look(_: RunContext[Any], __: Any) -> None: ...

    features = [look, ToolOutputTruncation(), DefaultToolTimeout(30)]
    result = await run(Agent(Script(ADD, "done"), tools=[add], features=features), "go")
    assert kinds_of(await result.events()) == [
        "Started",
        "ModelAnswered",
        "ToolReturned",
        "ModelAnswered",
        "Ended",
    ]
    plain = Agent(Script("done"), tools=[add])
    assert plain.bindings().tools["add"] is add, "there is nothing around a tool that nothing was put around"


# Choice

ONCE = ToolChoice("required", auto_reset=True)
CHOICES: dict[str, tuple[ToolChoice, list[ToolChoice | None]]] = {
    "auto": (ToolChoice(), [ToolChoice(), ToolChoice()]),
    "none": (ToolChoice("none"), [ToolChoice("none")] * 2),
    "required": (ToolChoice("required"), [ToolChoice("required")] * 2),
    "required once": (ONCE, [ONCE, None]),
    "one tool": (ToolChoice(tool_name="add"), [ToolChoice(tool_name="add")] * 2),
}


@pytest.mark.parametrize(("choice", "sent"), CHOICES.values(), ids=CHOICES)
async def test_the_choice_is_sent_until_it_is_reset(
    run: Runner, choice: ToolChoice, sent: list[ToolChoice | None]
) -> None:
    script = Script(ADD, "done")
    await run(Agent(script, tools=[add], tool_choice=choice), "go")
    assert [request.tool_choice for request in script.requests] == sent


@pytest.mark.parametrize("choice", [ToolChoice(tool_name="send"), ToolChoice("required")], ids=["one", "any"])
async def test_a_choice_of_what_is_not_on_offer_leaves_the_model_free(
    run: Runner, choice: ToolChoice
) -> None:
    @ToolsPrepare
    def nothing_at_first(ctx: RunContext[Any], definitions: list[ToolDefinition]) -> Any:
        return definitions if ctx.run_step > 1 else ()

    @tool
    async def send() -> str:
        return "sent"

    script = Script(call("add"), call("send"), "done")
    await run(Agent(script, tools=[send], tool_choice=choice, features=[nothing_at_first]), "go")
    assert [request.tool_choice for request in script.requests] == [None, choice, choice]


def test_a_choice_of_a_tool_that_there_is_not_is_refused() -> None:
    with pytest.raises(UserError, match=r"tool_choice= names the tool 'ad', which there is not.*: add"):
        _ = Agent(NeverAsked(), tools=[add], tool_choice=ToolChoice(tool_name="ad")).spec
    assert Agent(
        NeverAsked(), output=City, output_mode="tool", tool_choice=ToolChoice(tool_name="final_result")
    ).spec


# Validators


def positive(ctx: RunContext[Any], result: Any) -> None:
    if result < 0:
        raise ModelRetry(f"{ctx.tool_name} gave {result} to {ctx.deps}, try {ctx.retry + 1}")


@tool(validators=[positive], retries=2)
async def minus(x: int) -> int:
    return -x


@pytest.mark.parametrize("whose", ["the tool's", "the agent's"])
async def test_a_refused_result_is_a_retry_that_is_counted_by_tool(run: Runner, whose: str) -> None:
    own = whose == "the tool's"

    @tool(name="minus", retries=2)
    async def bare(x: int) -> int:
        return -x

    calls = [call("minus", {"x": x}) for x in (2, 1, -1, 3)]
    script = Script(*calls, "done")
    features = [] if own else [ToolResultValidator(positive)]
    agent = Agent(script, tools=[minus if own else bare], features=features)
    result = await run(agent, "go", deps="ann")
    assert [(one.status, one.content) for one in results_of(result)] == [
        (ResultKind.RETRY, "minus gave -2 to ann, try 1"),
        (ResultKind.RETRY, "minus gave -1 to ann, try 2"),
        (ResultKind.RETURN, 1),
        (ResultKind.RETRY, "minus gave -3 to ann, try 1"),
    ]
    assert agent.spec.checks == (() if own else ("positive",))


async def test_too_many_refused_results_in_a_row_end_the_run(run: Runner) -> None:
    calls = [call("minus", {"x": x}) for x in (1, 2, 3)]
    error = await run.failing(ToolRetriesExceeded, Agent(Script(*calls), tools=[minus]), "go", deps="ann")
    assert "minus gave -3 to ann" in error.message


async def test_validators_run_once_and_replay_runs_none(orderly: Where) -> None:
    looked: list[str] = []

    @ToolResultValidator
    async def note(ctx: RunContext[Any], result: Any) -> str:
        looked.append(ctx.tool_name)
        return f"{result}!"

    @tool(validators=[lambda _, result: f"{result}?"])
    async def ask() -> str:
        return "how"

    agent = Agent(Script([call("ask"), ADD], "done"), tools=[ask, add], features=[note])
    result = await agent.run("go", **orderly.options({}))
    assert [one.content for one in results_of(result)] == ["how?!", "3!"]
    assert sorted(looked) == ["add", "ask"]
    await agent.replay(result.loop_id, result.journal)
    assert len(looked) == 2


async def test_a_loop_with_validators_is_not_resumed_without_them() -> None:
    journal = MemoryJournal()
    agent = Agent(Script(ADD, "done"), tools=[add], features=[ToolResultValidator(gives(None), "look")])
    async with agent.iter("go", journal=journal, loop_id="l") as steps_of_it:
        await anext(aiter(steps_of_it))
    with pytest.raises(UserError, match="'look'"):
        await agent.clone(features=[]).resume("l", journal)
    assert (await agent.resume("l", journal)).output == "done"


# Truncation


async def test_results_are_cut_before_they_are_recorded_and_after_they_were_looked_at(run: Runner) -> None:
    seen: set[int] = set()

    @ToolResultValidator
    def measure(_: RunContext[Any], result: Any) -> None:
        seen.add(len(result))

    @tool
    async def dump(kind: str) -> Any:
        match kind:
            case "text":
                return "line\n" * 500
            case "json":
                return {"rows": list(range(400))}
            case "picture":
                return ["é" * 500, Image("https://example.com/a.png")]
            case _:
                raise ValueError("e" * 1000)

    kinds = ["text", "json", "picture", "error"]
    script = Script([call("dump", {"kind": kind}) for kind in kinds], "done")
    features = [ToolOutputTruncation(max_tokens=50), measure]
    result = await run(Agent(script, tools=[dump], features=features), "go")
    text, rows, picture, error = results_of(result)
    assert text.content == truncate_tool_output("line\n" * 500, 50)
    assert rows.content == truncate_tool_output('{"rows":[' + ",".join(map(str, range(400))) + "]}", 50)
    assert (picture.content, len(picture.images)) == (truncate_tool_output("é" * 500, 50), 1)
    assert error.error == f"ValueError: {'e' * 1000}"
    assert seen == {2500, 1, 2}
    returned = [event.result for event in await result.events() if isinstance(event, ToolReturned)]
    assert {one.call_id: one for one in returned} == {one.call_id: one for one in results_of(result)}
    assert script.last.messages[-1].tool_results == tuple(results_of(result))


# Time-outs


async def test_a_default_time_out_is_for_tools_without_their_own(run: Runner) -> None:
    @tool
    async def hangs() -> None:
        await asyncio.Event().wait()

    @tool(timeout=30)
    async def patient() -> str:
        await asyncio.sleep(0)
        return "done"

    agent = Agent(
        Script([call("hangs"), call("patient")], "done"),
        tools=[hangs, patient],
        features=[DefaultToolTimeout(0.01), DefaultToolTimeout(5)],
    )
    assert {name: spec.timeout for name, spec in agent.spec.tools.items()} == {"hangs": 0.01, "patient": 30}
    result = await run(agent, "go")
    first, second = results_of(result)
    assert first.error == "hangs took longer than its time-out of 0.01 seconds"
    assert first.metadata == {"code": "TOOL_TIMEOUT"}
    assert second.content == "done"
    assert hangs.spec.timeout is None, "the tool itself stays as it is"


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "5"])
def test_a_default_time_out_that_cannot_be_is_refused(seconds: Any) -> None:
    with pytest.raises(UserError, match="DefaultToolTimeout takes seconds greater than 0"):
        DefaultToolTimeout(seconds)


# Toolsets


async def test_what_a_toolset_brings_joins_the_agents_own(run: Runner) -> None:
    def about(ctx: RunContext[Any]) -> str:
        return f"You count for {ctx.deps}."

    counting = Toolset("counting", [add, minus], instructions=["Count well.", about], features=[MaxTurns(1)])
    script = Script(ADD, "done")
    agent = Agent(script, tools=[counting.prefixed("n"), step], instructions="Be brief.")
    assert agent.spec.instructions == "Be brief.\n\nCount well."
    assert agent.spec.checks == ("max_turns",)
    error = await run.failing(GuardrailError, agent, "go", deps="ann")
    assert "1 are allowed" in error.message
    told = [Text("Be brief.\n\nCount well."), Text("You count for ann.")]
    assert script.requests[0].messages[0].parts == tuple(told)


async def test_a_run_without_a_toolsets_tools_has_not_what_it_brings(run: Runner) -> None:
    counting = Toolset("counting", [add], instructions="Count well.", features=[MaxTurns(1)])
    script = Script(call("pay", {"amount": 1}), "done")

    def approve(_: RunContext[Any], __: Any) -> bool:
        return True

    agent = Agent(script, tools=[counting, pay], approval=approve)
    assert (await run(agent, "go", tools=["pay"])).output == "done"
    assert script.last.messages[0].text == "go"
    cloned = agent.clone(tools=[pay])
    assert (cloned.spec.instructions, cloned.spec.checks) == ("", ())


def test_tools_that_are_registered_later_leave_what_a_toolset_brings() -> None:
    agent = Agent(NeverAsked(), tools=[Toolset("counting", [add], instructions="Count well.")])

    @agent.tool
    async def more() -> str: ...

    assert agent.spec.instructions == "Count well."
    assert list(agent.spec.tools) == ["add", "more"]


def test_the_state_of_a_loop_has_nothing_of_it() -> None:
    """What is put around tools is code: a spec says who has a say, and a tool's time-out."""
    agent = Agent(NeverAsked(), tools=[add], features=[ToolOutputTruncation(5), DefaultToolTimeout(3)])
    assert agent.spec.checks == ("tool_output_truncation",)
    assert not agent.spec.prepares

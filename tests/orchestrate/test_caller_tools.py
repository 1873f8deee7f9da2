"""Tools that the caller runs: the response says which calls are wanted, and an answer goes on from there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from flyball import (
    Agent,
    CallDeferred,
    DeferredToolResult,
    Limits,
    LocalRuntime,
    MemoryJournal,
    RunContext,
    SystemRequest,
    ToolCallFilterResult,
    ToolCallRejection,
    ToolChoice,
    ToolOutputTruncation,
    tool,
)
from flyball.core.deferred import DeferredToolRequest
from flyball.core.errors import Deferred
from flyball.core.events import ToolReturned
from flyball.core.history import check_history
from flyball.core.messages import FinishReason, Text, ToolCall, ToolResult, user
from flyball.core.tools import ToolDefinition, ToolKind, ToolSpec
from flyball.inference.answers import tool_call as call
from flyball.inference.scripted import ScriptedEngine
from flyball.inference.stream import TextDelta
from flyball.orchestrate.contracts import Mode, OutputContract, SystemResponse
from flyball.orchestrate.machine import fold
from flyball.orchestrate.projections import normal_form
from flyball.orchestrate.system import System
from flyball.tool.execute import execute
from flyball.tool.outside_tool import OutsideTool
from tests.orchestrate.models import Script
from tests.orchestrate.scenarios import said
from tests.orchestrate.where import Where

PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolDefinition("weather", PLACE, "The weather in a city.")
CLOCK = ToolDefinition("clock", {"type": "object", "properties": {}})
BOTH = [call("weather", {"city": "Rome"}), call("look"), call("weather", {"city": "Oslo"})]


@tool
async def look() -> str:
    """Look out."""
    return "grey"


@tool
async def later() -> str:
    """Later."""
    raise CallDeferred


def asking(**fields: Any) -> SystemRequest:
    fields.setdefault("caller_tools", (WEATHER, CLOCK))
    return SystemRequest(messages=(user("Rain?"),), **fields)


def system(where: Where, *answers: Any, **options: Any) -> System:
    options.setdefault("tools", [look, later])
    agent: Agent[Any, Any] = Agent(Script(*answers), **options)
    given: dict[str, Any] = {"journal": where.journal} if where.driver is None else {"runtime": where.driver}
    return System(agent, **given)


def results(wanted: Sequence[DeferredToolRequest], content: Any = "rain") -> list[DeferredToolResult]:
    return [DeferredToolResult(one.tool_name, one.tool_call_id, content) for one in wanted]


async def served(made: System, *, streamed: bool, **fields: Any) -> SystemResponse:
    if not streamed:
        return await made.handle(asking(**fields))
    *_, last = [piece async for piece in made.stream(asking(**fields))]
    assert isinstance(last, SystemResponse)
    return last


@pytest.mark.parametrize("streamed", [False, True])
async def test_the_response_says_what_is_wanted_and_an_answer_goes_on(where: Where, streamed: bool) -> None:
    asked = said(Text("Let me see."), *BOTH, reason=FinishReason.TOOL_CALL)
    made = system(where, asked, "Rain everywhere.")
    response = await served(made, streamed=streamed)
    assert response.ok
    assert (response.content, response.finish_reason) == ("Let me see.", FinishReason.TOOL_CALL)
    assert [(one.tool_name, one.args_json) for one in response.calls_wanted] == [
        ("weather", '{"city":"Rome"}'),
        ("weather", '{"city":"Oslo"}'),
    ]
    assert [one.name for one in response.tool_calls_made] == ["look"]
    assert SystemResponse.from_json(response.to_json()) == response
    rome, oslo = response.calls_wanted
    events = await where.journal.read(response.loop_id)
    assert [one.result.name for one in events if isinstance(one, ToolReturned)] == ["look"], (
        "none is run here"
    )

    half = await made.answer(response.loop_id, results([oslo]))
    assert (half.ok, half.calls_wanted, half.content) == (True, (rome,), "Let me see.")
    if streamed:
        *pieces, last = [
            one async for one in made.answer_stream(response.loop_id, results([rome], {"mm": 3}))
        ]
        assert "".join([one.text for one in pieces if isinstance(one, TextDelta)]) == "Rain everywhere."
        assert isinstance(last, SystemResponse)
    else:
        last = await made.answer(response.loop_id, results([rome], {"mm": 3}))
    assert (last.ok, last.content, last.calls_wanted) == (True, "Rain everywhere.", ())
    assert last.loop_id == response.loop_id
    state = fold(await where.journal.read(response.loop_id))
    check_history(state.history)
    assert [one.text for one in state.history[-2].tool_results] == ['{"mm":3}', "grey", "rain"]
    assert last.usage.tool_calls == 3
    again = await made.answer(response.loop_id, results([rome], {"mm": 3}))
    assert again == last, "what was taken is not taken again"


async def test_it_is_the_same_run_wherever_it_is_driven(where: Where) -> None:
    forms: list[Any] = []
    for place in (Where.here(MemoryJournal()), where):
        made = system(place, BOTH, "Rain.")
        first = await made.handle(asking())
        last = await made.answer(first.loop_id, results(first.calls_wanted))
        forms.append(normal_form(await place.journal.read(last.loop_id)))
    assert forms[0] == forms[1]


async def test_a_runtime_in_this_process(where: Where) -> None:
    async with LocalRuntime(where.journal if where.driver is None else None) as runtime:
        made = System(Agent(Script(BOTH, "Rain."), tools=[look]), runtime=runtime)
        first = await made.handle(asking())
        assert first.ok
        last = await made.answer(first.loop_id, results(first.calls_wanted))
        assert (last.content, last.ok) == ("Rain.", True)


async def test_another_system_over_the_same_journal_answers() -> None:
    journal = MemoryJournal()
    first = await System(Agent(Script(BOTH), tools=[look]), journal=journal).handle(asking())
    other = System(Agent(Script(BOTH, "Rain."), tools=[look]), journal=journal)
    waits = await other.resume(first.loop_id)
    assert (waits.ok, waits.calls_wanted) == (True, first.calls_wanted)
    assert await other.replay(first.loop_id) == first, "it stands where it stood"
    last = await other.answer(first.loop_id, results(first.calls_wanted))
    assert (await other.replay(first.loop_id)) == last
    forked = await other.fork(first.loop_id, 1)
    assert (await other.resume(forked)).content == "Rain."
    assert fold(await journal.read(forked)).spec.tools["weather"].outside


async def test_a_structured_answer_may_need_the_callers_tools(where: Where) -> None:
    contract = OutputContract(
        {"type": "object", "properties": {"mm": {"type": "integer"}}, "required": ["mm"]}
    )
    made = system(where, call("weather", {"city": "Rome"}), '{"mm": 3}', output_mode="native")
    first = await made.handle(asking(mode=Mode.STRUCTURED, output=contract))
    assert (first.ok, first.structured_output, len(first.calls_wanted)) == (True, None, 1)
    last = await made.answer(first.loop_id, results(first.calls_wanted))
    assert (last.ok, last.structured_output) == (True, {"mm": 3})


async def test_a_run_that_waits_for_others_too_is_deferred_as_ever(where: Where) -> None:
    made = system(where, [call("later"), call("weather", {"city": "Rome"})], "Rain.")
    response = await made.handle(asking())
    assert response.error is not None
    assert response.error.code == Deferred.code
    assert [one.tool_name for one in response.calls_wanted] == ["later", "weather"]
    last = await made.answer(response.loop_id, results(response.calls_wanted))
    assert last.content == "Rain."


async def test_a_run_under_which_another_waits_has_not_ended_well() -> None:
    below = Agent(Script(call("later"), "ok"), tools=[later], name="below")
    made = System(
        Agent(Script(call("below", {"prompt": "go"}), "done"), tools=[below.as_tool()]),
        journal=MemoryJournal(),
    )
    response = await made.handle(SystemRequest(messages=(user("go"),)))
    assert response.error is not None
    assert response.error.code == Deferred.code
    (wanted,) = response.calls_wanted
    assert wanted.loop_id
    last = await made.answer(response.loop_id, results([wanted]))
    assert (last.ok, last.content) == (True, "done")


async def test_filters_look_at_the_callers_tools(where: Where) -> None:
    def only_rome(_: RunContext[Any], calls: Sequence[ToolCall]) -> ToolCallFilterResult:
        kept = [one for one in calls if "Oslo" not in one.args_json]
        changed = [
            replace(one, args_json='{"city":"Roma"}') if one.name == "weather" else one for one in kept
        ]
        gone = [ToolCallRejection(one, "too far") for one in calls if one not in kept]
        return ToolCallFilterResult(tuple(changed), tuple(gone))

    made = system(where, BOTH, "Rain.", tool_filters=[only_rome])
    first = await made.handle(asking())
    assert [one.args_json for one in first.calls_wanted] == ['{"city":"Roma"}']
    last = await made.answer(first.loop_id, results(first.calls_wanted))
    assert last.content == "Rain."


async def test_its_results_are_cut_like_any_others() -> None:
    journal = MemoryJournal()
    made = System(Agent(Script(BOTH[0], "Rain."), features=[ToolOutputTruncation(20)]), journal=journal)
    first = await made.handle(asking())
    last = await made.answer(first.loop_id, results(first.calls_wanted, "line\n" * 500))
    (told,) = fold(await journal.read(last.loop_id)).history[2].tool_results
    assert len(told.text) < 200


async def test_tools_that_are_prepared_leave_the_callers_alone(where: Where) -> None:
    @tool(available=lambda: False)
    async def broken() -> str:
        return "never"

    made = system(where, BOTH[0], "Rain.", tools=[broken])
    first = await made.handle(asking())
    assert (first.ok, len(first.calls_wanted)) == (True, 1)


async def test_the_choice_is_the_requests() -> None:
    engine = ScriptedEngine(BOTH[0], "Rain.")
    made = System(engine, journal=MemoryJournal())
    choice = ToolChoice("function", "weather", auto_reset=True)
    first = await made.handle(asking(tool_choice=choice))
    assert engine.calls[0].tool_choice == choice
    assert [tool.name for tool in engine.calls[0].tools] == ["weather", "clock"]
    await made.answer(first.loop_id, results(first.calls_wanted))
    assert engine.calls[1].tool_choice is None


# What is refused


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"caller_tools": (ToolDefinition("no good", PLACE),)}, "caller_tools[0].name"),
        ({"caller_tools": (ToolDefinition("", PLACE),)}, "caller_tools[0].name"),
        ({"caller_tools": (WEATHER, WEATHER)}, "caller_tools[1].name"),
        ({"caller_tools": (CLOCK, ToolDefinition("look", PLACE))}, "caller_tools[1].name"),
        ({"caller_tools": (ToolDefinition("a", {"type": "array"}),)}, "caller_tools[0].parameters"),
        (
            {"caller_tools": (ToolDefinition("a", {"type": "object", "required": 3}),)},
            "caller_tools[0].parameters",
        ),
        ({"caller_tools": (replace(CLOCK, kind=ToolKind.OUTPUT),)}, "caller_tools[0].parameters"),
        ({"mode": Mode.PLAN}, "caller_tools"),
        ({"mode": Mode.REDUNDANT, "output": OutputContract({"type": "object"})}, "caller_tools"),
        ({"mode": Mode.PLAN, "caller_tools": (), "tool_choice": ToolChoice("none")}, "tool_choice"),
        ({"tool_choice": ToolChoice("function", "wether")}, "tool_choice"),
        ({"caller_tools": 3}, "caller_tools"),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_what_cannot_be_is_refused_by_its_name(
    fields: dict[str, Any], field: str, streamed: bool
) -> None:
    where = Where.here(MemoryJournal())
    response = await served(system(where, "never"), streamed=streamed, **fields)
    assert response.error is not None
    assert response.error.code in ("CONFIG_INVALID_REQUEST", "CONFIG_SCHEMA_MALFORMED"), response.error
    assert (response.error.details or {})["field"].startswith(field), response.error
    assert not await where.journal.loops()


async def test_a_name_that_the_output_has_is_refused() -> None:
    made = System(Agent(Script("never"), output=int, output_mode="tool"))
    response = await made.handle(asking(caller_tools=(ToolDefinition("final_result", PLACE),)))
    assert response.error is not None
    assert (response.error.details or {})["field"] == "caller_tools[0].name"


async def test_a_system_that_plans_has_none() -> None:
    from flyball import StaticPlanner

    made = System(Agent(Script("never")), planner=StaticPlanner({}))
    for response in (await made.handle(asking()), await served(made, streamed=True)):
        assert response.error is not None
        assert (response.error.details or {})["field"] == "caller_tools"


async def test_answers_that_do_not_fit_are_refused_in_the_response() -> None:
    journal = MemoryJournal()
    made = System(Agent(Script(BOTH[0], "Rain.")), journal=journal)
    first = await made.handle(asking())
    for loop_id, given, code in (
        ("nobody", results(first.calls_wanted), "ORCHESTRATION_LOOP_NOT_FOUND"),
        (first.loop_id, [DeferredToolResult("", "c99", "x")], "ORCHESTRATION_ANSWER_REFUSED"),
        (
            first.loop_id,
            [DeferredToolResult("clock", first.calls_wanted[0].tool_call_id, "x")],
            "ORCHESTRATION_ANSWER_REFUSED",
        ),
    ):
        response = await made.answer(loop_id, given)
        assert response.error is not None
        assert response.error.code == code, response.error
    assert (await System(Agent(Script("hi"))).answer("one", [])).error is not None, "there is no journal"


async def test_an_outside_tool_may_be_an_agents_own() -> None:
    with pytest.raises(Deferred) as caught:
        await Agent(Script(BOTH[0], "Rain."), tools=[OutsideTool(WEATHER)], limits=Limits(timeout=60)).run(
            "go"
        )
    (request,) = caught.value.requests
    assert request.tool_name == "weather"
    made = OutsideTool(ToolSpec(WEATHER, approval=True, result_tokens=9))
    assert made.spec == ToolSpec(WEATHER, result_tokens=9, outside=True)
    assert repr(made) == "OutsideTool('weather')"
    result = await execute(made, ToolCall("c", "weather"), None)
    assert isinstance(result, ToolResult)
    assert result.status == "deferred"


def test_the_request_is_read_as_it_was_written() -> None:
    strict = replace(WEATHER, strict=True, sequential=True, extra={"vendor": 1})
    for choice in (
        None,
        ToolChoice("required", auto_reset=True),
        ToolChoice("function", "weather", extra={"x": 1}),
    ):
        request = asking(caller_tools=(strict, CLOCK), tool_choice=choice)
        assert SystemRequest.from_json(request.to_json()) == request

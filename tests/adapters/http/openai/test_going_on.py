"""Which loop a conversation goes on with, decided from data alone."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from flyball import Agent, MemoryJournal, System, SystemRequest, tool
from flyball.adapters.http.openai.call_ids import call_name
from flyball.adapters.http.openai.going_on import answering, goes_on
from flyball.core.messages import Message, ToolCall, ToolResult, assistant, system, tool_result, user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine

WEATHER = ToolDefinition("weather", {"type": "object", "properties": {}})


@tool
async def look() -> str:
    """Look out."""
    return "grey"


def talk(loop_id: str, *calls: str, before: tuple[Message, ...] = (user("Rain?"),)) -> tuple[Message, ...]:
    """A conversation that ends with the results of calls."""
    names = [call_name(loop_id, call) for call in calls]
    asked = assistant("", *[ToolCall(name, "weather") for name in names])
    return (*before, asked, *[tool_result(name, "weather", "rain") for name in names])


def test_results_at_the_end_name_their_loop() -> None:
    found = answering(talk("L", "a", "b"))
    assert found is not None
    assert (found.loop_id, found.before) == ("L", (user("Rain?"),))
    assert found.results == (
        ToolResult("a", "weather", "rain"),
        ToolResult("b", "weather", "rain"),
    )
    further = answering((*talk("L", "a"), *talk("L", "b", before=())))
    assert further is not None
    assert (further.before, [one.call_id for one in further.results]) == ((user("Rain?"),), ["b"])


def test_other_ends_name_none() -> None:
    assert answering((user("Rain?"),)) is None
    assert answering(()) is None
    assert answering((*talk("L", "a"), user("And now?"))) is None
    assert answering((*talk("L", "a"), user("And now?"), *talk("L", "b", before=()))) is None
    assert answering((user("x"), assistant("", ToolCall("c", "f")), tool_result("c", "f", "y"))) is None
    two = (*talk("L", "a"), tool_result(call_name("M", "b"), "weather", "rain"))
    assert answering(two) is None


async def test_a_loop_is_gone_on_with_if_it_is_the_one() -> None:
    journal = MemoryJournal()
    engine = ScriptedEngine(
        tool_call("look"), tool_call("weather", {}, "c1"), tool_call("weather", {}, "c2"), "Rain."
    )
    served = System(Agent(engine, tools=[look], instructions="Be kind."), journal=journal)
    before = (system("Be brief."), user("Rain?"))
    request = SystemRequest(messages=before, caller_tools=(WEATHER,))
    first = await served.handle(replace(request, tool_choice=ToolChoice("required", auto_reset=True)))
    loop_id = first.loop_id

    async def decided(messages: tuple[Message, ...], **changed: Any) -> bool:
        asked = answering(messages)
        assert asked is not None
        spec = served.policy(replace(request, messages=messages, **changed))
        return goes_on(asked, spec, await journal.read(loop_id))

    same = talk(loop_id, "c1", before=before)
    assert await decided(same)
    assert not await decided(talk(loop_id, "c9", before=before))
    assert not await decided(talk(loop_id, "c1", before=(user("Rain?"),))), "other instructions"
    assert not await decided(talk(loop_id, "c1", before=(before[0], user("Snow?"))))
    assert not await decided(same, caller_tools=())
    asked = answering(same)
    assert asked is not None
    spec = served.policy(replace(request, messages=same))
    assert spec is not None
    assert not goes_on(asked, None, await journal.read(loop_id)), "a flow"
    assert not goes_on(asked, replace(spec, settings=ModelSettings(seed=1)), await journal.read(loop_id))
    assert not goes_on(asked, spec, []), "it is not here"
    odd = replace(asked, before=(assistant("odd"),))
    assert not goes_on(odd, spec, await journal.read(loop_id)), "no conversation"

    second = await served.answer(loop_id, asked.results)
    assert [one.tool_call_id for one in second.calls_wanted] == ["c2"]
    assert not await decided(same), "it has gone on from there"
    further = (*same, *talk(loop_id, "c2", before=()))
    assert await decided(further)
    found = answering(further)
    assert found is not None
    await served.answer(loop_id, found.results)
    assert not await decided(further), "it is over: the question is asked again"

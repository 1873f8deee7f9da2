"""The one door, and loops that are recorded: replayed, resumed, tried again, forked."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec.json import decode

from flyball import tool
from flyball.core.errors import EngineError, LoopNotFound, UserError
from flyball.core.events import Event, Forked, Reopened, Started
from flyball.core.limits import Limits
from flyball.core.messages import user
from flyball.core.settings import ModelSettings
from flyball.inference.answers import tool_call
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import TextDelta
from flyball.orchestrate.contracts import ExecutionHints, Mode, OutputContract, SystemRequest, SystemResponse
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.system import System
from flyball.testing.clock import FakeClock

OBJECT = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TREE = {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#"}]}}
WRONG_AND_RIGHT = (('{"result": ["x"]}', '{"result": [[1]]}'), ('{"city": 3}', '{"city": "Rome"}'))


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def asking(text: str = "hi", **fields: Any) -> SystemRequest:
    return SystemRequest(messages=(user(text),), **fields)


def held_to(schema: dict[str, Any]) -> SystemRequest:
    return asking(mode=Mode.STRUCTURED, output=OutputContract(schema))


def code(response: SystemResponse) -> str:
    assert response.error is not None
    return response.error.code


async def interrupted(journal: MemoryJournal, loop_id: str, request: SystemRequest, **options: Any) -> None:
    """Begin a loop, and cancel who waits for it while the model has not answered."""
    begun = asyncio.Event()

    async def never() -> None:
        begun.set()
        await asyncio.Event().wait()

    system = System(ScriptedEngine("too late", pause=never), journal=journal, **options)
    task = asyncio.ensure_future(system.handle(request, loop_id=loop_id))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_request_gets_the_loop_id_that_is_given() -> None:
    journal = MemoryJournal()
    system = System(ScriptedEngine("one", "two"), journal=journal)
    assert (await system.handle(asking(), loop_id="mine")).loop_id == "mine"
    pieces = [piece async for piece in system.stream(asking(), loop_id="other")]
    assert isinstance(pieces[-1], SystemResponse)
    assert await journal.loops() == ["other", "mine"]


@pytest.mark.parametrize("schema", [OBJECT, TREE], ids=["object", "wrapped"])
@pytest.mark.parametrize("mode", ["tool", "native", "prompted"])
async def test_a_replay_is_the_response_again(schema: dict[str, Any], mode: str) -> None:
    journal = MemoryJournal()
    answer = '{"city": "Rome"}' if schema is OBJECT else '{"result": [1, [2]]}'
    engine = ScriptedEngine(tool_call("final_result", decode(answer)) if mode == "tool" else answer)
    first = await System(engine, journal=journal, output_mode=mode).handle(held_to(schema))
    assert first.ok
    again = await System(ScriptedEngine(), journal=journal).replay(first.loop_id)
    assert again == first


async def test_a_failed_loop_is_replayed_with_its_own_error() -> None:
    journal = MemoryJournal()
    engine = ScriptedEngine('{"city": 3}', '{"city": 4}')
    first = await System(engine, journal=journal).handle(held_to(OBJECT))
    again = await System(ScriptedEngine(), journal=journal).replay(first.loop_id)
    assert code(again) == code(first) == "CONSTRAINT_SCHEMA_INVALID"
    assert again.structured_output == {"city": 4}


async def test_what_is_not_over_is_not_replayed() -> None:
    journal = MemoryJournal()
    await interrupted(journal, "loop", asking())
    response = await System(ScriptedEngine(), journal=journal).replay("loop")
    assert code(response) == UserError.code
    assert code(await System(ScriptedEngine(), journal=journal).replay("none")) == LoopNotFound.code
    assert code(await System(ScriptedEngine()).replay("loop")) == UserError.code


async def test_an_interrupted_loop_goes_on() -> None:
    journal = MemoryJournal()
    request = asking("Rome?", request_id="r", session_id="s", trace_id="t")
    await interrupted(journal, "loop", request, tools=[weather])
    engine = ScriptedEngine(tool_call("weather", {"city": "Rome"}), "An umbrella.", chunk=4)
    pieces = [p async for p in System(engine, tools=[weather], journal=journal).resume_stream("loop")]
    response = pieces[-1]
    assert isinstance(response, SystemResponse)
    assert (response.content, response.loop_id, response.request_id) == ("An umbrella.", "loop", "r")
    assert [call.result for call in response.tool_calls_made] == ["rain in Rome"]
    assert "".join([piece.text for piece in pieces if isinstance(piece, TextDelta)]) == "An umbrella."
    assert await System(ScriptedEngine(), journal=journal).resume("loop", retry=True) == response


@pytest.mark.parametrize("schema", [OBJECT, TREE], ids=["object", "wrapped"])
async def test_a_resumed_loop_is_held_to_the_recorded_schema(schema: dict[str, Any]) -> None:
    journal = MemoryJournal()
    await interrupted(journal, "loop", held_to(schema))
    wrong, right = WRONG_AND_RIGHT[schema is OBJECT]
    engine = ScriptedEngine(wrong, right)
    response = await System(engine, journal=journal).resume("loop")
    assert response.structured_output == decode(right).get("result", decode(right))
    assert response.validation_result is not None
    assert response.validation_result.failed == 1


async def test_a_loop_that_failed_is_tried_again_only_where_that_is_wanted() -> None:
    journal = MemoryJournal()
    first = await System(ScriptedEngine(EngineError("no power")), journal=journal).handle(asking())
    engine = ScriptedEngine("here")
    system = System(engine, journal=journal)
    assert code(await system.resume(first.loop_id)) == EngineError.code
    assert not engine.calls
    response = await system.resume(first.loop_id, retry=True)
    assert (response.content, response.loop_id) == ("here", first.loop_id)
    assert any(isinstance(event, Reopened) for event in await journal.read(first.loop_id))


async def test_a_loop_whose_time_is_up_gets_time_anew() -> None:
    journal, clock = MemoryJournal(), FakeClock()
    request = asking(hints=ExecutionHints(timeout=120))
    await interrupted(journal, "loop", request, clock=clock)
    await clock.advance(600)
    engine = ScriptedEngine("still here")
    assert code(await System(engine, journal=journal, clock=clock).resume("loop")) == "CANCELLED_TIMEOUT"
    response = await System(engine, journal=journal, clock=clock).resume("loop", retry=True)
    assert response.content == "still here"


async def test_what_cannot_be_resumed_is_in_the_response() -> None:
    assert code(await System(ScriptedEngine()).resume("loop")) == UserError.code
    system = System(ScriptedEngine(), journal=MemoryJournal())
    assert code(await system.resume("loop")) == LoopNotFound.code


async def test_leaving_a_resumed_stream_leaves_the_loop_as_it_is() -> None:
    journal = MemoryJournal()
    await interrupted(journal, "loop", asking())
    reading = System(ScriptedEngine("a long answer", chunk=1), journal=journal).resume_stream("loop")
    assert isinstance(await anext(reading), TextDelta)
    await reading.aclose()
    response = await System(ScriptedEngine("done"), journal=journal).resume("loop")
    assert response.content == "done"


async def test_a_fork_keeps_the_policy_and_takes_the_model() -> None:
    journal = MemoryJournal()
    engine = ScriptedEngine(tool_call("weather", {"city": "Rome"}), "An umbrella.", name="old")
    options: dict[str, Any] = {
        "instructions": "Be brief.",
        "settings": ModelSettings(temperature=0.1),
        "limits": Limits(timeout=9),
        "name": "prophet",
    }
    first = await System(engine, tools=[weather], journal=journal, **options).handle(asking("Rome?"))
    other = System("test:Sun.", tools=[weather], journal=journal)
    loop_id = await other.fork(first.loop_id, 1, new_loop_id="fork", retries=3)
    response = await other.resume(loop_id)
    assert (response.content, response.loop_id) == ("Sun.", "fork")
    forked = next(event for event in await journal.read("fork") if isinstance(event, Forked))
    started = (await journal.read(first.loop_id))[0]
    assert isinstance(started, Started)
    assert forked.spec.model == "test:Sun."
    assert forked.spec.retries == 3
    for name in ("agent", "instructions", "settings", "limits", "output", "tools"):
        assert getattr(forked.spec, name) == getattr(started.spec, name)


async def test_a_fork_with_another_prompt_asks_that() -> None:
    journal = MemoryJournal()
    seen: list[str] = []

    async def answer(request: Request) -> str:
        seen.append(request.messages[-1].text)
        return "yes"

    system = System(FunctionEngine(answer), journal=journal)
    first = await system.handle(asking("one"))
    await system.resume(await system.fork(first.loop_id, 0, prompt="two"))
    await system.resume(await system.fork(first.loop_id, 1, prompt="three"))
    assert seen == ["one", "two", "three"]
    with pytest.raises(UserError, match="give a prompt"):
        await system.fork(first.loop_id, 1)


async def test_a_fork_says_its_schema_once_where_it_is_prompted() -> None:
    journal = MemoryJournal()
    options: dict[str, Any] = {"output_mode": "prompted", "instructions": "Be brief."}
    engine = ScriptedEngine('{"city": "Rome"}', '{"city": "Bonn"}')
    system = System(engine, journal=journal, **options)
    first = await system.handle(held_to(OBJECT))
    response = await system.resume(await system.fork(first.loop_id, 0, prompt="And you?"))
    assert response.structured_output == {"city": "Bonn"}
    assert engine.calls[1].messages[0] == engine.calls[0].messages[0]


async def test_forking_by_the_clock_that_is_given() -> None:
    journal, clock = MemoryJournal(), FakeClock()
    system = System("test", journal=journal, clock=clock)
    first = await system.handle(asking())
    events: list[Event] = await journal.read(await system.fork(first.loop_id, 0, prompt="again"))
    assert events[-1].at == clock.now()


class Closable(ScriptedEngine):
    closed = 0

    async def aclose(self) -> None:
        self.closed += 1


async def test_the_engine_that_was_made_for_a_string_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    made, given = Closable("yes"), Closable("yes")

    def resolved(model: Any) -> Any:
        return made if model == "test" else model

    monkeypatch.setattr("flyball.orchestrate.system.resolve_engine", resolved)
    for model in ("test", given):
        system = System(model)
        await system.aclose()
        assert (await system.handle(asking())).ok
        await system.aclose()
        await system.aclose()
    assert (made.closed, given.closed) == (1, 0)
    await System("test").aclose()

"""What was said in a loop, as rows: each thing once."""

from __future__ import annotations

import asyncio

import pytest

from flyball import Agent, MemoryJournal
from flyball.adapters.tui.lines import text_of
from flyball.adapters.tui.step_rows import step_rows
from flyball.adapters.tui.transcript import Transcript
from flyball.core.errors import EngineError
from flyball.core.events import VERSION, Event, Resumed
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.projections.course import course
from flyball.orchestrate.recorded import send_signal
from tests.adapters.http.running import add


def transcript(events: list[Event], name: str = "") -> Transcript:
    """What is told of a journal."""
    made = Transcript(name)
    for number, event in enumerate(events):
        made.feed(Recorded(number, event))
    return made


def said(events: list[Event], name: str = "") -> str:
    """What is shown of it."""
    return "\n".join([text_of(row.lines(80, 0)) for row in transcript(events, name).rows()])


async def failed_once() -> tuple[Agent[None, str], MemoryJournal]:
    """A run whose model call failed, and its agent, whose model is there again."""
    agent, journal = Agent(ScriptedEngine(EngineError("the model is gone"), "Here.")), MemoryJournal()
    with pytest.raises(EngineError):
        await agent.run("go", journal=journal, loop_id="loop")
    return agent, journal


@pytest.mark.parametrize(
    ("name", "end"), [("", "✘ failed"), ("one.", "INFERENCE_ENGINE_ERROR: the model is gone")]
)
async def test_an_error_that_ends_a_run_is_told_once(name: str, end: str) -> None:
    _, journal = await failed_once()
    shown = said(await journal.read("loop"), name)
    assert shown.count("the model is gone") == 1
    assert shown.endswith(end)


async def test_who_tries_again_is_no_other_process() -> None:
    agent, journal = await failed_once()
    await send_signal(journal, "loop", Signal(SignalType.RETRY, by="ann"))
    await agent.resume("loop", journal)
    events = await journal.read("loop")
    assert "↻ tried again by ann\n" in said(events)
    assert "went on" not in said(events)
    assert "somebody went on with it" in said([events[0], Resumed(events[0].at, VERSION, 1)])


async def test_a_call_of_what_is_not_there_unfolds_in_the_course() -> None:
    engine = ScriptedEngine(tool_call("umbrella", {"size": 2}, "c1"), "No umbrella.")
    events = await (await Agent(engine, tools=[add]).run("Rome?")).events()
    told = transcript(events)
    row = step_rows(course(events), 0.0, told.call)[1]
    assert "▹ umbrella" in text_of(row.lines(100, 0))
    opened = row.next(0)
    assert opened
    assert "There is no tool 'umbrella'" in text_of(row.lines(100, opened)[1:])
    (call,) = [one for one in told.rows() if one.key == row.call.key] if row.call is not None else []
    assert " ms" not in text_of(call.lines(80, 0)), "it took no time: it was not run"


async def test_an_answer_that_waits_is_shown_as_one_and_not_as_the_answer() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine("We are broke.", "Times are hard."), output_approval=True)
    task = asyncio.create_task(agent.run("go", journal=journal, loop_id="loop"))
    await journal.wait("loop", 1)  # Started, ModelAnswered: now it waits
    mark = "⧗ it waits for approval: until then it is no answer"
    assert said(await journal.read("loop")).endswith(mark)
    await send_signal(journal, "loop", Signal(SignalType.PAUSE))
    await send_signal(journal, "loop", Signal(SignalType.REJECT, by="ann", text="softer"))
    await send_signal(journal, "loop", Signal(SignalType.RESUME))
    while not (shown := said(await journal.read("loop"))).endswith(mark):
        await journal.wait("loop", len(await journal.read("loop")))
    assert "⚑ reject by ann: softer" in shown
    assert shown.count(mark) == 2
    await send_signal(journal, "loop", Signal(SignalType.APPROVE))
    await task

"""What models, tools and journals say is shown, and does nothing: whatever it is, and however much of it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.cells import cell_len

from flyball import Agent, tool
from flyball.adapters.tui.lines import text_of
from flyball.adapters.tui.rows import CallRow, NoteRow, Row, TextRow, seconds
from flyball.adapters.tui.run import RunScreen
from flyball.adapters.tui.run_rows import RunRow, age
from flyball.adapters.tui.runs import RunsScreen
from flyball.adapters.tui.step_rows import step_rows
from flyball.adapters.tui.wrapping import fitted, words, wrapped
from flyball.core.events import Ended, Event, ModelAnswered, Outcome, Started, ToolReturned
from flyball.core.limits import Limits, UsageLimits
from flyball.core.messages import Message, Role, Text, ToolCall, ToolResult
from flyball.core.usage import RunUsage, Usage
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.orchestrate.projections.course import CourseStep, StepKind
from flyball.orchestrate.projections.summary import LoopSummary
from flyball.orchestrate.service import Service
from tests.adapters.http.running import told
from tests.adapters.tui.driving import answered, chat_with, over
from tests.adapters.tui.test_runs import ask, asking
from tests.core.test_harmless import hidden

NASTY = "\x1b[2J\x1b]0;owned\x07[bold red]x[/]\u202e\u2066\x9b31m\x00\r<script>[@click=app.quit]y[/]\u200b"
ANY = st.one_of(st.text(), st.text(st.sampled_from("ab \n\t\x1b\x9b[]/@\u202e\u200b\u200d漢字é👩\x00\r")))


@given(ANY, st.integers(4, 60))
def test_no_line_is_too_long_or_does_anything(text: str, width: int) -> None:
    lines = wrapped(text, width, 10_000)
    assert lines
    assert not hidden("".join(lines))
    assert "\n" not in "".join(lines)
    assert max(map(cell_len, lines)) <= width


@given(st.text(st.characters(categories=["L", "N", "Zs"]), max_size=200), st.integers(8, 60))
def test_nothing_of_a_text_is_lost_by_cutting_it(text: str, width: int) -> None:
    assert "".join("".join(wrapped(text, width, 10_000)).split()) == "".join(text.split())


@given(ANY, st.integers(1, 40))
def test_a_cell_is_as_wide_as_it_should_be(text: str, width: int) -> None:
    assert cell_len(fitted(words(text), width)) == width


def rows(text: str) -> list[Row]:
    """A row of each kind, with the same text wherever there is one."""
    call = CallRow("c", ToolCall(text, text, text), ToolResult(text, text, text), 5939.0)
    step = CourseStep(1.0, StepKind.TOOL_CALL, text, text, call_id=text, model=text)
    run = LoopSummary(text, agent=text, model=text, stage=text, prompt=text, started_at=1.0)
    return [
        TextRow("t", text, text),
        call,
        NoteRow("n", "•", text),
        *step_rows([step, replace(step, took=None, ok=None)], 2.0, lambda _: call),
        RunRow("r", run, 2.0),
    ]


@given(ANY, st.integers(30, 120), st.integers(0, 3))
def test_no_row_does_anything_or_is_too_wide(text: str, width: int, opened: int) -> None:
    for row in rows(text):
        drawn = text_of(row.lines(width, opened))
        assert not hidden(drawn), row
        assert max(map(cell_len, drawn.split("\n"))) <= width, row


TIMES = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([-1.7e308, 1.7e308, 0.0]))


@given(TIMES, TIMES, TIMES, st.integers(), st.integers(30, 120))
def test_no_number_is_too_much(at: float, other: float, took: float, count: int, width: int) -> None:
    usage = Usage(input_tokens=abs(count), output_tokens=abs(count))
    first = CourseStep(at, StepKind.MODEL_CALL, "model call 1", took=took, usage=usage)
    steps = [first, replace(first, at=other, took=None, ok=None), replace(first, took=None, ended=False)]
    used = RunUsage(requests=count, input_tokens=count, output_tokens=count)
    run = LoopSummary("r", started_at=at, updated_at=other, turns=count, usage=used)
    for row in [*step_rows(steps, other, lambda _: None), RunRow("r", run, took)]:
        assert len(row.lines(width, 0)) == 1
    assert cell_len(seconds(took)) <= 8
    assert cell_len(age(took)) <= 8


async def test_a_hostile_run_is_shown_and_does_nothing() -> None:
    async def saying(request: Request) -> Message | str:
        return NASTY if told(request) else tool_call_answer("look", {"at": NASTY})

    @tool(approval=True)
    async def look(at: str) -> str:
        """Look."""
        return NASTY + at

    agent = Agent(FunctionEngine(saying, info=NASTY), name="sly", description=NASTY, tools=[look])
    async with over(agent) as (ui, service):
        await service.begin("sly", asking(NASTY), loop_id="sly")
        ui.app.open_run("sly")
        await ui.opens(RunScreen)
        await ui.sees("sly wants to call look")
        assert not hidden(ui.screen)
        await ui.press("v")
        await ui.sees("Enter shows more")
        assert not hidden(ui.screen)
        await ui.press("escape")
        await ui.opens(RunScreen)
        await ui.press("a")
        await ui.until(lambda: "complete" in ui.said())
        await ui.until(lambda: ui.listing("timeline").has_focus and len(ui.listing("timeline").rows) == 5)
        await ui.press("down", "down", "enter")
        await ui.sees("arguments")
        for shown in (ui.screen, ui.said("talk"), ui.said("timeline")):
            assert not hidden(shown)
        assert "[bold red]x[/]" in ui.said("talk"), "it is no markup"
        await ui.press("home", "enter")
        await ui.sees("sent to")
        assert not hidden(ui.screen)
        await ui.press("escape")
        await ui.opens(RunScreen)
        await ui.press("escape")
        await ui.opens(RunsScreen)
        await ui.sees("sly")
        assert not hidden(ui.screen)


async def test_the_name_of_an_agent_is_no_markup_anywhere() -> None:
    names = ["[/sly]", "[@click=app.quit]sly[/]", NASTY]
    agents = [Agent(FunctionEngine(_nothing, info=name), name=name, description=name) for name in names]
    async with over(*agents) as (ui, _):
        await ui.until(lambda: len(list(ui.app.get_system_commands(ui.app.screen))) > 6)
        await ui.press("ctrl+p")
        await ui.sees("Chat with ⟦/sly⟧")
        assert not hidden(ui.screen)
        await ui.press("escape")
        await ui.opens(RunsScreen)
        await ui.press("c")
        await ui.sees("[@click=app.quit]sly[/]")
        assert not hidden(ui.screen)
        await ui.press("enter")
        await ui.sees("chat with [/sly]")


async def _nothing(request: Request) -> str:
    return "nothing"


async def test_a_line_of_ten_megabytes_is_cut_and_more_of_it_is_shown_when_asked_for() -> None:
    async def much(request: Request) -> str:
        return "x" * 10_000_000

    async with over(Agent(FunctionEngine(much), name="much")) as (ui, _):
        await chat_with(ui, "much")
        await ui.write("More")
        await ui.sees("9,980,000 characters more")
        await answered(ui)
        await ui.press("shift+tab", "enter")
        await ui.until(lambda: "9,680,000 characters more" in ui.said())


def long_journal(first: Started, turns: int) -> list[Event]:
    """A journal of so many turns, each with a tool call."""
    limits = Limits(max_iterations=None, repeated_calls=None, usage=UsageLimits(request_limit=None))
    events: list[Event] = [replace(first, loop_id="long", spec=replace(first.spec, limits=limits))]
    at = first.at
    for turn in range(1, turns):
        call = ToolCall(f"c{turn}", "add", '{"x": 1, "y": 2}')
        events.append(ModelAnswered(at := at + 1, turn, Message(Role.ASSISTANT, (call,)), 0.5))
        events.append(ToolReturned(at := at + 1, turn, 0, ToolResult(call.id, "add", 3), 0.2))
    events.append(ModelAnswered(at, turns, Message(Role.ASSISTANT, (Text("It is 3."),)), 0.5))
    return [*events, Ended(at, Outcome.SUCCESS)]


async def keep_long_run(service: Service) -> None:
    """Keep a run of 10,000 events."""
    (first, *_) = await service.journal.read(await ask(service, "counter", "How much?"))
    assert isinstance(first, Started)
    await service.journal.append("long", long_journal(first, 5_000), 0)


async def test_ten_thousand_events_are_all_there_and_only_what_is_seen_is_drawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn = 0
    lines = CallRow.lines

    def counted(row: CallRow, width: int, opened: int) -> object:
        nonlocal drawn
        drawn += 1
        return lines(row, width, opened)

    monkeypatch.setattr(CallRow, "lines", counted)
    async with over() as (ui, service):
        await keep_long_run(service)
        ui.app.open_run("long")
        await ui.opens(RunScreen)
        await ui.until(lambda: len(ui.listing("timeline").rows) == 10_000, "the course")
        await ui.until(lambda: len(ui.listing("talk").rows) == 5_002, "what was said")
        await ui.sees("It is 3.")
        assert drawn < 200
        used = time.process_time()
        await ui.press("end", "pageup", "home", "tab", "home", "pagedown", "end")
        assert time.process_time() - used < 5, "it stays at hand"

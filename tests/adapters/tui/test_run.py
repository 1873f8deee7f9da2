"""A run: its course, what was said, what may be said to it; forks, and what is gone on with."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from textual.widgets import Input

from flyball import Agent
from flyball.adapters.tui.approvals import Approvals
from flyball.adapters.tui.dialogs import AskFork, AskText
from flyball.adapters.tui.listing import Listing
from flyball.adapters.tui.run import RunScreen
from flyball.adapters.tui.turn import TurnScreen
from flyball.core.errors import EngineError
from flyball.core.messages import Message
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from tests.adapters.http.running import add
from tests.adapters.tui.driving import Driven, over
from tests.adapters.tui.test_runs import ask, asking


async def opened(ui: Driven, loop_id: str) -> None:
    """Open a run, and wait until its course is drawn."""
    ui.app.open_run(loop_id)
    await ui.opens(RunScreen)
    await ui.until(lambda: ui.listing("timeline").rows, "a course")


async def stands(ui: Driven, stage: str) -> None:
    """Wait until the run that is shown stands so."""
    await ui.until(lambda: ui.screen.split("\n")[1].strip().startswith(stage), stage)


async def test_a_run_at_eighty_columns_has_its_head_its_course_and_what_was_said() -> None:
    async with over(size=(80, 24)) as (ui, service):
        await opened(ui, await ask(service, "counter", "How much?"))
        await ui.sees("It is 3.")
        lines = ui.screen.split("\n")
        assert len(lines) <= 24
        assert max(map(len, lines)) <= 80
        assert "counter" in lines[0]
        assert "complete" in lines[1]
        assert "function" in lines[1]
        assert "2 turns" in lines[1]
        assert "> How much?" in lines[2]
        course = [line for line in lines if "model call" in line]
        assert len(course) == 2
        assert all("━" in line for line in course), "there is room for bars"


async def test_a_step_unfolds_and_a_turn_shows_exactly_what_was_sent() -> None:
    async with over() as (ui, service):
        await opened(ui, await ask(service, "counter", "How much?"))
        await ui.sees("It is 3.")
        await ui.press("down", "enter")
        await ui.sees("arguments")
        assert '"y": 2' in ui.screen
        await ui.press("up", "enter")
        await ui.opens(TurnScreen)
        await ui.sees("sent to function")
        told = ui.said("turn")
        assert "user\n  How much?" in told
        assert "tool on offer: add" in told
        assert "assistant calls add" in told
        assert "decided by" in told


async def test_a_call_is_approved_from_the_run() -> None:
    async with over() as (ui, service):
        await service.begin("buyer", asking("Pay"), loop_id="buying")
        await opened(ui, "buying")
        await ui.sees("buyer wants to call pay")
        await stands(ui, "awaiting_approval")
        await ui.press("a")
        await ui.sees("paid 4")
        await stands(ui, "complete")
        assert not ui.app.screen.query_one(Approvals).calls


async def test_a_call_is_rejected_from_the_run_with_a_reason() -> None:
    async with over() as (ui, service):
        await service.begin("buyer", asking("Pay"), loop_id="buying")
        await opened(ui, "buying")
        await ui.sees("buyer wants to call pay")
        await ui.press("r")
        await ui.until(lambda: isinstance(ui.app.focused, Input), "a question")
        await ui.write("not today")
        await stands(ui, "complete")
        await ui.sees("not today")


async def test_a_fork_with_another_prompt_is_opened_and_goes_on() -> None:
    async with over() as (ui, service):
        loop_id = await ask(service, "echo", "one")
        await opened(ui, loop_id)
        await ui.sees("You said: one")
        await ui.press("k")
        await ui.opens(AskFork)
        ui.app.screen.query_one("#turn", Input).value = "0"
        ui.app.screen.query_one("#prompt", Input).focus()
        await ui.write("two")
        await ui.until(lambda: isinstance(ui.app.screen, RunScreen) and ui.app.screen.loop_id != loop_id)
        await ui.sees("You said: two")
        await stands(ui, "complete")
        await ui.sees("forked from")


async def test_a_fork_with_another_model() -> None:
    one, two = Agent("test:From one.", name="one"), Agent("test:From two.", name="two")
    async with over(one, two) as (ui, service):
        loop_id = await ask(service, "one", "Who are you?")
        await opened(ui, loop_id)
        await ui.sees("From one.")
        await ui.press("k")
        await ui.opens(AskFork)
        ui.app.screen.query_one("#turn", Input).value = "0"
        models = ui.app.screen.query_one("#model")
        await ui.press("tab", "tab")
        await ui.until(lambda: models.has_focus, "the focus")
        await ui.press("space")
        await ui.until(lambda: not models.has_focus and models.has_focus_within, "a list")
        await ui.press("down", "down", "enter")
        await ui.until(lambda: models.has_focus and cast("Any", models).value == "test:From two.", "a choice")
        await ui.press("enter")
        await ui.sees("From two.")
        await stands(ui, "complete")


async def test_a_fork_that_cannot_be_is_told() -> None:
    async with over() as (ui, service):
        await opened(ui, await ask(service, "echo", "one"))
        await ui.press("k")
        await ui.opens(AskFork)
        ui.app.screen.query_one("#turn", Input).value = "77"
        await ui.press("enter")
        await ui.sees("CONFIG_USAGE")


async def test_a_run_is_paused_and_resumed() -> None:
    go_on = asyncio.Event()

    async def slow(request: Request) -> Message | str:
        if len(request.messages) > 1:
            return "Done."
        await go_on.wait()
        return tool_call_answer("add", {"x": 1, "y": 2})

    async with over(Agent(FunctionEngine(slow), name="slow", tools=[add])) as (ui, service):
        await service.begin("slow", asking("Go"), loop_id="pausing")
        await opened(ui, "pausing")
        await ui.press("p")
        await ui.sees("pause")
        go_on.set()
        await stands(ui, "paused")
        await ui.press("u")
        await ui.sees("Done.")
        await stands(ui, "complete")


async def test_a_failed_run_is_tried_again() -> None:
    engine = ScriptedEngine(EngineError("gone"), "Here again.")
    async with over(Agent(engine, name="poet")) as (ui, service):
        loop_id = (await service.handle("poet", asking("Hello"))).loop_id
        await opened(ui, loop_id)
        await stands(ui, "failed")
        await ui.press("t")
        await ui.sees("Here again.")
        await stands(ui, "complete")


async def test_a_run_is_cancelled_with_a_reason_and_told_something_before() -> None:
    async def never(request: Request) -> str:
        await asyncio.Event().wait()
        return ""

    async with over(Agent(FunctionEngine(never), name="slow")) as (ui, service):
        await service.begin("slow", asking("Go"), loop_id="endless")
        await opened(ui, "endless")
        await ui.sees("╍")
        await ui.press("f")
        await ui.opens(AskText)
        await ui.write("be brief")
        await ui.sees("feedback: be brief")
        await ui.press("x")
        await ui.opens(AskText)
        await ui.write("enough")
        await stands(ui, "cancelled")
        await ui.sees("cancel: enough")


async def test_what_does_not_fit_is_refused_in_words() -> None:
    async with over() as (ui, service):
        await opened(ui, await ask(service, "echo", "one"))
        await stands(ui, "complete")
        await ui.press("p")
        await ui.sees("ORCHESTRATION_SIGNAL_REFUSED")
        assert ui.app.screen.query_one("#timeline", Listing).rows

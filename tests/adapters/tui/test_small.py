"""Small terminals: what has the focus has the room, and whatever can be done can be seen."""

from __future__ import annotations

import pytest
from textual.widgets import Static

from flyball import Agent
from flyball.adapters.tui.approvals import Approvals
from flyball.adapters.tui.dialogs import AskFork, AskText, Help, ShowCall
from flyball.adapters.tui.run import RunScreen
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from tests.adapters.http.running import add, pay, told
from tests.adapters.tui.driving import Driven, answered, asked_for_approval, chat_with, over
from tests.adapters.tui.test_runs import ask, asking

SMALL = pytest.mark.parametrize("size", [(40, 10), (60, 15)], ids=["40x10", "60x15"])


async def _talking(request: Request) -> object:
    if not told(request):
        return tool_call_answer("pay", {"pounds": 4, "why": "x" * 500})
    return "\n".join([f"line {number}" for number in range(30)])


def talker() -> Agent[None, str]:
    """One that asks before it pays, at length, and then says much."""
    return Agent(FunctionEngine(_talking), name="talker", tools=[pay, add])  # pyright: ignore[reportArgumentType]


def shows(ui: Driven, *texts: str) -> bool:
    """Whether all of this is on the screen."""
    return all(text in ui.screen for text in texts)


@SMALL
async def test_a_call_that_waits_leaves_room_and_has_its_keys(size: tuple[int, int]) -> None:
    async with over(talker(), size=size) as (ui, service):
        await service.begin("talker", asking("Pay"), loop_id="paying")
        ui.app.open_run("paying")
        await ui.opens(RunScreen)
        await ui.until(
            lambda: shows(ui, "talker wants to call pay", '"pounds": 4', "lines more", "Approve (a)")
        )
        await ui.until(lambda: shows(ui, "awaiting_approval", "course", "what was said", "r Reject"))
        ui.listing("talk").focus()
        await ui.until(lambda: shows(ui, "▸ … pay", "talker wants to call pay"))
        ui.app.screen.query_one(Approvals).focus()
        await ui.until(lambda: shows(ui, '"pounds": 4'))
        await ui.press("v")
        await ui.opens(ShowCall)
        await ui.until(lambda: shows(ui, '"pounds": 4', "Esc goes back"))


@SMALL
async def test_a_call_with_few_words_is_shown_whole(size: tuple[int, int]) -> None:
    async with over(size=size) as (ui, _):
        await chat_with(ui, "buyer")
        await ui.write("Pay")
        await asked_for_approval(ui, "pay")
        approvals = ui.app.screen.query_one(Approvals)
        await ui.until(lambda: "pounds" in str(approvals.query_one("#call", Static).content))
        assert "lines more" not in ui.screen


@SMALL
async def test_the_end_of_an_answer_stays_in_sight(size: tuple[int, int]) -> None:
    async with over(talker(), size=size) as (ui, _):
        await chat_with(ui, "talker")
        await ui.write("Pay")
        await ui.until(lambda: shows(ui, "wants to call pay", "Approve (a)", "▸ … pay"))
        await asked_for_approval(ui, "pay")
        await ui.press("a")
        await answered(ui)
        await ui.until(lambda: shows(ui, "line 29", "Say something"))


@SMALL
async def test_what_is_asked_can_be_seen_and_answered(size: tuple[int, int]) -> None:
    async with over(size=size) as (ui, service):
        await ask(service, "echo", "one")
        await ui.until(lambda: shows(ui, "echo", "complete", "one"))
        await ui.press("enter")
        await ui.opens(RunScreen)
        await ui.until(lambda: shows(ui, "model call 1"))
        await ui.press("k")
        await ui.opens(AskFork)
        await ui.until(lambda: shows(ui, "Fork this run"))
        await ui.press("tab")
        await ui.until(lambda: shows(ui, "as it was"))
        await ui.press("escape")
        await ui.opens(RunScreen)
        await ui.press("question_mark")
        await ui.opens(Help)
        await ui.press("end")
        await ui.until(lambda: shows(ui, "Esc", "leave it"))


@SMALL
async def test_a_question_fits(size: tuple[int, int]) -> None:
    async with over(talker(), size=size) as (ui, service):
        await service.begin("talker", asking("Pay"), loop_id="paying")
        ui.app.open_run("paying")
        await ui.opens(RunScreen)
        await ui.until(lambda: shows(ui, "wants to call pay"))
        await ui.press("x")
        await ui.opens(AskText)
        await ui.until(lambda: shows(ui, "Cancel this run?", "why, if you like", "Enter sends it"))

"""Calls that wait for their results from outside: they are shown, and somebody gives the results."""

from __future__ import annotations

from typing import Any

import pytest
from textual.widgets import Checkbox

from flyball import Agent, tool
from flyball.adapters.tui.chat import ChatScreen
from flyball.adapters.tui.results import AskResult, as_content
from flyball.core.messages import Message, Role
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from flyball.tool.errors import CallDeferred
from tests.adapters.http.running import told
from tests.adapters.tui.driving import chat_with, over
from tests.adapters.tui.test_chat import answered
from tests.adapters.tui.test_run import opened, stands
from tests.adapters.tui.test_runs import asking


async def test_a_result_is_given_in_a_chat() -> None:
    async with over() as (ui, _):
        await chat_with(ui, "builder")
        await ui.write("Build it")
        await ui.sees("builder waits for the result of build: Ctrl-G gives it")
        await ui.until(lambda: "⧗ build" in ui.said(), "its row")
        await ui.press("ctrl+g")
        await ui.opens(AskResult)
        assert '"target": "app"' in ui.screen
        await ui.write("green")
        await ui.opens(ChatScreen)
        await ui.sees("The build is green.")
        await answered(ui)
        assert "waits for the result" not in ui.screen
        assert "✔ build" in ui.said()


async def test_a_result_is_given_in_a_run_and_one_may_think_better_of_it() -> None:
    async with over() as (ui, service):
        await service.begin("builder", asking("Build it"), loop_id="building")
        await opened(ui, "building")
        await ui.sees("builder waits for the result of build: g gives it")
        await ui.press("g")
        await ui.opens(AskResult)
        await ui.press("escape")
        await ui.sees("g gives it")
        await ui.press("g")
        await ui.opens(AskResult)
        await ui.write('{"state": "red"}')
        await ui.sees('The build is {"state":"red"}.')
        await stands(ui, "complete")
        assert "gives it" not in ui.screen


async def test_that_it_went_wrong_is_told_and_the_model_calls_again() -> None:
    async with over(Agent(FunctionEngine(_trying), name="builder", tools=[build])) as (ui, _):
        await chat_with(ui, "builder")
        await ui.write("Build it")
        await ui.sees("Ctrl-G gives it")
        await ui.press("ctrl+g")
        await ui.opens(AskResult)
        await ui.press("tab", "space")
        await ui.until(lambda: ui.app.screen.query_one(Checkbox).value, "a mark")
        await ui.press("shift+tab")
        await ui.write("no room left")
        await ui.until(lambda: "It said: no room left" in ui.said(), "that it was told")


@tool
async def build(target: str) -> str:
    """Have something built."""
    raise CallDeferred(f"{target} is in the queue")


async def _trying(request: Request) -> Message | str:
    retries = [message.text for message in request.messages if message.role is Role.TOOL]
    said = " ".join([*told(request), *retries])
    return f"It said: {said}" if said else tool_call_answer("build", {"target": "app"})


@pytest.mark.parametrize(
    ("text", "content"),
    [("green", "green"), ('{"a": 1}', {"a": 1}), ("3", 3), ('{"a":', '{"a":'), ("[" * 9_999, "[" * 9_999)],
)
def test_what_is_written_is_json_where_it_is_json(text: str, content: Any) -> None:
    assert as_content(text) == content

"""Chats that are left go on, and one can come back to them."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from flyball import Agent
from flyball.adapters.tui.approvals import Approvals
from flyball.adapters.tui.chat import ChatScreen
from flyball.adapters.tui.chats import PickChat
from flyball.adapters.tui.prompt import Prompt
from flyball.adapters.tui.runs import RunsScreen
from flyball.core.messages import Message
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine
from tests.adapters.http.running import build, pay
from tests.adapters.tui.driving import Driven, chat_with, over
from tests.adapters.tui.test_chat import answered, came_up_long_ago


async def leave(ui: Driven) -> None:
    await ui.press("escape")
    await ui.opens(RunsScreen)


async def pick(ui: Driven, *keys: str) -> None:
    await ui.press("c")
    await ui.opens(PickChat)
    await ui.press(*keys, "enter")
    await ui.opens(ChatScreen)


async def test_a_chat_that_was_left_is_there_again_with_its_answer_and_what_was_written() -> None:
    go_on = asyncio.Event()

    async def slow(request: Request) -> str:
        await go_on.wait()
        return f"To {request.messages[-1].text}, number {len(request.messages)}."

    async with over(Agent(FunctionEngine(slow), name="slow")) as (ui, _):
        await chat_with(ui, "slow")
        await ui.write("one")
        await ui.press(*"two")
        await leave(ui)
        go_on.set()
        await ui.press("c")
        await ui.sees("↩ slow  one")
        await ui.press("enter")
        await ui.sees("To one, number 1.")
        assert ui.app.screen.query_one(Prompt).text == "two"
        await answered(ui)
        await ui.press("enter")
        await ui.sees("To two, number 3.")


async def test_a_new_chat_stands_below_those_that_are_open_and_each_has_its_own() -> None:
    async with over() as (ui, _):
        await chat_with(ui, "echo")
        await ui.write("first")
        await ui.sees("You said: first")
        await leave(ui)
        await pick(ui, "end")
        assert "first" not in ui.said()
        await ui.write("second")
        await ui.sees("You said: second")
        await leave(ui)
        await pick(ui, "down")
        assert "You said: first" in ui.said()
        await leave(ui)
        titles = [command.title for command in ui.app.get_system_commands(ui.app.screen)]
        assert titles.count("Back to chat with echo") == 2
        await pick(ui)
        assert "You said: first" in ui.said(), "the last one that was looked at is the first"


async def test_a_chat_in_which_nothing_was_said_is_not_kept_and_one_can_be_closed() -> None:
    async with over(Agent("test:Yes.", name="one")) as (ui, _):
        await chat_with(ui, "one")
        await leave(ui)
        await ui.press("c")
        await ui.opens(ChatScreen)
        await ui.write("Is it?")
        await ui.sees("Yes.")
        await leave(ui)
        await ui.press("c")
        await ui.opens(PickChat)
        await ui.press("delete")
        await ui.until(lambda: "↩" not in ui.screen, "it is gone")
        await ui.press("enter")
        await ui.opens(ChatScreen)
        assert not ui.listing("talk").rows


def calling(name: str, go_on: asyncio.Event, **arguments: object) -> Agent[Any, Any]:
    """An agent that calls a tool as soon as it may."""

    async def call(request: Request) -> Message:
        await go_on.wait()
        return tool_call_answer(name, arguments)

    return Agent(FunctionEngine(call), name="caller", tools=[pay, build])


async def test_who_comes_back_typing_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = asyncio.Event()
    async with over(calling("pay", go_on, pounds=4)) as (ui, _):
        await chat_with(ui, "caller")
        await ui.write("Pay")
        await leave(ui)
        go_on.set()
        await ui.sees("A call of caller waits for you")
        (chat,) = cast("Any", ui.app)._chats
        came_up_long_ago(chat, monkeypatch)
        await ui.press("c")
        await ui.sees("(a call waits for you)")
        await ui.press("enter")
        await ui.opens(ChatScreen)
        assert ui.app.screen.query_one(Approvals).has_focus
        await ui.press("a", "a")
        assert ui.app.screen.query_one(Approvals).calls, "nothing was decided"


async def test_who_is_elsewhere_is_told_that_a_result_is_waited_for() -> None:
    go_on = asyncio.Event()
    async with over(calling("build", go_on, target="app")) as (ui, _):
        await chat_with(ui, "caller")
        await ui.write("Build")
        await leave(ui)
        go_on.set()
        await ui.sees("A call of caller waits for you")


async def test_a_chat_below_what_is_shown_comes_up_again() -> None:
    async with over() as (ui, _):
        await chat_with(ui, "echo")
        await ui.write("one")
        await ui.sees("You said: one")
        await answered(ui)
        chat = ui.app.screen
        assert isinstance(chat, ChatScreen)
        await ui.press("ctrl+o")
        await ui.until(lambda: ui.app.screen is not chat)
        ui.app.go_back_to(chat)
        await ui.until(lambda: ui.app.screen is chat)
        await leave(ui)

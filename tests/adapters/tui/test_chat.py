"""Chat: answers stream, tool calls unfold, calls are approved and rejected, what was said goes along."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from textual.events import Key, Paste
from textual.screen import Screen
from textual.widgets import Input

from flyball import Agent
from flyball.adapters.tui.app import FlyballApp
from flyball.adapters.tui.approvals import Approvals
from flyball.adapters.tui.chat import ChatScreen
from flyball.adapters.tui.dialogs import AskText
from flyball.adapters.tui.prompt import Prompt
from flyball.adapters.tui.run import RunScreen
from flyball.core.errors import EngineError
from flyball.core.messages import Message, Role
from flyball.inference.answers import tool_call_answer
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.orchestrate.service import Service
from tests.adapters.http.running import pay, told
from tests.adapters.tui.driving import Driven, answered, asked_for_approval, chat_with, over
from tests.adapters.tui.test_runs import asking


def came_up_long_ago(screen: Screen[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the call of a screen have come up long ago, and all that happens from now on be new."""
    cast("Any", screen.query_one(Approvals))._since = -math.inf
    monkeypatch.setattr("flyball.adapters.tui.approvals._MOMENT", 3600.0)


async def test_an_answer_is_shown_as_it_comes() -> None:
    go_on = asyncio.Event()

    async def whole(request: Request) -> str:
        return "One two."

    async def pieces(request: Request) -> AsyncIterator[str]:
        yield "One "
        await go_on.wait()
        yield "two."

    async with over(Agent(FunctionEngine(whole, pieces), name="slow")) as (ui, _):
        await chat_with(ui, "slow")
        await ui.write("Count")
        await ui.sees("One")
        assert "two" not in ui.screen
        assert ui.app.screen.query_one(Prompt).is_held, "one message at a time"
        go_on.set()
        await ui.sees("One two.")
        await answered(ui)
        assert ui.said().count("One") == 1


async def test_a_tool_call_unfolds_in_place() -> None:
    async with over() as (ui, _):
        await chat_with(ui, "counter")
        await ui.write("How much?")
        await ui.sees("It is 3.")
        await answered(ui)
        assert '✔ add  {"x":1,"y":2}' in ui.screen
        await ui.press("shift+tab")
        await ui.until(lambda: ui.listing("talk").has_focus, "the focus")
        await ui.press("up", "enter")
        await ui.sees("arguments")
        assert '"x": 1' in ui.screen
        assert "result" in ui.screen
        await ui.press("enter")
        await ui.until(lambda: "arguments" not in ui.screen, "it is folded")


@asynccontextmanager
async def about_to_pay() -> AsyncGenerator[tuple[Driven, Service]]:
    """A chat in which a call waits, and keys decide about it."""
    async with over() as (ui, service):
        await chat_with(ui, "buyer")
        await ui.write("Pay")
        await asked_for_approval(ui, "pay")
        yield ui, service


async def test_a_call_that_waits_is_approved_by_a_key() -> None:
    async with about_to_pay() as (ui, _):
        assert '"pounds": 4' in ui.screen
        await ui.press("a")
        await ui.sees("paid 4")
        await answered(ui)
        assert "wants to call" not in ui.screen


async def test_a_call_that_waits_is_rejected_with_a_reason() -> None:
    async with about_to_pay() as (ui, _):
        await ui.press("r")
        await ui.until(lambda: isinstance(ui.app.focused, Input), "room for the reason")
        await ui.write("too dear")
        await answered(ui)
        assert "reject: too dear" in ui.said()
        assert "✘ pay" in ui.said()
        assert "paid" not in ui.screen


async def test_all_of_a_call_can_be_seen_before_it_is_decided() -> None:
    async with about_to_pay() as (ui, _):
        await ui.press("v")
        await ui.sees("Enter shows more")
        await ui.press("escape")
        await ui.opens(ChatScreen)
        await ui.press("a")
        await ui.sees("paid 4")
        await answered(ui)


async def test_what_was_said_goes_along_and_the_session_stays() -> None:
    engine = ScriptedEngine("Blue.", "The sky.", name="scripted")
    async with over(Agent(engine, name="poet")) as (ui, service):
        await chat_with(ui, "poet")
        await ui.write("Your colour?")
        await ui.sees("Blue.")
        await answered(ui)
        await ui.write("Why?")
        await ui.sees("The sky.")
        await answered(ui)
        sent = engine.calls[-1].messages
        assert [message.role for message in sent] == [Role.USER, Role.ASSISTANT, Role.USER]
        assert [message.text for message in sent] == ["Your colour?", "Blue.", "Why?"]
        one, two = [await service.summary(run) for run in await service.journal.loops()]
        assert one.session_id == two.session_id != ""


async def test_an_answer_that_fails_is_told_and_the_chat_goes_on() -> None:
    engine = ScriptedEngine(EngineError("the model is gone"), "Here again.")
    async with over(Agent(engine, name="poet")) as (ui, _):
        await chat_with(ui, "poet")
        await ui.write("Hello")
        await ui.sees("the model is gone")
        await answered(ui)
        await ui.write("And now?")
        await ui.sees("Here again.")
        await answered(ui)


async def test_an_answer_is_cancelled() -> None:
    async def never(request: Request) -> str:
        await asyncio.Event().wait()
        return ""

    async with over(Agent(FunctionEngine(never), name="slow")) as (ui, _):
        await chat_with(ui, "slow")
        await ui.write("Hello")
        await ui.until(lambda: ui.listing("talk").rows, "a run")
        await ui.press("ctrl+x")
        await ui.sees("cancelled")
        await answered(ui)


async def test_several_lines_are_sent_as_one_message() -> None:
    async with over() as (ui, _):
        await chat_with(ui, "echo")
        await ui.press("a", "ctrl+j", "b", "enter")
        await ui.sees("You said: a")
        await answered(ui)
        assert "  You said: a\n  b" in ui.said()


async def test_who_goes_on_typing_when_a_call_comes_up_decides_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("flyball.adapters.tui.approvals._MOMENT", 3600.0)
    async with about_to_pay() as (ui, _):
        await ui.press("a", "a", "r", "a")
        await ui.press("tab", "enter", "tab", "enter")
        assert ui.app.screen.query_one(Approvals).calls, "nothing was decided"
        assert "Why not?" not in ui.screen


async def test_what_is_typed_while_the_application_ends_is_for_nobody() -> None:
    app = FlyballApp("http://127.0.0.1:1")
    for event in (Key("a", "a"), Paste("a")):
        await app.on_event(event)  # there is no screen any more, which textual takes for a mistake


async def test_who_types_a_reason_before_it_is_asked_for_approves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with about_to_pay() as (ui, _):
        approvals = ui.app.screen.query_one(Approvals)
        monkeypatch.setattr("flyball.adapters.tui.approvals._MOMENT", 0.5)
        await asyncio.sleep(0.5)
        await ui.press(*"no", "space", *"way")
        assert approvals.calls, "the a of no way is no approval"
        await ui.sees("not yet")
        await ui.until(lambda: "not yet" not in ui.screen)
        await ui.press("a")
        await ui.sees("paid 4")


async def test_what_is_written_while_an_answer_comes_is_sent_after_it_and_not_before() -> None:
    go_on = asyncio.Event()

    async def slow(request: Request) -> str:
        await go_on.wait()
        return f"To {request.messages[-1].text}."

    async with over(Agent(FunctionEngine(slow), name="slow")) as (ui, service):
        await chat_with(ui, "slow")
        await ui.write("one")
        await ui.sees("an answer is under way")
        await ui.press("t", "w", "o", "enter")
        await ui.sees("not sent yet")
        prompt = ui.app.screen.query_one(Prompt)
        assert prompt.text == "two"
        assert len(await service.journal.loops()) == 1
        go_on.set()
        await ui.sees("To one.")
        await answered(ui)
        assert prompt.text == "two", "what was written is still there"
        assert "under way" not in ui.screen
        await ui.press("enter")
        await ui.sees("To two.")


async def test_who_presses_enter_twice_in_no_time_says_one_thing() -> None:
    async with over() as (ui, service):
        await chat_with(ui, "echo")
        for event in (Paste("one"), Key("enter", "\r"), Paste("two"), Key("enter", "\r")):
            ui.app.post_message(event)
        await ui.sees("You said: one")
        await answered(ui)
        assert ui.app.screen.query_one(Prompt).text == "two"
        assert len(await service.journal.loops()) == 1


async def test_a_call_that_comes_up_takes_no_key_from_who_writes() -> None:
    go_on = asyncio.Event()

    async def buying(request: Request) -> Message | str:
        await go_on.wait()
        return " / ".join(told(request)) or tool_call_answer("pay", {"pounds": 4})

    async with over(Agent(FunctionEngine(buying), name="buyer", tools=[pay])) as (ui, _):
        await chat_with(ui, "buyer")
        await ui.write("Pay")
        await ui.sees("an answer is under way")
        await ui.press("a")
        go_on.set()
        await ui.sees("buyer wants to call pay")
        await ui.sees("Tab goes to this call")
        await ui.press(*"arava", "enter")
        prompt = ui.app.screen.query_one(Prompt)
        assert (prompt.text, prompt.has_focus) == ("aarava", True)
        assert ui.app.screen.query_one(Approvals).calls, "nothing was decided"
        await ui.press("tab")
        await ui.until(lambda: ui.app.screen.query_one(Approvals).has_focus, "the focus")
        assert "Tab goes to this call" not in ui.screen
        await ui.press("a")
        await ui.sees("paid 4")
        await answered(ui)
        assert prompt.text == "aarava"


async def test_a_call_takes_no_focus_right_after_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flyball.adapters.tui.prompt._MOMENT", 3600.0)
    go_on = asyncio.Event()

    async def buying(request: Request) -> Message | str:
        await go_on.wait()
        return tool_call_answer("pay", {"pounds": 4})

    async with over(Agent(FunctionEngine(buying), name="buyer", tools=[pay])) as (ui, _):
        await chat_with(ui, "buyer")
        await ui.write("Pay")
        await ui.sees("an answer is under way")
        await ui.press("a", "backspace")
        go_on.set()
        await ui.sees("buyer wants to call pay")
        assert ui.app.screen.query_one(Prompt).has_focus


async def test_a_call_is_decided_by_no_key_right_after_something_else_was_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with over() as (ui, service):
        await service.begin("buyer", asking("Pay"), loop_id="buying")
        ui.app.open_run("buying")
        await ui.sees("buyer wants to call pay")
        await ui.press("f")
        await ui.opens(AskText)
        came_up_long_ago(ui.app.screen_stack[-2], monkeypatch)
        await ui.write("be brief")
        await ui.opens(RunScreen)
        await ui.press("a", "a")
        assert ui.app.screen.query_one(Approvals).calls, "nothing was decided"


async def test_a_chat_goes_on_however_much_was_said() -> None:
    lengths: list[int] = []

    async def much(request: Request) -> str:
        lengths.append(sum([len(message.text) for message in request.messages]))
        return "x" * 9_000_000 if len(lengths) == 1 else "Enough."

    async with over(Agent(FunctionEngine(much), name="much")) as (ui, _):
        await chat_with(ui, "much")
        await ui.write("More")
        await ui.sees("8,980,000 characters more")
        await answered(ui)
        await ui.write("Still more")
        await ui.sees("Enough.")
        await answered(ui)
        assert lengths == [4, 9_000_014]


async def test_a_chat_goes_on_after_an_answer_that_was_cancelled_in_a_call() -> None:
    async def buying(request: Request) -> Message | str:
        return "Not now." if len(request.messages) > 1 else tool_call_answer("pay", {"pounds": 4})

    async with over(Agent(FunctionEngine(buying), name="buyer", tools=[pay])) as (ui, _):
        await chat_with(ui, "buyer")
        await ui.write("Pay")
        await ui.sees("buyer wants to call pay")
        await ui.press("ctrl+x")
        await ui.sees("cancelled")
        await answered(ui)
        await ui.write("And now?")
        await ui.sees("Not now.")
        await answered(ui)

"""The list of runs: live, searched, page by page; what there is when there is nothing."""

from __future__ import annotations

import pytest

from flyball.adapters.tui.dialogs import Help
from flyball.adapters.tui.run import RunScreen
from flyball.adapters.tui.run_rows import RunRow, columns, heading
from flyball.adapters.tui.runs import NONE_YET, RunsScreen
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.service import Service
from tests.adapters.tui.driving import Driven, over

_ASK = {"messages": [{"role": "user", "content": "How much?"}]}


def asking(text: str) -> SystemRequest:
    """A request."""
    return SystemRequest.from_json({"messages": [{"role": "user", "content": text}]})


async def ask(service: Service, agent: str, text: str) -> str:
    """A run that is over; gives its id."""
    return (await service.handle(agent, asking(text))).loop_id


def shown(ui: Driven) -> list[str]:
    """What was asked in the runs that are listed."""
    return [row.run.prompt for row in ui.listing("runs").rows if isinstance(row, RunRow)]


async def test_runs_are_listed_as_they_begin_and_opened_by_enter() -> None:
    async with over() as (ui, service):
        await ui.sees(NONE_YET)
        await ask(service, "echo", "first")
        await ui.until(lambda: shown(ui) == ["first"])
        await ui.until(lambda: ui.screen.split("\n")[0].endswith("· 1 run"))
        await ask(service, "counter", "second")
        await ui.until(lambda: shown(ui) == ["second", "first"])
        assert "complete" in ui.screen
        await ui.press("down", "enter")
        await ui.opens(RunScreen)
        await ui.sees("You said: first")
        await ui.press("escape")
        await ui.opens(RunsScreen)


async def test_a_search_narrows_the_list_and_escape_widens_it() -> None:
    async with over() as (ui, service):
        for text in ("apples", "pears", "plums"):
            await ask(service, "echo", text)
        await ui.until(lambda: len(shown(ui)) == 3)
        await ui.press("slash", "p", "e", "a", "r")
        await ui.until(lambda: shown(ui) == ["pears"])
        await ui.press("enter", "enter")
        await ui.opens(RunScreen)
        await ui.press("escape")
        await ui.opens(RunsScreen)
        await ui.press("slash", "x")
        await ui.sees("Nothing was found")
        await ui.press("escape")
        await ui.until(lambda: len(shown(ui)) == 3)


async def test_more_runs_come_when_one_is_at_the_end() -> None:
    async with over() as (ui, service):
        for number in range(120):
            await ask(service, "echo", f"number {number}")
        await ui.until(lambda: len(shown(ui)) == 100)
        await ui.press("end")
        await ui.until(lambda: len(shown(ui)) == 120)
        assert shown(ui)[-1] == "number 0"


async def test_what_the_server_refuses_is_told() -> None:
    async with over() as (ui, _):
        ui.app.open_run("nothing-there")
        await ui.sees("ORCHESTRATION_LOOP_NOT_FOUND")


async def test_keys_and_themes() -> None:
    async with over(size=(80, 24)) as (ui, _):
        await ui.press("question_mark")
        await ui.opens(Help)
        await ui.sees("these keys")
        await ui.press("escape")
        await ui.opens(RunsScreen)
        await ui.press("ctrl+t")
        await ui.until(lambda: not ui.app.current_theme.dark)
        await ui.press("ctrl+t")
        await ui.until(lambda: ui.app.current_theme.dark)


async def test_the_command_palette_offers_the_agents() -> None:
    async with over() as (ui, _):
        await ui.until(lambda: len(list(ui.app.get_system_commands(ui.app.screen))) > 6)
        titles = [command.title for command in ui.app.get_system_commands(ui.app.screen)]
        assert {"Runs", "Chat with counter", "Chat with echo", "Keys", "Light or dark"} <= set(titles)


@pytest.mark.parametrize("width", [30, 38, 55, 56, 60, 78, 100, 120, 200])
def test_columns_fit_any_width(width: int) -> None:
    assert sum(columns(width).values()) == width
    assert columns(width)["asked"] >= 8
    assert "asked" in heading(width)

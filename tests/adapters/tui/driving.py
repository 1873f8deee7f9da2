"""The application as a test drives it: keys are pressed, and what is on the screen is read."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any, cast

from textual.events import Key, Paste
from textual.pilot import Pilot

from flyball import Agent
from flyball.adapters.tui.app import FlyballApp
from flyball.adapters.tui.lines import text_of
from flyball.adapters.tui.listing import Listing
from flyball.orchestrate.service import Service
from tests.adapters.http.running import here
from tests.patience import PATIENCE

_CHARACTERS = {"slash": "/", "question_mark": "?", "space": " "}


class Driven:
    """An application that is shown to nobody, its keys, and what it shows."""

    def __init__(self, app: FlyballApp, pilot: Pilot[None]) -> None:
        self.app = app
        self.pilot = pilot

    @property
    def screen(self) -> str:
        """All that is on the screen now, line by line."""
        strips = cast("Any", self.app.screen)._compositor.render_strips()
        return "\n".join([strip.text.rstrip() for strip in strips])

    def listing(self, name: str) -> Listing:
        """A listing of the screen that is shown."""
        return self.app.screen.query_one(f"#{name}", Listing)

    def said(self, name: str = "talk") -> str:
        """All that a listing holds, also what is out of sight."""
        listing = self.listing(name)
        return "\n".join([text_of(listing.shown(index)) for index in range(len(listing.rows))])

    async def press(self, *keys: str) -> None:
        """Press keys, one after the other. Unlike the pilot, it does not wait for the process to be idle."""
        for key in keys:
            self.app.post_message(Key(key, _CHARACTERS.get(key, key if len(key) == 1 else None)))
            await self.pilot.pause(0)

    async def write(self, text: str) -> None:
        """Paste a text where the focus is, and press Enter."""
        self.app.post_message(Paste(text))
        await self.press("enter")

    async def until(self, holds: Callable[[], object], what: str = "") -> None:
        """Wait until something holds; what is not there yet holds not."""
        end = time.monotonic() + PATIENCE
        while not _holds(holds):
            assert time.monotonic() < end, f"it did not come to {what or holds}: {self.screen}"
            await asyncio.sleep(0.02)

    async def sees(self, text: str) -> None:
        """Wait until something is on the screen."""
        await self.until(lambda: text in self.screen, repr(text))

    async def opens(self, screen: type[Any]) -> None:
        """Wait until a screen is the one that is shown, and drawn."""
        await self.until(
            lambda: isinstance(self.app.screen, screen) and self.app.screen.is_running, screen.__name__
        )
        await self.pilot.pause(0)


def _holds(holds: Callable[[], object]) -> bool:
    try:
        return bool(holds())
    except LookupError:
        return False


@asynccontextmanager
async def driven(url: str, token: str = "", size: tuple[int, int] = (100, 30)) -> AsyncGenerator[Driven]:
    """The application over a server."""
    app = FlyballApp(url, token)
    app.animation_level = "none"
    async with app.run_test(size=size, tooltips=False, notifications=True) as pilot:
        yield Driven(app, pilot)


@asynccontextmanager
async def over(
    *agents: Agent[Any, Any], size: tuple[int, int] = (100, 30)
) -> AsyncGenerator[tuple[Driven, Service]]:
    """The application over a server of these agents, whose loops are kept in memory."""
    async with here(*agents) as (client, service), driven(str(client.base_url), size=size) as ui:
        yield ui, service


async def chat_with(ui: Driven, agent: str) -> None:
    """Begin a chat with an agent, by the keys that a person presses."""
    from flyball.adapters.tui.chat import ChatScreen
    from flyball.adapters.tui.chats import PickChat

    names = [card.name for card in await ui.app.client.agents()]
    await ui.press("c")
    if len(names) > 1:
        await ui.opens(PickChat)
        await ui.press(*["down"] * names.index(agent), "enter")
    await ui.opens(ChatScreen)

"""What all screens share: a line at the top, and how something that went wrong is said."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Protocol, TypeVar, cast

from textual.content import Content
from textual.screen import Screen
from textual.widgets import Static

from flyball.adapters.tui.client import Client
from flyball.adapters.tui.wrapping import words
from flyball.core.errors import FlyballError

T = TypeVar("T")


class Flyball(Protocol):
    """What a screen needs of the application."""

    client: Client
    """Who asks the server."""

    @property
    def lost(self) -> str:
        """Why the server cannot be reached; empty as long as it can."""
        ...

    def open_run(self, loop_id: str) -> None:
        """Show a run."""
        ...

    def push_screen(self, screen: Screen[Any]) -> object:
        """Show a screen above this one."""
        ...

    def push_screen_wait(self, screen: Screen[T]) -> Awaitable[T]:
        """Show a screen above this one, and wait for what comes of it."""
        ...


class TopLine(Static):
    """Where one is; and that the connection is lost, as long as it is."""

    DEFAULT_CSS = """
    TopLine { dock: top; height: 1; padding: 0 1; background: $panel; color: $foreground; text-wrap: nowrap;
        text-overflow: ellipsis;
        &.-lost { background: $warning; color: $background; text-style: bold; }
    }
    """

    def __init__(self, title: str) -> None:
        super().__init__(markup=False)
        self._title = title
        self._lost = ""

    def on_mount(self) -> None:
        """Say it from the beginning."""
        self._say()

    def say(self, title: str) -> None:
        """Another title."""
        if title != self._title:
            self._title = title
            self._say()

    def lost(self, reason: str) -> None:
        """The connection is lost, or (with no reason) there again."""
        self._lost = reason
        self.set_class(bool(reason), "-lost")
        self._say()

    def _say(self) -> None:
        if self._lost:
            self.update(Content(f"reconnecting…  {words(self._lost, 200)}"))
            return
        self.update(Content.assemble(("flyball ", "bold $text-primary"), Content(words(self._title, 200))))


class Page(Screen[None]):
    """A screen of the application."""

    @property
    def flyball(self) -> Flyball:
        """The application."""
        return cast("Any", self).app

    @property
    def client(self) -> Client:
        """Who asks the server."""
        return self.flyball.client

    def on_screen_resume(self) -> None:
        """The connection may have been lost while another screen was shown."""
        self.lost(self.flyball.lost)

    def lost(self, reason: str) -> None:
        """The connection is lost, or (with no reason) there again."""
        for line in self.query(TopLine):
            line.lost(reason)

    def failed(self, error: FlyballError) -> None:
        """Say what went wrong."""
        self.notify(words(error.message, 400), title=words(error.code, 80), severity="error", markup=False)

    def do(self, work: Awaitable[object]) -> None:
        """Do something that a person asked for; what goes wrong is said."""
        self.run_worker(self._done(work), group="do")

    def send(self, work: Awaitable[object]) -> None:
        """Say what a person wants said: also where the screen is left before the server has heard it."""
        cast("Any", self).app.run_worker(self._done(work), group="send")

    async def _done(self, work: Awaitable[object]) -> None:
        try:
            await work
        except FlyballError as error:
            self.failed(error)

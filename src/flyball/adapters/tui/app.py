"""The application: the screens, what they share, and the command palette."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.screen import Screen

from flyball.adapters.tui.chat import ChatScreen
from flyball.adapters.tui.client import Client
from flyball.adapters.tui.connection import Connection
from flyball.adapters.tui.dialogs import Help, PickAgent
from flyball.adapters.tui.page import Page
from flyball.adapters.tui.run import RunScreen
from flyball.adapters.tui.runs import RunsScreen
from flyball.adapters.tui.wrapping import words
from flyball.core.errors import FlyballError
from flyball.orchestrate.cards import AgentCard

_DARK, _LIGHT = "textual-dark", "textual-light"


class FlyballApp(App[None]):
    """The terminal UI over one server.

    Args:
        url: the server's address.
        token: the bearer token, where the server asks for one.

    Raises:
        UserError: that is no address.
    """

    TITLE = "flyball"
    CSS_PATH = Path(__file__).with_name("style.tcss")
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (144, "-wide")]  # noqa: RUF012 - textual has it so
    VERTICAL_BREAKPOINTS = [(0, "-short"), (24, "-high")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark", "keys", "Keys", key_display="?"),
        Binding("ctrl+t", "toggle_light", "Light or dark", show=False, priority=True),
        Binding("ctrl+q", "quit", "Leave", show=False, priority=True),
    ]

    def __init__(self, url: str, token: str = "") -> None:
        super().__init__()
        connection = Connection(url, token)
        connection.watch = self._watched
        self.client = Client(connection)
        self.lost = ""
        """Why the server cannot be reached; empty as long as it can."""
        self._agents: tuple[AgentCard, ...] = ()

    def get_default_screen(self) -> Screen[None]:
        """All runs."""
        return RunsScreen()

    def on_mount(self) -> None:
        """Ask who is served, for the command palette."""
        self.theme = _DARK
        self.run_worker(self._ask_agents, exit_on_error=False)

    async def on_unmount(self) -> None:
        """Let go of the server."""
        await self.client.connection.aclose()

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette offers."""
        yield SystemCommand("Runs", "All runs, the newest first", self.action_runs)
        for card in self._agents:
            name, model = _unmarked(card.name), _unmarked(card.model)
            yield SystemCommand(f"Chat with {name}", model, partial(self.open_chat, card))
        yield SystemCommand("Keys", "What the keys do", self.action_keys)
        yield SystemCommand("Light or dark", "The other of the two themes", self.action_toggle_light)
        for command in cast("Any", super()).get_system_commands(screen):
            if command.title in ("Theme", "Quit"):
                yield command

    def action_toggle_light(self) -> None:
        """Dark becomes light, and light dark."""
        self.theme = _LIGHT if self.current_theme.dark else _DARK

    def action_keys(self) -> None:
        """Show what the keys do."""
        if not isinstance(self.screen, Help):
            self.push_screen(Help())

    def action_runs(self) -> None:
        """Show all runs."""
        while len(self.screen_stack) > 1:
            self.pop_screen()

    async def action_back(self) -> None:
        """Go back to where one was."""
        if len(self.screen_stack) > 1:
            self.pop_screen()

    @work
    async def action_chat(self) -> None:
        """Ask with whom, where there are several, and begin."""
        try:
            await self._ask_agents()
        except FlyballError as error:
            if isinstance(self.screen, Page):
                self.screen.failed(error)
            return
        name = (
            self._agents[0].name
            if len(self._agents) == 1
            else await self.push_screen_wait(PickAgent(self._agents))
        )
        for card in self._agents:
            if card.name == name:
                self.open_chat(card)

    def open_chat(self, card: AgentCard) -> None:
        """Begin a conversation with an agent."""
        self.push_screen(ChatScreen(card))

    def open_run(self, loop_id: str) -> None:
        """Show a run."""
        self.push_screen(RunScreen(loop_id))

    async def _ask_agents(self) -> None:
        self._agents = await self.client.agents()

    def _watched(self, reason: str) -> None:
        """The server is lost, or there again."""
        self.lost = reason
        for screen in self.screen_stack:
            if isinstance(screen, Page):
                screen.lost(reason)


def _unmarked(text: str) -> str:
    """Text of others for the command palette, which takes what stands in brackets for markup."""
    return words(text, 60).replace("[", "⟦").replace("]", "⟧")

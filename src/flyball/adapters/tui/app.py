"""The application: the screens, what they share, and the command palette."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from textual import work
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.driver import Driver
from textual.events import Event, InputEvent, Paste
from textual.screen import Screen

from flyball.adapters.tui.chat import ChatScreen
from flyball.adapters.tui.chats import PickChat
from flyball.adapters.tui.client import Client
from flyball.adapters.tui.connection import Connection
from flyball.adapters.tui.dialogs import Help
from flyball.adapters.tui.page import Page
from flyball.adapters.tui.pasting import with_whole_pastes
from flyball.adapters.tui.run import RunScreen
from flyball.adapters.tui.runs import RunsScreen
from flyball.adapters.tui.wrapping import words
from flyball.core.errors import FlyballError
from flyball.core.harmless import harmless
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
        self.client.watch = self._tell_lost
        self._reason = ""
        self._agents: tuple[AgentCard, ...] = ()
        self._chats: list[ChatScreen] = []
        """The chats that are open, also those that were left; the last one first."""

    def get_driver_class(self) -> type[Driver]:
        """Whoever speaks to the terminal, and takes for keys only what is no part of a paste."""
        return with_whole_pastes(super().get_driver_class())

    async def on_event(self, event: Event) -> None:
        """What is pasted is what others wrote: it is harmless before anything takes it."""
        if isinstance(event, InputEvent | Paste) and not self.screen_stack:
            return  # the application ends: what is typed still is for nobody
        if isinstance(event, Paste):
            # Most terminals send the ends of pasted lines as Enter is sent: as carriage returns.
            event.text = harmless(event.text.replace("\r\n", "\n").replace("\r", "\n"))
        await super().on_event(event)

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
        for chat in self._open_chats():
            name, about = _unmarked(chat.agent.name), _unmarked(f"{chat.about} {chat.standing}")
            yield SystemCommand(f"Back to chat with {name}", about, partial(self.go_back_to, chat))
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
        """Ask with whom, where there is a choice: go back to a chat, or begin one."""
        chats = self._open_chats()
        try:
            await self._ask_agents()
        except FlyballError as error:
            if isinstance(self.screen, Page):
                self.screen.failed(error)
            if not chats:
                return
        chosen: ChatScreen | AgentCard | None = self._agents[0] if len(self._agents) == 1 else None
        if chats or chosen is None:
            chosen = await self.push_screen_wait(PickChat(chats, self._agents, self._close))
        if isinstance(chosen, ChatScreen):
            self.go_back_to(chosen)
        elif chosen is not None:
            self.open_chat(chosen)

    def open_chat(self, card: AgentCard) -> None:
        """Begin a conversation with an agent. It stays until the application is left."""
        chat = ChatScreen(card)
        self._chats.insert(0, chat)
        cast("Any", self).install_screen(chat, chat.session_id)  # else it ends when it is left
        self.push_screen(chat)

    def go_back_to(self, chat: ChatScreen) -> None:
        """Show a chat again that was left."""
        self._chats.remove(chat)
        self._chats.insert(0, chat)
        if chat in self.screen_stack:
            while self.screen is not chat:
                self.pop_screen()
        else:
            self.push_screen(chat)

    def _open_chats(self) -> list[ChatScreen]:
        """The chats that one can go back to. Where nothing was said or written there is nothing to keep."""
        left = [chat for chat in self._chats if chat not in self.screen_stack]
        for chat in left:
            if chat.is_empty:
                self._close(chat)
        return [chat for chat in self._chats if chat is not self.screen]

    def _close(self, chat: ChatScreen) -> None:
        """Let go of a chat; what runs in it goes on with the server."""
        self._chats.remove(chat)
        cast("Any", self).uninstall_screen(chat)
        chat.remove()

    def open_run(self, loop_id: str) -> None:
        """Show a run."""
        self.push_screen(RunScreen(loop_id))

    async def _ask_agents(self) -> None:
        self._agents = await self.client.agents()

    @property
    def lost(self) -> str:
        """Why the server cannot be reached, and what waits for it; empty as long as it can be."""
        waits = "what was said will be sent when the server is back · "
        return f"{waits}{self._reason}" if self._reason and self.client.owed else self._reason

    def _watched(self, reason: str) -> None:
        """The server is lost, or there again."""
        self._reason = reason
        for screen in self.screen_stack:
            if isinstance(screen, Page):
                screen.lost(self.lost)

    def _tell_lost(self) -> None:
        """There is more, or less, that waits for the server."""
        if self._reason:
            self._watched(self._reason)


def _unmarked(text: str) -> str:
    """Text of others for the command palette, which takes what stands in brackets for markup."""
    return words(text, 60).replace("[", "⟦").replace("]", "⟧")

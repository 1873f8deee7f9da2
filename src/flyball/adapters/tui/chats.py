"""With whom to talk: the chats that are open, and under them the agents that a new one can be begun with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Label, OptionList
from textual.widgets.option_list import Option

from flyball.adapters.tui.chat import ChatScreen
from flyball.adapters.tui.dialogs import BACK
from flyball.adapters.tui.wrapping import words
from flyball.orchestrate.cards import AgentCard


class PickChat(ModalScreen[ChatScreen | AgentCard | None]):
    """Asks with whom to talk: gives a chat to go back to, or an agent to begin one with."""

    BINDINGS: ClassVar[list[BindingType]] = [*BACK, Binding("delete", "close_chat", "Close the chat")]

    def __init__(
        self, chats: Sequence[ChatScreen], agents: Sequence[AgentCard], close: Callable[[ChatScreen], None]
    ) -> None:
        """`chats` are those that are open, the last one first; `close` lets go of one."""
        super().__init__()
        self._chats = list(chats)
        self._close = close
        self._agents = agents
        self._options = OptionList()

    def compose(self) -> ComposeResult:
        """The chats, and the agents."""
        keys = (
            "Enter chooses · Del closes a chat · Esc goes back"
            if self._chats
            else "Enter chooses · Esc goes back"
        )
        with Vertical(classes="dialog"):
            yield Label("Back to a chat, or a new one" if self._chats else "Chat with", classes="title")
            yield self._options
            yield Label(keys, classes="hint")

    def on_mount(self) -> None:
        """Show them, the first one chosen."""
        self._show(0)

    def _show(self, chosen: int) -> None:
        between = [None] if self._chats and self._agents else []
        chats, agents = [_chat(chat) for chat in self._chats], [_agent(card) for card in self._agents]
        self._options.clear_options()
        self._options.add_options([*map(Option, chats), *between, *map(Option, agents)])
        self._options.highlighted = chosen

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """One was chosen."""
        self.dismiss([*self._chats, *self._agents][event.option_index])

    def action_close_chat(self) -> None:
        """Let go of the chosen chat. What runs in it goes on."""
        chosen = self._options.highlighted
        if chosen is not None and chosen < len(self._chats):
            self._close(self._chats.pop(chosen))
            self._show(chosen)


def _chat(chat: ChatScreen) -> Content:
    return Content.assemble(
        ("↩ ", "bold"),
        (words(chat.agent.name, 60), "bold"),
        "  ",
        words(chat.about, 60),
        "  ",
        (chat.standing, "dim"),
    )


def _agent(card: AgentCard) -> Content:
    tools = ", ".join([tool.name for tool in card.tools])
    about = card.description or (f"tools: {tools}" if tools else "")
    return Content.assemble(
        (words(card.name, 60), "bold"),
        "  ",
        (words(card.model, 60), "dim"),
        "  ",
        (words(about, 200), "dim"),
    )

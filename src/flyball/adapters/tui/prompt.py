"""Prompt: where one writes what is to be said."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea


class Prompt(TextArea):
    """Some lines to write in. Enter sends them; what is pasted keeps its lines."""

    DEFAULT_CSS = """
    Prompt { height: auto; max-height: 8; border: round $primary 50%; padding: 0 1; background: $background;
        &:focus { border: round $primary; }
        &:disabled { border: round $foreground 20%; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+j", "new_line", "New line", show=False)]

    class Said(Message):
        """Something was said."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    def __init__(self, placeholder: str) -> None:
        super().__init__(
            placeholder=placeholder, show_line_numbers=False, compact=False, tab_behavior="focus"
        )

    async def _on_key(self, event: events.Key) -> None:
        if event.key != "enter":
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        text = self.text.strip()
        if text:
            self.clear()
            self.post_message(self.Said(text))

    def action_new_line(self) -> None:
        """Begin another line."""
        self.insert("\n")

"""Prompt: where one writes what is to be said. What is written stays until it can be said."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.widgets import TextArea

_MOMENT = 1.0
"""Seconds for which who has typed something is taken to go on typing."""


class Prompt(TextArea):
    """Some lines to write in. Enter sends them; what is pasted keeps its lines.

    One that is held takes what is written as ever, but Enter does not send it: it says why, and nothing is
    lost.
    """

    DEFAULT_CSS = """
    Prompt { height: auto; max-height: 8; border: round $primary 50%; padding: 0 1; background: $background;
        &:focus { border: round $primary; }
        &.-held { border: round $foreground 40%; border-subtitle-color: $foreground 60%; }
        &.-refused { border: round $warning; border-subtitle-color: $text-warning; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+j", "new_line", "New line", show=False)]

    class Said(Message):
        """Something was said."""

        def __init__(self, text: str) -> None:
            self.text = text
            super().__init__()

    def __init__(self, placeholder: str, then: str = "") -> None:
        """`then` is why it is held as soon as something was said, until somebody lets go of it."""
        super().__init__(
            placeholder=placeholder, show_line_numbers=False, compact=False, tab_behavior="focus"
        )
        self._then = then
        self._held = ""
        self._typed = 0.0

    @property
    def is_held(self) -> bool:
        """Whether nothing can be said now."""
        return bool(self._held)

    @property
    def is_in_use(self) -> bool:
        """Whether somebody writes here: the focus is not to be taken from him."""
        is_typing = time.monotonic() - self._typed < _MOMENT
        return self.has_focus and (bool(self.text) or is_typing)

    def hold(self, why: str) -> None:
        """Send nothing for now, and say why; with no reason, send again."""
        self._held = why
        self.border_subtitle = why
        self.set_class(bool(why), "-held")
        self.remove_class("-refused")

    async def _on_key(self, event: events.Key) -> None:
        if event.key != "enter":
            self._typed = 0.0 if event.key == "escape" else time.monotonic()
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        text = self.text.strip()
        if text and self._held:
            self.border_subtitle = f"not sent yet: {self._held}"
            self.add_class("-refused")
        elif text:
            self._typed = 0.0
            self.clear()
            self.hold(self._then)
            self.post_message(self.Said(text))

    def action_new_line(self) -> None:
        """Begin another line."""
        self.insert("\n")

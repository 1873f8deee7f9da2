"""What is asked in the middle of something: a text, how to fork. All of a call. And the keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Label, Select, Static

from flyball.adapters.tui.client import Fork
from flyball.adapters.tui.listing import Listing
from flyball.adapters.tui.rows import CallRow
from flyball.adapters.tui.wrapping import words
from flyball.core.messages import ToolCall
from flyball.orchestrate.cards import ModelCard

BACK: list[BindingType] = [Binding("escape", "dismiss(None)", "Back")]


class AskText(ModalScreen[str | None]):
    """Asks for a text; None where nobody wants to say anything after all."""

    BINDINGS: ClassVar[list[BindingType]] = BACK

    def __init__(self, title: str, hint: str, *, may_be_empty: bool = False) -> None:
        super().__init__()
        self._title = title
        self._hint = hint
        self._may_be_empty = may_be_empty

    def compose(self) -> ComposeResult:
        """The question, and room for the answer."""
        with Vertical(classes="dialog"):
            yield Label(Content(self._title), classes="title")
            yield Input(placeholder=self._hint, compact=True)
            yield Label("Enter sends it · Esc goes back", classes="hint")

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """It was answered."""
        text = event.value.strip()
        if text or self._may_be_empty:
            self.dismiss(text)


class _Models(Select[str]):
    """The models. Enter goes on, as it does in all that is asked; the list is opened by other keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "go_on", "Go on", show=False)]

    class Chosen(Message):
        """Whatever is chosen is to be taken."""

    def action_go_on(self) -> None:
        """Take what is chosen."""
        self.post_message(self.Chosen())


class AskFork(ModalScreen[Fork | None]):
    """Asks after which turn to fork, and with what changed."""

    BINDINGS: ClassVar[list[BindingType]] = BACK

    def __init__(self, turn: int, turns: int, models: Sequence[ModelCard]) -> None:
        super().__init__()
        self._turn = turn
        self._turns = turns
        self._models = models

    def compose(self) -> ComposeResult:
        """The turn, the prompt and the model."""
        models = [(Content(words(model.name, 60)), model.name) for model in self._models]
        with Vertical(classes="dialog"):
            yield Label("Fork this run", classes="title")
            yield Label(f"It shares the first turns, up to number (0 to {self._turns}):")
            yield Input(str(self._turn), type="integer", id="turn", compact=True)
            yield Label("Another prompt, if it is to be another:")
            yield Input(placeholder="as it was", id="prompt", compact=True)
            yield Label("Another model:")
            yield _Models(models, prompt="as it was", id="model", compact=True)
            yield Label("Enter forks · Space opens the list of models · Esc goes back", classes="hint")

    @on(Input.Submitted)
    @on(_Models.Chosen)
    def fork(self) -> None:
        """Fork it."""
        turn = self.query_one("#turn", Input)
        if not turn.value.isdecimal():
            turn.focus()
            return
        prompt = self.query_one("#prompt", Input).value.strip()
        chosen = self.query_one("#model", _Models).value
        self.dismiss(Fork(int(turn.value), prompt or None, chosen if isinstance(chosen, str) else None))


class ShowCall(ModalScreen[None]):
    """All of a tool call that waits."""

    BINDINGS: ClassVar[list[BindingType]] = BACK

    def __init__(self, call: ToolCall) -> None:
        super().__init__()
        self._call = call

    def compose(self) -> ComposeResult:
        """The call, unfolded."""
        with Vertical(classes="dialog -tall"):
            yield Label(Content(words(self._call.name, 60)), classes="title")
            yield Listing()
            yield Label("Enter shows more · Esc goes back", classes="hint")

    def on_mount(self) -> None:
        """Unfold it."""
        listing = self.query_one(Listing)
        listing.show([CallRow("call", self._call)])
        listing.focus()
        listing.action_open()


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *BACK,
        Binding("question_mark,q,enter", "dismiss(None)", "Back"),
    ]

    def compose(self) -> ComposeResult:
        """A line a key."""
        with VerticalScroll(classes="dialog -tall"):
            for title, keys in KEYS.items():
                yield Label(title, classes="title")
                lines = [f"  {key:<14} {what}" for key, what in keys.items()]
                yield Static(Content("\n".join([*lines, ""])))


KEYS: dict[str, dict[str, str]] = {
    "Everywhere": {
        "?": "these keys",
        "Ctrl-P": "all commands",
        "Ctrl-T": "dark or light",
        "Tab": "the next part of the screen",
        "↑ ↓ PgUp PgDn": "go through it",
        "Enter": "open or unfold; again: more of what is long",
        "Esc": "back",
        "Ctrl-Q": "leave; what runs goes on with its server",
    },
    "Runs": {"/": "search", "c": "chat with an agent, or go back to a chat", "Enter": "open a run"},
    "A run": {
        "Enter": "a model call: what was sent; a tool call: unfold it",
        "a, r": "approve or reject what waits; v shows all of it",
        "g": "give the result that a call waits for",
        "p, u": "pause; resume (also a run that nobody drives)",
        "x": "cancel",
        "t": "try a failed run again",
        "f": "feedback: say something to the model",
        "k": "fork at the chosen turn: another prompt or model",
    },
    "Chat": {
        "Enter": "send, once no answer is under way; Ctrl-J begins a new line",
        "Ctrl-X": "cancel the answer",
        "Ctrl-G": "give the result that a call waits for",
        "Ctrl-O": "open the last run",
        "Tab": "to the call that waits; to what was said, where Enter unfolds tool calls",
        "Esc": "leave it: it goes on, and c comes back to it",
    },
}

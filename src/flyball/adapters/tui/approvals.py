"""The calls that wait for a person: shown one by one, to be approved, or rejected with a reason."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.events import Key
from textual.message import Message
from textual.widgets import Button, Input, Static

from flyball.adapters.tui.rows import pretty
from flyball.adapters.tui.wrapping import words, wrapped
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.family import WaitingCall

_MOMENT = 1.0
"""Seconds for which no key decides about a call that has just come up: it was meant for something else."""
_KEYS = "arv"
"""What is pressed here to decide, or to see more: any other character is part of a text."""
_SHOWN = 6
"""Lines of the arguments that are shown: `v` shows all."""


class Approvals(Vertical, can_focus=True):
    """The first of the calls that wait. It is not there while none does."""

    DEFAULT_CSS = """
    Approvals {
        display: none; height: auto; max-height: 14; padding: 0 1;
        border: round $warning; background: $background;
        &.-waiting { display: block; }
        &:focus, &:focus-within { border: heavy $warning; }
        Static { height: auto; }
        Horizontal { height: 1; margin-top: 1; }
        Button { min-width: 12; margin-right: 1; }
        Input { display: none; margin-top: 1; }
        &.-why Input { display: block; }
        &.-why Horizontal { display: none; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("a", "approve", "Approve"),
        Binding("r", "reject", "Reject"),
        Binding("v", "view", "All of it"),
        Binding("escape", "leave_it", "Back", show=False),
    ]

    class Decided(Message):
        """Somebody has decided about a call of a loop."""

        def __init__(self, loop_id: str, signal: Signal) -> None:
            self.loop_id = loop_id
            self.signal = signal
            super().__init__()

    class Viewed(Message):
        """Somebody wants to see all of a call."""

        def __init__(self, call: WaitingCall) -> None:
            self.call = call
            super().__init__()

    def __init__(self) -> None:
        super().__init__()
        self._call = Static(id="call", markup=False)
        self._why = Input(
            placeholder="Why not? The model reads it. Enter rejects, Esc goes back.", id="why", compact=True
        )
        self._calls: tuple[WaitingCall, ...] = ()
        self._decided: set[tuple[str, str]] = set()
        self._since = 0.0
        self._viewed = False

    def compose(self) -> ComposeResult:
        """The call, and what may be said about it."""
        yield self._call
        with Horizontal():
            yield Button("Approve (a)", variant="success", id="approve", compact=True)
            yield Button("Reject (r)", variant="error", id="reject", compact=True)
            yield Button("All of it (v)", id="view", compact=True)
        yield self._why

    @property
    def calls(self) -> tuple[WaitingCall, ...]:
        """The calls that wait for an approval, and about which nothing was said yet."""
        return self._calls

    def show(self, calls: Sequence[WaitingCall]) -> bool:
        """Show what waits now; says whether it came up with this."""
        known = {(one.loop_id, one.call.id) for one in calls}
        self._decided &= known
        approvals = [one for one in calls if one.wants == "approval"]
        before, self._calls = self._calls, tuple([one for one in approvals if _key(one) not in self._decided])
        self.set_class(bool(self._calls), "-waiting")
        if self._calls and self._calls[:1] != before[:1]:
            self.remove_class("-why")
            self._why.value = ""
            self._since = time.monotonic()
            self.border_subtitle = ""
        if self._calls:
            self._draw(self._calls[0])
        return bool(self._calls) and not before

    def come_back(self) -> None:
        """Somebody comes back to it: no key decides at once, unless he has looked at all of the call."""
        if not self._viewed:
            self._since = time.monotonic()
        self._viewed = False

    def _draw(self, waiting: WaitingCall) -> None:
        call, more = waiting.call, len(self._calls) - 1
        others = f" (and {more} more)" if more else ""
        what = "would answer" if waiting.answer else f"wants to call {words(call.name, 60)}"
        asks = f"{words(waiting.agent, 40)} {what}{others}"
        width = self.content_size.width or 70
        who, lines = wrapped(asks, width, 200), wrapped(pretty(call.args_json), width, 2_000)
        room = max(self.content_size.height - 1 - len(who), 0) if self.screen.has_class("-short") else _SHOWN
        if len(lines) > room >= len(short := wrapped(call.args_json, width, 2_000)):
            lines = short
        left = len(lines) - room
        shown = lines if left <= 0 else [*lines[: room - 1], f"… {left + 1} lines more"] if room else []
        text = "\n".join(["", *shown])
        self._call.update(Content.assemble(("\n".join(who), "bold $text-warning"), text))

    def on_resize(self) -> None:
        """There is room for more of it, or for less."""
        if self._calls:
            self._draw(self._calls[0])

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """The same as the keys."""
        event.stop()
        if event.button.id == "approve":
            self.action_approve()
        elif event.button.id == "reject":
            self.action_reject()
        else:
            self.action_view()

    def on_key(self, event: Key) -> None:
        """Who goes on typing has not seen yet what came up; nor has who writes here what is no key of it."""
        is_text = event.is_printable and event.key not in _KEYS
        if self._is_new or is_text:
            self._since = time.monotonic()
            self.border_subtitle = "not yet: nothing is decided while somebody types"
            self.set_timer(_MOMENT, self._let_decide)

    def _let_decide(self) -> None:
        if not self._is_new:
            self.border_subtitle = ""

    @property
    def _is_new(self) -> bool:
        """Whether the call has just come up."""
        return time.monotonic() - self._since < _MOMENT

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """The reason was given."""
        event.stop()
        self._decide(SignalType.REJECT, event.value.strip())

    def action_approve(self) -> None:
        """Let the call run."""
        if not self._is_new:
            self._decide(SignalType.APPROVE)

    def action_reject(self) -> None:
        """Ask for the reason."""
        if not self._is_new:
            self._ask_why()

    def _ask_why(self) -> None:
        if self._calls:
            self.add_class("-why")
            self._why.focus()

    def action_view(self) -> None:
        """Show all of the call."""
        if self._calls:
            self._viewed = True
            self.post_message(self.Viewed(self._calls[0]))

    def action_leave_it(self) -> None:
        """Give no reason after all."""
        self.remove_class("-why")
        self.focus()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Going back is for the screen, unless a reason is asked for."""
        del parameters
        return self.has_class("-why") if action == "leave_it" else True

    def _decide(self, kind: SignalType, text: str = "") -> None:
        if not self._calls:
            return
        waiting = self._calls[0]
        self._decided.add(_key(waiting))
        self.post_message(self.Decided(waiting.loop_id, Signal(kind, text=text, call_id=waiting.call.id)))
        self.show(self._calls)
        if self._calls:
            self.focus()

    def take_back(self, call_id: str) -> None:
        """What was said about a call did not arrive: it waits still."""
        self._decided = {key for key in self._decided if key[1] != call_id}


def _key(waiting: WaitingCall) -> tuple[str, str]:
    return waiting.loop_id, waiting.call.id

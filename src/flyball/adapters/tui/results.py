"""The calls that wait for their results from outside: which they are, and somebody who gives one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec
from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Checkbox, Label, Static

from flyball.adapters.tui.dialogs import BACK
from flyball.adapters.tui.page import Page
from flyball.adapters.tui.prompt import Prompt
from flyball.adapters.tui.rows import pretty
from flyball.adapters.tui.wrapping import words, wrapped
from flyball.core.deferred import DeferredToolResult
from flyball.core.errors import FlyballError
from flyball.orchestrate.family import WaitingCall

_SHOWN = 6
"""Lines of the arguments that are shown."""


class Outside(Static):
    """The first of the calls that wait for a result. It is not there while none does."""

    DEFAULT_CSS = """
    Outside {
        display: none; height: auto; max-height: 2; padding: 0 1; background: $panel; color: $text-warning;
        &.-waiting { display: block; }
    }
    """

    def __init__(self, key: str) -> None:
        """`key` is what somebody presses to give a result."""
        super().__init__(markup=False)
        self.calls: tuple[WaitingCall, ...] = ()
        """The calls that wait for a result, and whose results were not given here."""
        self._key = key
        self._all: Sequence[WaitingCall] = ()
        self._given: set[tuple[str, str]] = set()

    def show(self, calls: Sequence[WaitingCall]) -> bool:
        """Show what waits now; says whether it came up with this."""
        before = self.calls
        self._all = [one for one in calls if one.wants == "result"]
        self._given &= {_known_by(one) for one in self._all}
        self.calls = tuple([one for one in self._all if _known_by(one) not in self._given])
        self.set_class(bool(self.calls), "-waiting")
        if self.calls:
            call, more = self.calls[0], len(self.calls) - 1
            others = f", and {more} more" if more else ""
            told = f"{words(call.agent, 40)} waits for the result of {words(call.call.name, 60)}{others}"
            self.update(Content(f"⧗ {told}: {self._key} gives it  {words(call.call.args_json, 60)}"))
        return bool(self.calls) and not before

    async def give(self, page: Page, given: Callable[[], None]) -> None:
        """Ask for the result of the first call, and give it. `given` is called once the loop has it."""
        if not self.calls:
            return
        waiting = self.calls[0]
        result = await page.flyball.push_screen_wait(AskResult(waiting))
        if result is not None:
            self._given.add(_known_by(waiting))
            self.show(self._all)
            page.send(self._send(page, waiting, result, given))

    async def _send(
        self, page: Page, waiting: WaitingCall, result: DeferredToolResult, given: Callable[[], None]
    ) -> None:
        try:
            await page.client.answer(waiting.loop_id, result)
        except FlyballError:
            self._given.discard(_known_by(waiting))
            raise
        given()


class AskResult(ModalScreen[DeferredToolResult | None]):
    """Asks for the result of a call; None where nobody wants to give it after all."""

    BINDINGS: ClassVar[list[BindingType]] = BACK

    def __init__(self, waiting: WaitingCall) -> None:
        super().__init__()
        self._waiting = waiting
        self._failed = Checkbox("It went wrong, and this says why", compact=True)

    def compose(self) -> ComposeResult:
        """The call, room for its result, and whether it is one."""
        call = self._waiting.call
        lines = wrapped(pretty(call.args_json), 60, 2_000)
        more = [] if len(lines) <= _SHOWN else [f"… {len(lines) - _SHOWN} lines more"]
        with Vertical(classes="dialog"):
            yield Label(Content(f"The result of {words(call.name, 60)}"), classes="title")
            yield Static(Content("\n".join([*lines[:_SHOWN], *more])))
            yield Prompt("Text, or JSON")
            yield self._failed
            yield Label("Enter gives it · Tab, Space: it went wrong · Esc goes back", classes="hint")

    def on_mount(self) -> None:
        """Somebody is about to write."""
        self.query_one(Prompt).focus()

    @on(Prompt.Said)
    def give(self, event: Prompt.Said) -> None:
        """It was written."""
        call, failed = self._waiting.call, self._failed.value
        content = event.text if failed else as_content(event.text)
        self.dismiss(DeferredToolResult(call.name, call.id, content, failed))


def as_content(text: str) -> Any:
    """What was written: JSON as what it says, and any other text as it is."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def _known_by(waiting: WaitingCall) -> tuple[str, str]:
    return waiting.loop_id, waiting.call.id

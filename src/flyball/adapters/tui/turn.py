"""A turn: exactly what was sent, what came back, what decided."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer

from flyball.adapters.tui.listing import Listing
from flyball.adapters.tui.page import Page, TopLine
from flyball.adapters.tui.turn_rows import turn_rows
from flyball.orchestrate.projections.shortened import short


class TurnScreen(Page):
    """One turn of a run, as it is recorded."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "app.back", "Back")]

    def __init__(self, loop_id: str, turn: int) -> None:
        super().__init__()
        self._loop_id = loop_id
        self._turn = turn
        self._listing = Listing(empty="…", id="turn")

    def compose(self) -> ComposeResult:
        """What there is to it."""
        yield TopLine(f"· run {short(self._loop_id)} · turn {self._turn}")
        yield self._listing
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Ask for it."""
        self._listing.focus()
        self.do(self._look())

    async def _look(self) -> None:
        told = await self.client.why(self._loop_id, self._turn)
        self._listing.show(turn_rows(told))

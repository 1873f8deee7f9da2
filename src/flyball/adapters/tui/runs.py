"""The list of runs: live, searched, page by page."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Footer, Input, Static
from textual.worker import Worker

from flyball.adapters.tui.connection import Unreachable
from flyball.adapters.tui.listing import Listing
from flyball.adapters.tui.page import Page, TopLine
from flyball.adapters.tui.run_rows import RunRow, heading
from flyball.core.errors import FlyballError
from flyball.orchestrate.projections.shortened import several
from flyball.orchestrate.projections.summary import LoopSummary

_EVERY = 2.0
_TYPING = 0.15
"""Seconds of rest after which what was typed is searched for."""
NONE_YET = "There are no runs yet. c begins a chat with an agent, ? shows the keys."


class RunsScreen(Page):
    """All runs, the newest first. It asks for them every two seconds while it is shown."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Search", key_display="/"),
        Binding("c", "app.chat", "Chat"),
        Binding("escape", "forget", "All runs", show=False),
    ]

    def __init__(self) -> None:
        super().__init__()
        # Held, not looked for: what is told may come when the screen is being left.
        self._top = TopLine("· runs")
        self._search = Input(
            placeholder="Search in prompts, answers, agents, ids. Esc shows all.", id="search", compact=True
        )
        self._heading = Static(id="heading", markup=False)
        self._runs = Listing(empty="…", id="runs")
        self._found: dict[str, LoopSummary] = {}
        self._next = ""
        self._went_on = False
        """Whether more was asked for than the first page: then what was found is kept."""
        self._text = ""
        self._looking: Worker[None] | None = None

    def compose(self) -> ComposeResult:
        """The search, and the runs."""
        yield self._top
        yield self._search
        yield self._heading
        yield self._runs
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to look."""
        self._runs.focus()
        self._begin(0)

    def on_screen_resume(self) -> None:
        """What was done elsewhere is seen at once."""
        super().on_screen_resume()
        self._begin(0)

    def on_screen_suspend(self) -> None:
        """Nobody looks."""
        if self._looking is not None:
            self._looking.cancel()

    def on_resize(self) -> None:
        """The columns are as wide as there is room."""
        self._heading.update(Content(f" {heading(self.size.width - 2)}"))

    def action_search(self) -> None:
        """Ask what to search for."""
        self._search.add_class("-shown")
        self._search.focus()

    def action_forget(self) -> None:
        """Show all again."""
        self._search.value = ""
        self._search.remove_class("-shown")
        self._runs.focus()

    @on(Input.Changed, "#search")
    def search_for(self, event: Input.Changed) -> None:
        """Something is typed."""
        text = event.value.strip()
        if text != self._text:
            self._text = text
            self._begin(_TYPING)

    @on(Input.Submitted, "#search")
    def to_what_was_found(self) -> None:
        """Go on with the keys."""
        self._runs.focus()

    @on(Listing.Opened)
    def open_run(self, event: Listing.Opened) -> None:
        """Show a run."""
        if isinstance(event.row, RunRow):
            self.flyball.open_run(event.row.run.loop_id)

    @on(Listing.Moved)
    def at_the_end(self, event: Listing.Moved) -> None:
        """Whoever is at the last run wants to see more."""
        if self._next and event.listing.chosen is event.listing.rows[-1]:
            cursor, self._next, self._went_on = self._next, "", True
            self.do(self._more(cursor))

    def _begin(self, rest: float) -> None:
        self._looking = self.run_worker(
            partial(self._look_on, self._text, rest), group="runs", exclusive=True
        )

    async def _look_on(self, text: str, rest: float) -> None:
        await asyncio.sleep(rest)
        self._went_on, told = False, ""
        while True:
            try:
                page = await self.client.loops(text)
                told = ""
                if not self._went_on:
                    self._found, self._next = {}, page.next
                self._show(page.loops)
            except Unreachable:
                pass
            except FlyballError as error:
                if error.code != told:  # it is said once, and stays at the top for as long as it is so
                    told = error.code
                    self.failed(error)
                self._top.say(f"· {error.code}: {error.message}")
            await asyncio.sleep(_EVERY)

    async def _more(self, cursor: str) -> None:
        page = await self.client.loops(self._text, cursor)
        self._next = page.next
        self._show(page.loops)

    def _show(self, loops: tuple[LoopSummary, ...]) -> None:
        self._found |= {one.loop_id: one for one in loops}
        runs = sorted(self._found.values(), key=lambda run: run.started_at, reverse=True)
        listing, now = self._runs, time.time()
        listing.empty = "Nothing was found. Esc shows all runs." if self._text else NONE_YET
        listing.show([RunRow(run.loop_id, run, now) for run in runs])
        under_way = sum([run.stage not in ("complete", "failed", "cancelled", "") for run in runs])
        found = f"{len(runs)}+ runs" if self._next else several(len(runs), "run")
        having = f" with {self._text!r}" if self._text else ""
        self._top.say(f"· {found}{having}" + (f", {under_way} not over" if under_way else ""))

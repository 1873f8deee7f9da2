"""A conversation with an agent. Each message begins a run, which is followed like any other.

A chat that is left goes on, and one can come back to it: with what was said, and what was about to be. What
was said before goes along with each message: by the run in which it was said, however much it is. A
connection that breaks loses nothing: the run goes on with the server, and is followed from where it was left.
Who writes while an answer comes is left alone: what he writes waits until it can be sent, and a call that
comes up takes the focus from nobody who writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import Footer

from flyball.adapters.tui.approvals import Approvals
from flyball.adapters.tui.dialogs import ShowCall
from flyball.adapters.tui.following import Following
from flyball.adapters.tui.listing import Listing
from flyball.adapters.tui.page import Page, TopLine
from flyball.adapters.tui.prompt import Prompt
from flyball.adapters.tui.results import Outside
from flyball.adapters.tui.rows import NoteRow, Row, TextRow
from flyball.adapters.tui.wrapping import words
from flyball.core.errors import FlyballError
from flyball.core.ids import new_id
from flyball.core.messages import user
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.cards import AgentCard
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.family import WaitingCall

_DRAWN = 0.1
"""Seconds between two looks at what has come."""


class ChatScreen(Page):
    """A conversation: what was said, what waits, and where to say more."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.back", "Back"),
        Binding("tab", "go_on", "Next part", show=False),
        Binding("ctrl+x", "cancel", "Cancel", priority=True),
        Binding("ctrl+g", "give", "Give the result", priority=True),
        Binding("ctrl+o", "open_last", "Open the run", priority=True),
    ]

    def __init__(self, agent: AgentCard) -> None:
        super().__init__()
        self.agent = agent
        # Held, not looked for: what is told may come when the screen is being left.
        self._talk = Listing(
            empty="Say something, below. Each answer is a run of its own.", follows=True, id="talk"
        )
        self._approvals = Approvals()
        self._outside = Outside("Ctrl-G")
        self._prompt = Prompt("Say something…", then="an answer is under way, Ctrl-X cancels it")
        self.session_id = new_id()
        self.after = ""
        """The run that the next one goes on from: the server knows what was said there."""
        self.last_run = ""
        self.about = ""
        """What was said first: what it is known by among others."""
        self._before: list[Row] = []
        self._said = ""
        self._following: Following | None = None

    def compose(self) -> ComposeResult:
        """What was said, what waits, and where to say more."""
        yield TopLine(f"· chat with {self.agent.name} · {self.agent.model}")
        yield self._talk
        yield self._outside
        yield self._approvals
        yield self._prompt
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Ready to listen."""
        self._prompt.focus()
        self.set_interval(_DRAWN, self._draw)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was said or written yet."""
        return not (self.about or self._prompt.text)

    @property
    def standing(self) -> str:
        """How it stands, in a few words."""
        if self._approvals.calls or self._outside.calls:
            return "(a call waits for you)"
        if self._following is not None:
            return "(an answer is under way)"
        return "(something is written, and not sent)" if self._prompt.text else ""

    def on_screen_resume(self) -> None:
        """It is shown again, to somebody who may be typing already."""
        super().on_screen_resume()
        self._approvals.come_back()

    @on(Prompt.Said)
    def say(self, event: Prompt.Said) -> None:
        """Begin a run with what was said."""
        self.about = self.about or event.text
        self._said, loop_id = event.text, new_id()
        self._following = Following(
            self.client, loop_id, changed=self._look_again, failed=self.failed, name=f"{loop_id}."
        )
        self._following.transcript.is_drawn = False
        self.refresh_bindings()
        self.run_worker(partial(self._answer, event.text, self._following), group="answer", exclusive=True)

    async def _answer(self, text: str, following: Following) -> None:
        request = SystemRequest(session_id=self.session_id, messages=(user(text),))
        try:
            await self.client.begin(self.agent.name, request, following.loop_id, self.after)
            await following.run()
        except FlyballError as error:
            self._before += [
                TextRow(f"{following.loop_id}?", "you", text, "person"),
                NoteRow(f"{following.loop_id}!", "✘", f"{error.code}: {error.message}", "bad"),
            ]
        self._end(following)

    def _end(self, following: Following) -> None:
        """The answer is there, or will not come: somebody may say more."""
        transcript = following.transcript
        self._before += transcript.rows()
        self._following = None
        if transcript.is_over:
            self.after = following.loop_id if transcript.history else ""
        self.last_run = following.loop_id
        self.refresh_bindings()
        self._talk.show(self._before)
        self._prompt.hold("")
        self._wait_for(())

    def _draw(self) -> None:
        """Draw what has come since the last time."""
        following = self._following
        if following is None or not self.is_current:
            return
        transcript, shown = following.transcript, len(self._before)
        if not transcript.is_drawn:
            rows = transcript.rows() or [TextRow("said", "you", self._said, "person")]
            self._talk.show([*self._before, *rows], shown + transcript.changed)
            transcript.drawn()

    def _look_again(self) -> None:
        """It was told anew how the run stands."""
        if self._following is not None:
            self._wait_for(self._following.waiting)

    def _wait_for(self, calls: Sequence[WaitingCall]) -> None:
        """Show what waits for somebody. The focus goes along, but is taken from nobody who writes."""
        approvals, was_there = self._approvals, self._approvals.has_focus_within
        came_up, comes_from_outside = approvals.show(calls), self._outside.show(calls)
        self.refresh_bindings()
        if (came_up or comes_from_outside) and not self.is_current:
            name = words(self.agent.name, 40)
            self.notify(f"A call of {name} waits for you: go back to the chat", markup=False)
        if came_up and not self._prompt.is_in_use:
            approvals.focus()
        elif not approvals.calls and (was_there or self.focused is None):
            self._prompt.focus()
        self._hint()

    def on_descendant_focus(self) -> None:
        """What leads to a call that waits is told where one is not there."""
        self._hint()

    def _hint(self) -> None:
        self._approvals.border_title = "" if self._approvals.has_focus_within else "Tab goes to this call"

    def action_go_on(self) -> None:
        """Go to the next part; from where one writes, to the call that waits."""
        if self._prompt.has_focus and self._approvals.calls:
            self._approvals.focus()
        else:
            self.focus_next()

    @on(Listing.Opened)
    def open_row(self, event: Listing.Opened) -> None:
        """Show the run that a row leads to."""
        if isinstance(event.row, NoteRow) and event.row.loop_id:
            self.flyball.open_run(event.row.loop_id)

    @on(Approvals.Decided)
    def decide(self, event: Approvals.Decided) -> None:
        """Tell the loop that asked for the call."""
        self.send(self._decide(event))
        if not self._approvals.calls:
            self._prompt.focus()

    async def _decide(self, event: Approvals.Decided) -> None:
        try:
            await self.client.signal(event.loop_id, event.signal)
        except FlyballError:
            self._approvals.take_back(event.signal.call_id or "")
            raise
        self._hurry()

    def _hurry(self) -> None:
        """Ask at once how the run stands."""
        if self._following is not None:
            self._following.hurry()

    @on(Approvals.Viewed)
    def view(self, event: Approvals.Viewed) -> None:
        """Show all of a call."""
        self.flyball.push_screen(ShowCall(event.call.call))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what is under way can be cancelled, what waits be given, and what was begun be opened."""
        del parameters
        if action == "cancel":
            return self._following is not None
        if action == "give":
            return bool(self._outside.calls)
        return bool(self._following or self.last_run) if action == "open_last" else True

    def action_cancel(self) -> None:
        """Cancel the answer that is under way."""
        if self._following is not None:
            self.send(self.client.signal(self._following.loop_id, Signal(SignalType.CANCEL)))

    @work
    async def action_give(self) -> None:
        """Ask for the result that is waited for, and give it."""
        await self._outside.give(self, self._hurry)

    def action_open_last(self) -> None:
        """Show the run of the answer under way, or of the last one."""
        loop_id = self._following.loop_id if self._following is not None else self.last_run
        if loop_id:
            self.flyball.open_run(loop_id)

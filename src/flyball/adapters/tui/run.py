"""A run: how it stands, its course, what was said in it; and what may be said to it."""

from __future__ import annotations

import time
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.content import Content
from textual.widgets import Footer, Static

from flyball.adapters.tui.approvals import Approvals
from flyball.adapters.tui.dialogs import AskFork, AskText, ShowCall
from flyball.adapters.tui.following import Following
from flyball.adapters.tui.lines import stage_look
from flyball.adapters.tui.listing import Listing
from flyball.adapters.tui.page import Page, TopLine
from flyball.adapters.tui.results import Outside
from flyball.adapters.tui.rows import NoteRow, seconds
from flyball.adapters.tui.run_rows import cost_of, tokens_of
from flyball.adapters.tui.step_rows import StepRow, step_rows
from flyball.adapters.tui.turn import TurnScreen
from flyball.adapters.tui.wrapping import words
from flyball.core.errors import FlyballError
from flyball.core.signals import Signal, SignalType
from flyball.orchestrate.projections.course import StepKind
from flyball.orchestrate.projections.shortened import short

_DRAWN = 0.1
"""Seconds between two looks at what has come."""
_GROWS = 5
"""Looks after which the bars of what is under way grow."""
_COLOURS = {"good": "$text-success", "bad": "$text-error", "warn": "$text-warning", "model": "$text-primary"}


class RunScreen(Page):
    """One run, followed as long as it goes on."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "app.back", "Back"),
        Binding("a", "approve", "Approve"),
        Binding("r", "reject", "Reject"),
        Binding("g", "give", "Give the result"),
        Binding("p", "signal('pause')", "Pause"),
        Binding("u", "resume", "Resume"),
        Binding("x", "cancel", "Cancel"),
        Binding("t", "signal('retry')", "Retry"),
        Binding("f", "feedback", "Feedback"),
        Binding("k", "fork", "Fork"),
    ]

    def __init__(self, loop_id: str) -> None:
        super().__init__()
        self.loop_id = loop_id
        # Held, not looked for: what is told may come when the screen is being left.
        self._top = TopLine(f"· run {short(loop_id)}")
        self._about = Static("…", id="about", markup=False)
        self._timeline = Listing(empty="…", id="timeline")
        self._talk = Listing(empty="Nothing was said yet.", follows=True, id="talk")
        self._approvals = Approvals()
        self._outside = Outside("g")
        self._following: Following | None = None
        self._ticks = 0

    def compose(self) -> ComposeResult:
        """How it stands, its course, what was said, what waits."""
        yield self._top
        yield self._about
        with Container(id="panes"):
            yield self._timeline
            yield self._talk
        yield self._outside
        yield self._approvals
        yield Footer(show_command_palette=False)

    def on_mount(self) -> None:
        """Begin to follow it."""
        self._timeline.focus()
        self.set_interval(_DRAWN, self._draw)
        self._follow()

    def on_screen_resume(self) -> None:
        """It is shown again, to somebody who may be typing still."""
        super().on_screen_resume()
        self._approvals.come_back()

    def failed(self, error: FlyballError) -> None:
        """Say what went wrong; where there is nothing else to show, in its place."""
        super().failed(error)
        if self._following is None or self._following.summary is None:
            self._about.update(Content(words(f"{error.code}: {error.message}", 400)))
            self._timeline.empty = "There is nothing to show."

    def _follow(self) -> None:
        """Follow it from its beginning; who followed it before is relieved."""
        self._following = Following(
            self.client, self.loop_id, changed=self._look_again, failed=self.failed, course=True
        )
        self.run_worker(self._following.run, group="follow", exclusive=True)

    # What is shown

    def _draw(self) -> None:
        """Draw what has come since the last time; the bars of what is under way grow."""
        following = self._following
        if following is None or not self.is_current:
            return
        transcript = following.transcript
        if not transcript.is_drawn:
            self._talk.show(transcript.rows(), transcript.changed)
            transcript.drawn()
        self._ticks += 1
        if not self._ticks % _GROWS and not following.is_over:
            self._draw_course(following)

    def _look_again(self) -> None:
        """It was told anew how the run stands."""
        following = self._following
        if following is None or following.summary is None:
            return
        self._draw_course(following)
        approvals = self._approvals
        self._outside.show(following.waiting)
        self.refresh_bindings()
        if approvals.show(following.waiting):
            approvals.focus()
        elif not approvals.calls and self.focused is None:
            self._timeline.focus()

    def _draw_course(self, following: Following) -> None:
        rows = step_rows(following.steps, time.time(), following.transcript.call)
        self._timeline.show(rows)
        if (run := following.summary) is None:
            return
        until = run.updated_at if following.is_over else time.time()
        facts = [words(run.model, 60), tokens_of(run) and f"{tokens_of(run)} tokens", cost_of(run)]
        facts.append(seconds(until - run.started_at) if run.started_at else "")
        facts.append(f"{run.turns} turn{'s' if run.turns != 1 else ''}")
        self._top.say(f"· {run.agent} · run {short(run.loop_id)}")
        self._about.update(
            Content.assemble(
                (words(run.stage or "unreadable", 40), f"bold {_COLOURS.get(stage_look(run.stage), '')}"),
                ("  " + " · ".join([fact for fact in facts if fact]) + "\n", "dim"),
                ("> ", "bold $text-success"),
                words(run.prompt, 300),
            )
        )

    @on(Listing.Opened)
    def open_row(self, event: Listing.Opened) -> None:
        """Show the turn of a model call, or the run that a row leads to."""
        row = event.row
        if isinstance(row, StepRow) and row.step.kind is StepKind.MODEL_CALL:
            self.flyball.push_screen(TurnScreen(self.loop_id, row.step.turn))
        elif isinstance(row, StepRow) and row.step.loop_id:
            self.flyball.open_run(row.step.loop_id)
        elif isinstance(row, NoteRow) and row.loop_id:
            self.flyball.open_run(row.loop_id)

    # What is said to it

    @on(Approvals.Decided)
    def decide(self, event: Approvals.Decided) -> None:
        """Tell the loop that asked for the call."""
        self.send(self._decide(event))
        if not self._approvals.calls:
            self._timeline.focus()

    async def _decide(self, event: Approvals.Decided) -> None:
        try:
            await self._say(event.signal, event.loop_id)
        except FlyballError:
            self._approvals.take_back(event.signal.call_id or "")
            raise

    @on(Approvals.Viewed)
    def view(self, event: Approvals.Viewed) -> None:
        """Show all of a call."""
        self.flyball.push_screen(ShowCall(event.call.call))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only a call that waits can be approved or rejected, or be given a result."""
        del parameters
        if action == "give":
            return bool(self._outside.calls)
        return bool(self._approvals.calls) if action in ("approve", "reject") else True

    def action_approve(self) -> None:
        """Let the call run that waits."""
        self._approvals.action_approve()

    def action_reject(self) -> None:
        """Refuse it."""
        self._approvals.action_reject()

    def action_signal(self, kind: str) -> None:
        """Say something that needs no words."""
        self.send(self._say(Signal(SignalType(kind))))

    def action_resume(self) -> None:
        """Go on: with a run that is paused, or that nobody drives."""
        run = self._following.summary if self._following is not None else None
        if run is not None and run.stage == "paused":
            self.action_signal("resume")
        else:
            self.send(self._resume())

    async def _resume(self) -> None:
        await self.client.resume(self.loop_id)
        self._hurry()

    async def _say(self, signal: Signal, loop_id: str = "") -> None:
        await self.client.signal(loop_id or self.loop_id, signal)
        self._hurry()

    def _hurry(self) -> None:
        """Ask at once how it stands; a run that was over is followed anew."""
        if not self.is_running:
            return
        if self._following is None or self._following.is_over:
            self._follow()
        else:
            self._following.hurry()

    @work
    async def action_give(self) -> None:
        """Ask for the result that is waited for, and give it."""
        await self._outside.give(self, self._hurry)

    @work
    async def action_cancel(self) -> None:
        """Ask why, and cancel."""
        text = await self.flyball.push_screen_wait(
            AskText("Cancel this run?", "why, if you like to say so", may_be_empty=True)
        )
        if text is not None:
            self.send(self._say(Signal(SignalType.CANCEL, text=text)))

    @work
    async def action_feedback(self) -> None:
        """Ask what the model should hear."""
        text = await self.flyball.push_screen_wait(
            AskText("Say something to the model", "what it should hear")
        )
        if text is not None:
            self.send(self._say(Signal(SignalType.FEEDBACK, text=text)))

    @work
    async def action_fork(self) -> None:
        """Ask how, fork, and open the new run."""
        run = self._following.summary if self._following is not None else None
        if run is None:
            return
        chosen = self._timeline.chosen
        turn = chosen.step.turn if isinstance(chosen, StepRow) and chosen.step.turn else run.turns
        try:
            fork = await self.flyball.push_screen_wait(AskFork(turn, run.turns, await self.client.models()))
            if fork is not None:
                self.flyball.open_run(await self.client.fork(self.loop_id, fork))
        except FlyballError as error:
            self.failed(error)

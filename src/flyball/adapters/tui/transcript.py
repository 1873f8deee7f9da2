"""What was said in a loop, as rows: from its events, and the pieces of the answer that is under way. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from msgspec.structs import replace

from flyball.adapters.tui.lines import Look
from flyball.adapters.tui.notes import note_of
from flyball.adapters.tui.rows import CallRow, NoteRow, Row, TextRow
from flyball.core.encodable import as_text
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import (
    Ended,
    Event,
    FlowStarted,
    Forked,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Reopened,
    Started,
    StepEnded,
    ToolReturned,
)
from flyball.core.messages import Message, Retry, Role, Text, Thinking, ToolCall, ToolResult
from flyball.inference.stream import Assembler, Finish, StreamEvent
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.machines import AnyState, start, take
from flyball.orchestrate.projections.shortened import several
from flyball.orchestrate.projections.words import words_of
from flyball.orchestrate.state import State

_ENDS: dict[Outcome, tuple[str, str, Look]] = {
    Outcome.SUCCESS: ("✔", "complete", "good"),
    Outcome.FAILED: ("✘", "failed", "bad"),
    Outcome.CANCELLED: ("■", "cancelled", "warn"),
}


class Transcript:
    """The rows of one loop, as they grow.

    `is_drawn`: nothing came since `drawn` was called. Else `changed` is the first row that is another.

    Each event costs the same however many there are; the answer under way is put together when it is looked
    at, and not with each piece.
    """

    def __init__(self, name: str = "") -> None:
        """`name` parts the keys of several that are shown together, as one conversation."""
        self.changed = 0
        self.is_drawn = True
        self.is_over = False
        self._name = name
        self._agent = ""
        self._last: Event | None = None
        self._error: SystemError | None = None
        """The error of the model call that failed last, which is told."""
        self._rows: list[Row] = []
        self._calls: dict[str, int] = {}
        self._state: AnyState | None = None
        self._heard = 0
        self._answer: Assembler | None = None
        self._finished = False

    def feed(self, item: Recorded | StreamEvent) -> None:
        """Something more was told of the loop."""
        if isinstance(item, Recorded):
            self._changed_at(len(self._rows))
            event, key = item.event, f"{self._name}{item.number}"
            if (note := note_of(event, self._last, key)) is not None:
                self._rows.append(note)
            if (make := _ROWS.get(type(event))) is not None:
                make(self, event, key)
            self._last = event
            waited = self._waits
            self._fold(event)
            if self._waits and not waited:
                self._note(f"{key}w", "⧗", "it waits for approval: until then it is no answer", "warn")
            return
        self._changed_at(len(self._rows))
        if self._answer is None or self._finished:
            self._answer, self._finished = Assembler(), False
        self._answer.feed(item)
        self._finished = isinstance(item, Finish)

    def rows(self) -> list[Row]:
        """All rows, those of the answer under way last."""
        if self._answer is None:
            return self._rows
        return [*self._rows, *self._said(self._answer.message(), f"{self._name}live")]

    @property
    def history(self) -> tuple[Message, ...]:
        """The conversation as it is after this, without instructions: each run has those anew."""
        state = self._state
        if not isinstance(state, State):
            return ()
        return tuple([message for message in state.history if message.role is not Role.SYSTEM])

    def call(self, call_id: str) -> CallRow | None:
        """The row of a tool call, by the call's id."""
        at = self._calls.get(call_id)
        return None if at is None else cast("CallRow", self._rows[at])

    def drawn(self) -> None:
        """What there is was drawn: what changes from now on is new."""
        self.changed, self.is_drawn = len(self._rows), True

    @property
    def is_answering(self) -> bool:
        """Whether pieces of an answer have come that is not recorded yet."""
        return self._answer is not None

    @property
    def _waits(self) -> bool:
        """Whether what was answered last waits for approval."""
        return isinstance(self._state, State) and self._state.at == "approve"

    def _fold(self, event: Event) -> None:
        """Fold the event, too: what became of a call that was refused is in no event of its own."""
        if self._state is None:
            self._state = start(event) if isinstance(event, Started | FlowStarted) else None
        elif not take(self._state, event):
            self._state = None
        state = self._state
        if not isinstance(state, State):
            return
        for message in state.history[max(self._heard - 1, 0) :]:
            for result in message.tool_results:
                at = self._calls.get(result.call_id)
                if at is not None and (row := cast("CallRow", self._rows[at])).result is None:
                    self._rows[at] = replace(row, result=result)
                    self._changed_at(at)
        self._heard = len(state.history)

    def _changed_at(self, index: int) -> None:
        self.is_drawn = False
        self.changed = min(self.changed, index)

    def _add(self, row: Row) -> None:
        self._rows.append(row)

    def _note(self, key: str, mark: str, text: str, look: Look = "dim", loop_id: str = "") -> None:
        self._add(NoteRow(key, mark, text, look, loop_id))

    def _said(self, message: Message, key: str) -> list[Row]:
        """What a message of the model says, as rows."""
        rows: list[Row] = []
        for number, part in enumerate(message.parts):
            name = f"{key}.{number}"
            if isinstance(part, Text) and part.text:
                rows.append(TextRow(name, self._agent or "answer", part.text, "model", markdown=True))
            elif isinstance(part, Thinking | Retry) and part.text:
                rows.append(TextRow(name, "thinking", part.text, "dim", "dim"))
            elif isinstance(part, ToolCall):
                rows.append(CallRow(name, part))
        return rows

    def _started(self, event: Started, key: str) -> None:
        self._agent = event.spec.agent
        if event.history and not self._name:
            self._note(f"{key}h", "↥", f"after {several(len(event.history), 'message')} of a conversation")
        prompt = words_of(event.prompt) if event.prompt is not None else ""
        self._add(TextRow(key, "you", prompt or "(nothing)", "person"))

    def _flow_started(self, event: FlowStarted, key: str) -> None:
        self._agent = event.flow.name
        self._add(TextRow(key, "input", as_text(event.input), "person"))

    def _forked(self, event: Forked, key: str) -> None:
        if event.prompt is not None:
            self._add(TextRow(f"{key}p", "you", words_of(event.prompt), "person"))

    def _answered(self, event: ModelAnswered, key: str) -> None:
        if event.purpose != "turn":
            return
        self._answer = None
        for row in self._said(event.message, key):
            if isinstance(row, CallRow):
                self._calls[row.call.id] = len(self._rows)
            self._add(row)

    def _failed(self, event: ModelFailed, key: str) -> None:
        if event.purpose == "turn":
            self._answer = None
            self._error = event.error
            self._note(key, "✘", f"{event.error.code}: {event.error.message}", "bad")

    def _returned(self, event: ToolReturned, key: str) -> None:
        at = self._calls.get(event.result.call_id)
        if at is None:
            call = ToolCall(event.result.call_id, event.result.name)
            self._add(CallRow(key, call, event.result, event.duration))
            return
        self._rows[at] = replace(cast("CallRow", self._rows[at]), result=event.result, took=event.duration)
        self._changed_at(at)

    def _step(self, event: StepEnded, key: str) -> None:
        if event.error is not None:
            self._note(
                key, "✘", f"{event.path}: {event.error.code}: {event.error.message}", "bad", event.loop_id
            )
            return
        result = ToolResult(key, event.path, event.output)
        self._add(CallRow(key, ToolCall(key, event.path), result, event.duration))

    def _ended(self, event: Ended, key: str) -> None:
        self.is_over, self._answer = True, None
        if self._name and event.outcome is Outcome.SUCCESS:
            return  # the answer says so
        error = event.error
        is_told = error is not None and error == self._error
        if self._name and is_told:
            return  # so does the error
        mark, word, look = _ENDS[event.outcome]
        why = "" if error is None or is_told else f": {error.code}: {error.message}"
        self._note(key, mark, f"{word}{why}", look)

    def _reopened(self, event: Reopened, key: str) -> None:
        self.is_over, self._error = False, None

    @staticmethod
    def row_makers() -> dict[type[Event], Callable[[Transcript, Any, str], None]]:
        """What becomes of each kind of event; of all others there is nothing to show here."""
        own = Transcript
        return {
            Started: own._started,
            FlowStarted: own._flow_started,
            Forked: own._forked,
            ModelAnswered: own._answered,
            ModelFailed: own._failed,
            ToolReturned: own._returned,
            StepEnded: own._step,
            Ended: own._ended,
            Reopened: own._reopened,
        }


_ROWS = Transcript.row_makers()

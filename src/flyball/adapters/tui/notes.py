"""Notes: what happened in a loop beside what was said, in a line each. Pure."""

from __future__ import annotations

from flyball.adapters.tui.rows import NoteRow
from flyball.core.events import (
    AnswerReviewed,
    ChildEnded,
    ChildStarted,
    Event,
    Forked,
    Reopened,
    Resumed,
    SignalReceived,
    TimePassed,
    TurnSettled,
)
from flyball.orchestrate.projections.course.step import is_taken_over
from flyball.orchestrate.projections.shortened import short


def note_of(event: Event, before: Event | None, key: str) -> NoteRow | None:
    """The note of an event, where there is something to note; `before` is the event before."""
    match event:
        case AnswerReviewed(dropped=dropped, stop=stop) if said := dropped or stop:
            return NoteRow(key, "↺", said, "warn")
        case TurnSettled(accepted=False, feedback=feedback) if feedback:
            return NoteRow(key, "↺", f"asked again: {'; '.join(feedback)}", "warn")
        case SignalReceived(signal=signal):
            said = f": {signal.text}" if signal.text else ""
            return NoteRow(key, "⚑", f"{signal.type}{_by(signal.by)}{said}", "warn")
        case ChildStarted(agent=agent, loop_id=loop_id):
            return NoteRow(key, "⇣", f"{agent or 'a run'} begins under it: {short(loop_id)}", "dim", loop_id)
        case ChildEnded(loop_id=loop_id):
            return NoteRow(key, "⇡", f"{short(loop_id)} is over", "dim", loop_id)
        case Forked(source=source, turn=turn):
            return NoteRow(key, "⑂", f"forked from {short(source)} after turn {turn}", "warn", source)
        case Reopened(by=by):
            return NoteRow(key, "↻", f"tried again{_by(by)}", "warn")
        case Resumed() if is_taken_over(event, before):
            return NoteRow(key, "↻", "somebody went on with it", "warn")
        case TimePassed():
            return NoteRow(key, "⧗", "its time was up", "warn")
        case _:
            return None


def _by(who: str) -> str:
    return f" by {who}" if who else ""

"""The turns of an agent's loop, each with the request that was sent and what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from flyball.core.around import Around
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import AnswerReviewed, Event, ModelAnswered, ModelFailed
from flyball.core.messages import Message, Retry
from flyball.orchestrate.machine import effect_id, inference_owed
from flyball.orchestrate.projections.explanation.decisions import REFUSED, decisions
from flyball.orchestrate.projections.explanation.middleware import told
from flyball.orchestrate.projections.explanation.told import Turn
from flyball.orchestrate.projections.tool_calls import tool_calls_made
from flyball.orchestrate.replay import steps
from flyball.orchestrate.requests import request_parts
from flyball.orchestrate.sent import Asking
from flyball.orchestrate.state import State
from flyball.orchestrate.tool_record import ToolCallRecord


class _Open(Struct):
    """A turn that is being gathered."""

    number: int
    attempt: int
    asking: Asking
    around: Around | None = None
    answer: Message | None = None
    taken: Message | None = None
    """What an interceptor put in the answer's place."""
    error: SystemError | None = None
    partial: Message | None = None
    duration: float = 0.0
    decided: list[str] = field(default_factory=list[str])


def turns_of(events: Sequence[Event]) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    """The turns of an agent's loop, and what was decided before the first of them.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    turns, before = _turns(events)
    made = tool_calls_made(events)
    return tuple([_closed(turn, made) for turn in turns]), tuple(before)


def _closed(turn: _Open, made: Sequence[ToolCallRecord]) -> Turn:
    taken = turn.taken or turn.answer
    ids = {call.id for call in taken.tool_calls} if taken is not None else set[str]()
    *earlier, sent = turn.asking.sent(turn.around) or (turn.asking.request,)
    return Turn(
        turn.number,
        turn.attempt,
        sent,
        turn.answer,
        turn.error,
        turn.partial,
        turn.duration,
        tuple([record for record in made if record.call_id in ids]),
        tuple(turn.decided),
        earlier=tuple(earlier),
        called=turn.around is None or bool(turn.around.sent),
    )


def _turns(events: Sequence[Event]) -> tuple[list[_Open], list[str]]:
    turns: list[_Open] = []
    before: list[str] = []
    open_id, last = "", None
    for event, state in steps(events):
        current = turns[-1] if turns else None
        if isinstance(event, ModelAnswered | ModelFailed) and event.purpose != "turn":
            pass  # it is told among what was decided
        elif current is not None and isinstance(event, ModelAnswered):
            current.answer, current.duration = event.message, event.duration
            _note_what_middleware_did(current, event)
        elif current is not None and isinstance(event, ModelFailed):
            current.error, current.partial, current.duration = event.error, event.partial, event.duration
            _note_what_middleware_did(current, event)
        elif current is not None and isinstance(event, AnswerReviewed):
            current.taken = event.message
        answer = None if current is None else current.taken or current.answer
        (before if current is None else current.decided).extend(decisions(event, state, answer, last))
        last = event
        identifier = effect_id(state, "infer", 0)
        if state.at == "infer" and identifier != open_id:
            open_id = identifier
            _note_what_was_asked_again(current, state)
            turns.append(_Open(state.turn, state.attempt, _asking(state)))
        elif state.at == "infer" and turns:
            # Feedback may have been added while the loop was paused: the request is what was sent last.
            turns[-1].asking = _asking(state)
    return turns, before


def _asking(state: State) -> Asking:
    effect = inference_owed(state)
    assert effect is not None
    return Asking.of(state, effect, request_parts(state.spec))


def _note_what_middleware_did(turn: _Open, event: ModelAnswered | ModelFailed) -> None:
    turn.around = event.around
    turn.decided += told(turn.asking, event.around, failed=isinstance(event, ModelFailed))


def _note_what_was_asked_again(turn: _Open | None, state: State) -> None:
    """What the machine itself refused (an empty answer, text in the place of a call): no event says so."""
    if turn is None or any(text.startswith(REFUSED) for text in turn.decided):
        return
    last = state.history[-1] if state.history else None
    for part in () if last is None else last.parts:
        if isinstance(part, Retry):
            turn.decided.append(f"{REFUSED}: {part.text}")

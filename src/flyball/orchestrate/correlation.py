"""Correlation: which request, trace, span, model call and tool call each event of a journal belongs to.

Only what came from outside is journaled, once, in `Started`. The rest follows from it and from the effects'
ids, so whoever holds the journal gives every event the same ids:

    trace                   the request's own, or made from the loop's id
    └── the loop            a span made from the loop's id; its parent is the caller's span, if there is one
        ├── an effect       a span made from the effect's id: a model call, a tool call, a step of a flow, ...
        │   └── a loop      begun by that tool call, or as that step: its parent is the effect's span
        └── ...

A tool's events name the call that caused them and the model request that the call came from. What is about a
step of a flow, and all that happens in the loops that are begun for it, has the step's name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

from msgspec.structs import replace

from flyball.core.correlation import Correlation
from flyball.core.events import (
    Admitted,
    AnswerReviewed,
    CallsJudged,
    Delivered,
    Event,
    ModelAnswered,
    ModelFailed,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
    TurnSettled,
)
from flyball.orchestrate.flow_state import FlowState
from flyball.orchestrate.machine import settlings
from flyball.orchestrate.replay import steps
from flyball.orchestrate.state import State

_KINDS: dict[type[Event], str] = {
    Admitted: "admit",
    TurnPrepared: "prepare",
    ModelAnswered: "infer",
    ModelFailed: "infer",
    AnswerReviewed: "review",
    CallsJudged: "judge",
    ToolStarted: "execute",
    ToolReturned: "execute",
    TurnSettled: "settle",
    Delivered: "deliver",
}
"""The kind of effect that an event belongs to; what is not here is about the loop as a whole."""

_ASKED_BY_THE_MODEL = frozenset({"infer", "review", "judge", "execute", "settle"})
"""The kinds that belong to a turn's model request: the request itself, and what its answer led to."""


_CALLS_OF_THEIR_OWN = frozenset({"repair", "compact"})
"""The kinds that are model calls themselves, and no turn's: each is named for its purpose."""


def correlate(events: Iterable[Event]) -> Iterator[tuple[Correlation, Event]]:
    """Each event of a journal with its ids.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    calls: tuple[str, ...] = ()
    settling = 0
    for event, state in steps(events):
        asking = event.message if isinstance(event, AnswerReviewed) else None
        if isinstance(event, ModelAnswered) and event.purpose == "turn":
            asking = event.message
        if asking is not None:
            calls = tuple([call.id for call in asking.tool_calls])
        yield event_correlation(event, state, calls, settling=settling), event
        settling = settlings(state) if state.at == "settle" else 0


def event_correlation(
    event: Event,
    state: State,
    calls: Sequence[str],
    whole: Correlation | None = None,
    *,
    settling: int = 0,
) -> Correlation:
    """The ids of one event, from the state that it led to and the ids of its turn's tool calls.

    `whole` are the loop's, where they are known; `settling` is which of a turn's answers was settled before
    it.
    """
    whole = whole or loop_correlation(state)
    kind = _KINDS.get(type(event))
    if kind is None:
        return whole
    if isinstance(event, ModelAnswered | ModelFailed) and event.purpose != "turn":
        kind = event.purpose  # a model call of its own, beside the turn's
    turn = _turn(event, state)
    index = event.index if isinstance(event, ToolStarted | ToolReturned) else 0
    if isinstance(event, TurnSettled):
        index = settling
    if isinstance(event, TurnPrepared) and event.compact is None and state.compaction is not None:
        index = int(state.compaction.turn == turn)  # it was prepared once more, after a summary
    ids = {"model_request_id": _model_request(state, turn, kind)}
    if kind == "execute":
        ids |= {"tool_call_id": calls[index], "caused_by": calls[index]}
    return effect_correlation(whole, _effect_id(state, turn, kind, index), **ids)


def _model_request(state: State, turn: int, kind: str) -> str:
    """The id of the model request that an effect is, or comes of; empty for what comes before any."""
    if kind in _ASKED_BY_THE_MODEL:
        return _effect_id(state, turn, "infer", 0)
    return _effect_id(state, turn, kind, 0) if kind in _CALLS_OF_THEIR_OWN else ""


def loop_correlation(state: State | FlowState) -> Correlation:
    """The ids of what is about a loop as a whole, an agent's or a flow's."""
    given = state.correlation
    return replace(
        given,
        request_id=given.request_id or state.loop_id,
        trace_id=given.trace_id or trace_id_of(state.loop_id),
        span_id=span_id_of(state.loop_id),
        parent_span_id=given.span_id or given.parent_span_id,
        loop_id=state.loop_id,
        parent_loop_id=state.parent_loop_id or given.parent_loop_id,
        tool_call_id="",  # it was begun by that call (`caused_by`), and is not about it
    )


def effect_correlation(whole: Correlation, effect_id: str, **ids: str) -> Correlation:
    """The ids of one effect of a loop whose own ids are these."""
    return replace(whole, span_id=span_id_of(effect_id), parent_span_id=whole.span_id, **ids)


def span_id_of(name: str) -> str:
    """The span of a loop or of an effect, by its id: 16 hex digits, the same each time."""
    return sha256(name.encode("utf-8")).hexdigest()[:16]


def trace_id_of(loop_id: str) -> str:
    """The trace of a loop whose request brought none: 32 hex digits, the same each time."""
    return sha256(f"trace/{loop_id}".encode()).hexdigest()[:32]


def _turn(event: Event, state: State) -> int:
    """The turn that an event's effect was owed in; the state may have moved on to the next one by now."""
    return 0 if isinstance(event, Admitted) else getattr(event, "turn", state.turn)


def _effect_id(state: State, turn: int, kind: str, index: int) -> str:
    """What `machine.effect_id` gave when the effect was owed."""
    return f"{state.loop_id}/{state.attempt}/{turn}/{kind}/{index}"

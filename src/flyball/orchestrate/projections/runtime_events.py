"""What is told of a loop to those who watch it: runtime events, from its journal; and the trace made of them.

Whoever drives a loop that is watched tells of each event as it is recorded (`orchestrate.watching`); here it
is told of a journal as it lies there. It is the same: so a trace can be had of any run, at any time.
(Not among the names of the package: a program that watches nothing does not load it.)

A model call and a tool call are told to begin when what is recorded first owes them; those that a driver
finds owed when it takes the loop over begin again, and that is told again.

Of flows it is told in `flow_events`, by a narrator of the same kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from flyball.core.correlation import Correlation
from flyball.core.effects import Effect, Execute, Infer
from flyball.core.errors import JournalCorrupt
from flyball.core.events import (
    Admitted,
    AnswerReviewed,
    Ended,
    Event,
    Forked,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Reopened,
    Resumed,
    Started,
    ToolReturned,
    TurnPrepared,
    TurnSettled,
)
from flyball.core.messages import Message, ResultKind, Role
from flyball.core.spec import LoopSpec
from flyball.observe.events import (
    ContextCompactedEvent,
    ContextPreparedEvent,
    GuardrailEvaluatedEvent,
    ModelRequestedEvent,
    ModelRespondedEvent,
    OutputRepairedEvent,
    OutputValidatedEvent,
    PhaseChangedEvent,
    RunCompletedEvent,
    RunConditionCheckedEvent,
    RunStartedEvent,
    RuntimeEvent,
    ToolCalledEvent,
    ToolEndedEvent,
    TurnEndedEvent,
    TurnStartedEvent,
)
from flyball.observe.trace import RunTrace
from flyball.observe.tracing import trace_of
from flyball.orchestrate.correlation import effect_correlation, event_correlation, loop_correlation
from flyball.orchestrate.course import OVER
from flyball.orchestrate.facts import asked, parent_of
from flyball.orchestrate.lifecycle.course import Course
from flyball.orchestrate.machine import effect_id, inference_owed, owed, settlings, start, take
from flyball.orchestrate.machines import is_flow
from flyball.orchestrate.projections.trajectory import LastSaid, last_said
from flyball.orchestrate.replay import steps
from flyball.orchestrate.requests import RequestParts, request_of, request_parts
from flyball.orchestrate.state import State

if TYPE_CHECKING:
    from flyball.orchestrate.projections.flow_events import FlowNarrator

_NO_TURN = OVER | {"admit"}
"""Where a loop stands in no turn."""
_ANSWERED = frozenset({"judge", "execute", "settle", "repair", "approve"})
"""Where a loop stands whose turn has its answer."""


def runtime_events(events: Iterable[Event]) -> Iterator[RuntimeEvent]:
    """All that is told of a loop, from its journal; of a fork, what it went on from too, under that run's id.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    journal = list(events)
    narrator = narrator_of(journal)
    for event in journal:
        yield from narrator.told(event)


def narrator_of(journal: Sequence[Event]) -> Narrator | FlowNarrator:
    """Who tells of a journal, from its beginning: an agent's, or a flow's."""
    if not is_flow(journal):
        return Narrator()
    from flyball.orchestrate.projections.flow_events import FlowNarrator

    return FlowNarrator()


def run_trace(events: Iterable[Event]) -> RunTrace:
    """The trace of a loop, from its journal.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    narrator = Narrator()
    told = [one for event in events for one in narrator.told(event)]
    if narrator.state is None:
        raise JournalCorrupt("journal: no events")
    return trace_of(told, narrator.state.usage)


class _Before(NamedTuple):
    """What of the state before an event is told with it."""

    asking: Infer | None = None
    """The model call that was under way."""
    mended: bool = False
    """Whether a model had put the answer right."""
    sent: int = 0
    """How many messages that model call was made with."""
    settling: int = 0
    """Which of the turn's answers was being settled."""


def _under_way(state: State) -> tuple[Effect, ...]:
    """What is owed, and what is run outside: that is owed by nobody here, and its result is waited for."""
    outside = [
        Execute(effect_id(state, "execute", index), state.turn, index)
        for index in state.deferred
        if state.spec.tools[state.calls[index].name].outside
    ]
    return (*owed(state), *outside)


class Narrator:
    """Tells of a loop, event by event, from where a state has it; without one, from its beginning.

    `course` is the way that the loop has gone through its phases by then: a state has no memory of it.
    """

    def __init__(
        self,
        state: State | None = None,
        parts_for: Callable[[LoopSpec], RequestParts] = request_parts,
        course: Course | None = None,
    ) -> None:
        self._parts_for = parts_for
        self._course = course or Course()
        self._ids: Correlation | None = None
        """The ids of the loop as a whole, once something is told of it."""
        self.state = state
        """What it has come to; nobody else changes it."""
        self._begun: set[str] = set()
        """The model calls and tool calls that were told to begin, since a driver last took over."""
        self._turn: tuple[int, int] | None = None
        """The attempt and the turn that were told to begin, and not to end."""
        self._response: Message | None = None
        """The answer of that turn."""
        self._spec: LoopSpec | None = None
        self._parts: RequestParts | None = None
        self._last_said = LastSaid()
        if state is not None:
            self._begun = {effect.id for effect in _under_way(state)}
            self._turn = _open_turn(state)
            self._response = _answer_of(state)

    @classmethod
    def after(
        cls,
        events: Sequence[Event],
        parts_for: Callable[[LoopSpec], RequestParts] = request_parts,
        place: str = "journal",
    ) -> Narrator:
        """One who goes on telling where a journal stands; of what is in it he tells nothing.

        Raises:
            JournalCorrupt: the events are no journal.
        """
        course, state = Course(), None
        for event, reached in steps(events, place):
            course.moves(event, reached)
            state = reached
        return cls(state, parts_for, course)

    def passed_by(self) -> Narrator:
        """One who goes on from here, after events that were folded and not told."""
        return Narrator(self.state, self._parts_for, self._course)

    def pass_by(self, event: Event) -> None:
        """Fold one more event, and tell nothing; then another narrator goes on (`passed_by`).

        Raises:
            JournalCorrupt: it does not fit.
        """
        self._course.moves(event, self._folded(event))

    def told(self, event: Event) -> list[RuntimeEvent]:
        """Fold one more event; what is told of it, in the order in which it happened.

        Raises:
            JournalCorrupt: it does not fit.
        """
        kind, before = type(event), _Before()
        told: list[RuntimeEvent] = []
        if kind in _NEED_BEFORE and self.state is not None:
            before = self._standing(self.state)
            if isinstance(event, ModelAnswered | ModelFailed):
                told += self._begun_unheard(event, before)
        state = self._folded(event)
        of = self._of(state, anew=kind is Forked)
        teller = _TELLERS.get(kind)
        if teller is not None:
            told += teller(self, event, state, of, before)
        if moves := self._course.moves(event, state):
            told += [
                PhaseChangedEvent(
                    **of,
                    at=move.at,
                    from_state=move.from_,
                    to_state=move.to,
                    attempt=move.attempt,
                    reason=move.reason,
                )
                for move in moves
            ]
        if kind is Resumed:
            self._begun.clear()
        if (turn := _open_turn(state)) != self._turn:
            told += self._turns(event.at, turn, of)
        if state.at in _CALLING and not state.paused:
            told += self._begins(event.at, state, of)
        if kind is Ended:
            told.append(_completed(cast("Ended", event), state, of))
        return told

    def _of(self, state: State, *, anew: bool = False) -> dict[str, Any]:
        """What all that is told of the loop has."""
        if self._ids is None or anew:
            self._ids = loop_correlation(state)
        return {
            "run_id": state.loop_id,
            "parent_run_id": parent_of(state),
            "agent": state.spec.agent,
            "correlation": self._ids,
        }

    def _begun_unheard(self, event: ModelAnswered | ModelFailed, before: _Before) -> Iterator[RuntimeEvent]:
        """That a model call has begun whose answer is here, though a paused loop was to begin none."""
        state, asking = self.state, before.asking
        if state is None or asking is None or asking.id in self._begun or asking.purpose != event.purpose:
            return
        self._begun.add(asking.id)
        yield self._requested(asking, event.at, state, self._of(state))

    def _folded(self, event: Event) -> State:
        """The state after one more event.

        Raises:
            JournalCorrupt: it does not fit.
        """
        state, kind = self.state, type(event)
        if state is None:
            if kind is not Started:
                raise JournalCorrupt(f"journal: begins with {kind.__name__}, not with Started")
            state = self.state = start(cast("Started", event))
        elif not take(state, event):
            raise JournalCorrupt(
                f"loop {state.loop_id!r}: {kind.__name__} does not fit at {state.at!r}", loop_id=state.loop_id
            )
        return state

    def _standing(self, state: State) -> _Before:
        """What of a state is told with the event that changes it."""
        asking, sent = inference_owed(state), 0
        if asking is not None:
            sent = len(state.history if state.sent is None else state.sent.messages)
            if asking.purpose != "turn":
                sent = len(request_of(state, asking, self._parts_of(state)).messages)
        return _Before(asking, state.mended is not None, sent, settlings(state))

    def _parts_of(self, state: State) -> RequestParts:
        if self._parts is None or self._spec is not state.spec:
            self._spec, self._parts = state.spec, self._parts_for(state.spec)
        return self._parts

    def ids(
        self, event: Event, state: State, of: dict[str, Any], call_id: str = "", settling: int = 0
    ) -> dict[str, Any]:
        """The ids of what is told of an event itself, in the place of the loop's."""
        index = event.index + 1 if isinstance(event, ToolReturned) else 0
        calls = (call_id,) * index
        mine = event_correlation(event, state, calls, of["correlation"], settling=settling)
        return {**of, "correlation": mine}

    def _turns(self, at: float, turn: tuple[int, int] | None, of: dict[str, Any]) -> Iterator[RuntimeEvent]:
        """That the turn has ended, that another began."""
        if self._turn is not None:
            yield TurnEndedEvent(**of, at=at, turn=self._turn[1], response=self._response)
            self._begun.clear()
        self._turn, self._response = turn, None
        if turn is not None:
            yield TurnStartedEvent(**of, at=at, turn=turn[1])

    def _begins(self, at: float, state: State, of: dict[str, Any]) -> Iterator[RuntimeEvent]:
        """The model calls and tool calls that are owed now and were not before."""
        for effect in _under_way(state):
            kind = type(effect)
            if (kind is not Infer and kind is not Execute) or effect.id in self._begun:
                continue
            self._begun.add(effect.id)
            if isinstance(effect, Infer):
                yield self._requested(effect, at, state, of)
                continue
            effect = cast("Execute", effect)
            call, given = state.calls[effect.index], state.arguments or {}
            ids: Any = effect_correlation(
                of["correlation"],
                effect.id,
                model_request_id=effect_id(state, "infer", 0),
                tool_call_id=call.id,
                caused_by=call.id,
            )
            yield ToolCalledEvent(
                **{**of, "correlation": ids},
                tool_call_id=call.id,
                tool_name=call.name,
                args_json=given.get(effect.index, call.args_json),
                called_at=at,
                turn=effect.turn,
            )

    def _requested(self, effect: Infer, at: float, state: State, of: dict[str, Any]) -> ModelRequestedEvent:
        request = request_of(state, effect, self._parts_of(state))
        messages = request.messages
        model, provider = state.spec.served_by(effect.purpose)
        ids: Any = effect_correlation(of["correlation"], effect.id, model_request_id=effect.id)
        return ModelRequestedEvent(
            **{**of, "correlation": ids},
            at=at,
            turn=effect.turn,
            request_id=effect.id,
            messages=messages,
            prompt=self._last_said(state.history) if effect.purpose == "turn" else last_said(messages),
            purpose=effect.purpose,
            model=model,
            provider=provider,
            settings=request.settings,
            tool_defs_count=len(request.tools),
            schema_present=request.output is not None or not request.allows_text,
            grammar_present=request.grammar is not None,
        )

    def responded(
        self, event: ModelAnswered | ModelFailed, state: State, of: dict[str, Any], before: _Before
    ) -> Iterator[RuntimeEvent]:
        """That a model call has ended; and that a repair has come to nothing, if it has."""
        of = self.ids(event, state, of)
        if event.around is not None:
            for stats in event.around.compactions:
                yield ContextCompactedEvent(**of, at=event.at, turn=event.turn, stats=stats)
        model, provider = state.spec.served_by(event.purpose)
        if isinstance(event, ModelAnswered):
            message, failure = event.message, None
            if event.purpose == "turn":
                self._response = message
        else:
            message, failure = event.partial, event.error
        error = "" if failure is None else failure.message
        yield ModelRespondedEvent(
            **of,
            at=event.at,
            turn=event.turn,
            request_id="" if before.asking is None else before.asking.id,
            response=message,
            error=error,
            duration=event.duration,
            model=(message.model if message is not None else None) or model,
            purpose=event.purpose,
            message_count=before.sent,
            asked=model,
            provider=provider,
            failure=failure,
        )
        if event.purpose == "repair" and state.mended is None:
            why = error or "the model gave nothing that could be read"
            yield OutputRepairedEvent(**of, at=event.at, turn=event.turn, succeeded=False, error=why)

    def reviewed(
        self, event: AnswerReviewed, state: State, of: dict[str, Any], _: _Before
    ) -> Iterator[RuntimeEvent]:
        """What was made of the answer; and that a condition ends the run with it, if one does."""
        if event.dropped:
            self._response = None
        elif event.message is not None:
            self._response = event.message
        if event.stop:
            yield RunConditionCheckedEvent(
                **self.ids(event, state, of),
                at=event.at,
                turn=event.turn,
                stopped=True,
                reason=event.stop,
            )

    def began(
        self, event: Started | Forked | Reopened, state: State, of: dict[str, Any], _: _Before
    ) -> Iterator[RuntimeEvent]:
        """That a run began."""
        if isinstance(event, Forked):
            self._turn = None  # it is the other run's
            self._begun.clear()
        yield RunStartedEvent(**of, prompt=asked(state), started_at=event.at)


def turn_of(event: RuntimeEvent, state: State) -> int:
    """The number of the turn that an event is told in, the last of a loop that has come to this state."""
    if isinstance(event, RunStartedEvent):
        return state.turn - (_open_turn(state) is not None)
    return getattr(event, "turn", state.turn)


def _open_turn(state: State) -> tuple[int, int] | None:
    return None if state.at in _NO_TURN else (state.attempt, state.turn)


def _answer_of(state: State) -> Message | None:
    """The answer of the turn that a loop stands in."""
    if state.at not in _ANSWERED:
        return state.reviewing
    for message in reversed(state.history):
        if message.role is Role.ASSISTANT:
            return message
    return None


def _looked_at(
    narrator: Narrator, event: Admitted | TurnPrepared, state: State, of: dict[str, Any], _: _Before
) -> Iterator[RuntimeEvent]:
    """What was made of the context, and what the guardrails said."""
    of = narrator.ids(event, state, of)
    turn, added = 0, 0
    notes: tuple[str, ...] = ()
    if isinstance(event, TurnPrepared):
        turn, notes = event.turn, event.notes
        for stats in event.compactions:
            yield ContextCompactedEvent(**of, at=event.at, turn=turn, stats=stats)
    else:
        added = len(event.instructions)
    if added or notes or event.degraded:
        yield ContextPreparedEvent(
            **of, at=event.at, turn=turn, added=added, notes=notes, degraded=event.degraded
        )
    for name in event.passed:
        yield GuardrailEvaluatedEvent(**of, at=event.at, turn=turn, name=name, passed=True)
    error = event.error
    if error is not None and (name := (error.details or {}).get("guardrail")) is not None:
        yield GuardrailEvaluatedEvent(
            **of, at=event.at, turn=turn, name=str(name), passed=False, error=error.message
        )


def _tool_ended(
    narrator: Narrator, event: ToolReturned, state: State, of: dict[str, Any], _: _Before
) -> Iterator[RuntimeEvent]:
    result = event.result
    if result.status is not ResultKind.DEFERRED:
        yield ToolEndedEvent(
            **narrator.ids(event, state, of, result.call_id),
            at=event.at,
            turn=event.turn,
            tool_call_id=result.call_id,
            tool_name=result.name,
            result=result,
            duration=event.duration,
        )


def _settled(
    narrator: Narrator, event: TurnSettled, state: State, of: dict[str, Any], before: _Before
) -> Iterator[RuntimeEvent]:
    """What came of putting the answer right, and of validating it. One that is reflected on was valid."""
    of = narrator.ids(event, state, of, settling=before.settling)
    error = event.error.message if event.error is not None else "\n".join(event.feedback)
    at, turn, passed = event.at, event.turn, event.accepted or bool(event.reflected)
    if event.repairs:
        yield OutputRepairedEvent(**of, at=at, turn=turn, succeeded=True, repairs=event.repairs)
    elif before.mended and event.unread is not None:
        yield OutputRepairedEvent(**of, at=at, turn=turn, succeeded=False, error=error)
    yield OutputValidatedEvent(**of, at=at, turn=turn, passed=passed, error="" if passed else error)


def _completed(event: Ended, state: State, of: dict[str, Any]) -> RunCompletedEvent:
    return RunCompletedEvent(
        **of,
        success=event.outcome is Outcome.SUCCESS,
        error="" if event.error is None else event.error.message,
        started_at=state.started_at,
        completed_at=event.at,
        failure=event.error,
        usage=state.usage,
    )


_NEED_BEFORE = frozenset({ModelAnswered, ModelFailed, TurnSettled})
_CALLING = frozenset({"infer", "execute", "repair", "compact"})
"""Where a loop owes model calls and tool calls."""
_TELLERS: dict[
    type[Any], Callable[[Narrator, Any, State, dict[str, Any], _Before], Iterator[RuntimeEvent]]
] = {
    Started: Narrator.began,
    Forked: Narrator.began,
    Reopened: Narrator.began,
    Admitted: _looked_at,
    TurnPrepared: _looked_at,
    ModelAnswered: Narrator.responded,
    ModelFailed: Narrator.responded,
    AnswerReviewed: Narrator.reviewed,
    ToolReturned: _tool_ended,
    TurnSettled: _settled,
}
"""What is told of each kind of event, of itself; others only move the loop on."""

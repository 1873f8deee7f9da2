"""A run explained: each turn's whole request, what came back, what decided, and what may be done next.

Pure: made from the events alone, each time anew. The request is the very one that the engine was handed: it
is worked out from the state before the call, in the way in which the driver did, with what is recorded of
what middleware made of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from flyball.adapters.cli.checked import checked
from flyball.adapters.cli.middleware import told
from flyball.adapters.cli.naming import short
from flyball.adapters.cli.origin import origin_of
from flyball.adapters.cli.screen import one_line
from flyball.core.around import Around
from flyball.core.errors import SystemError  # noqa: A004 - pagantic's name for it
from flyball.core.events import (
    Admitted,
    AnswerReviewed,
    CallsJudged,
    ChildEnded,
    ChildStarted,
    Delivered,
    Ended,
    Event,
    Forked,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Reopened,
    Resumed,
    SignalReceived,
    Started,
    TimePassed,
    ToolReturned,
    TurnPrepared,
    TurnSettled,
    Verdict,
)
from flyball.core.messages import Message, Retry
from flyball.inference.rendered import Prompt
from flyball.inference.request import Request, Result
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.lifecycle import phase_of, stage_of
from flyball.orchestrate.machine import effect_id, fold, inference_owed
from flyball.orchestrate.projections import ToolCallRecord, tool_calls_made
from flyball.orchestrate.replay import steps
from flyball.orchestrate.requests import request_parts
from flyball.orchestrate.sent import Asking
from flyball.orchestrate.state import State
from flyball.orchestrate.waiting import deferred_requests

_REFUSED = "the check refused the answer"


class Turn(Struct, frozen=True):
    """One model call. `sent` is the request; without `answer` and `error` nothing was recorded of its end.

    Where middleware called the model several times, `earlier` are the requests before the last; where it did
    not call it at all, `called` is false and `sent` is what would have been sent without it.

    `prompts` is what the engine made of the request, where it puts that into words of its own (see
    `rendering`); `note` says why that cannot be told.
    """

    number: int
    attempt: int
    sent: Request
    answer: Message | None = None
    error: SystemError | None = None
    partial: Message | None = None
    duration: float = 0.0
    tools: tuple[ToolCallRecord, ...] = ()
    decided: tuple[str, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    note: str = ""
    earlier: tuple[Request, ...] = ()
    called: bool = True


class Next(Struct, frozen=True):
    """Something that may be done with the run: the command, and what it is good for."""

    command: str
    what: str


class Explanation(Struct, frozen=True):
    """All about a run. `verdict` says in a sentence what decided how it stands."""

    run: str
    agent: str
    model: str
    phase: str
    stage: str
    verdict: str
    turns: tuple[Turn, ...]
    next: tuple[Next, ...]
    error: SystemError | None = None
    before: tuple[str, ...] = ()
    """What was decided before the first turn."""
    note: str = ""
    """Why it cannot be told what the engine made of the requests, if it cannot."""


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


def explain(events: Sequence[Event]) -> Explanation:
    """Explain a run.

    Raises:
        JournalCorrupt: the events are no journal.
    """
    state = fold(events)
    turns, before = _turns(events)
    made = tool_calls_made(events)
    name = short(state.loop_id)
    return Explanation(
        run=state.loop_id,
        agent=state.spec.agent,
        model=origin_of(events, state).model,
        phase=str(phase_of(state)),
        stage=str(stage_of(state)),
        verdict=_verdict(state, turns[-1] if turns else None),
        turns=tuple([_closed(turn, made) for turn in turns]),
        next=tuple(_next(state, name)),
        error=state.error,
        before=tuple(before),
    )


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
    open_id = ""
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
        (before if current is None else current.decided).extend(_decisions(event, state, answer))
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
    if turn is None or any(text.startswith(_REFUSED) for text in turn.decided):
        return
    last = state.history[-1] if state.history else None
    for part in () if last is None else last.parts:
        if isinstance(part, Retry):
            turn.decided.append(f"{_REFUSED}: {part.text}")


def _decisions(event: Event, state: State, answer: Message | None) -> list[str]:
    """What an event decided, in words."""
    if isinstance(event, ModelAnswered | ModelFailed) and event.purpose != "turn":
        return [_beside_the_turn(event, state)]
    if isinstance(event, ModelAnswered):
        return [
            f"the model: {Result(event.message).finish_reason}",
            *[f"note: {note}" for note in event.notes],
        ]
    if isinstance(event, ModelFailed):
        return [f"the model call failed: {event.error.code}: {event.error.message}"]
    if isinstance(event, TurnSettled):
        return _settled(event)
    if isinstance(event, ToolReturned):
        result = event.result
        came = f"failed: {result.error}" if result.is_error else str(result.status)
        return [f"the tool {result.name}: {came}"]
    if isinstance(event, CallsJudged):
        if event.error is not None:
            return [f"judging the calls ended the run: {event.error.code}: {event.error.message}"]
        names = [] if answer is None else [call.name for call in answer.tool_calls]
        asked = state.spec.tools if state.spec.judges else {}
        return [
            _judged(verdict, name, careful=name in asked and asked[name].approval)
            for verdict in event.verdicts
            for name in [names[verdict.index]]
        ]
    if isinstance(event, SignalReceived):
        signal = event.signal
        by, text = (f" by {signal.by}" if signal.by else ""), (f": {signal.text}" if signal.text else "")
        return [f"the signal {signal.type}{by}{text}"]
    if isinstance(event, TimePassed):
        return [f"the limit timeout ({state.spec.limits.timeout or 0:g} s) passed"]
    return _about_the_loop(event)


def _beside_the_turn(event: ModelAnswered | ModelFailed, state: State) -> str:
    """What came of a model call that was made for something else than the turn."""
    if isinstance(event, ModelFailed):
        return (
            f"the model call for a {_MADE[event.purpose]} failed: {event.error.code}: {event.error.message}"
        )
    model = event.message.model or state.spec.served_by(event.purpose)[0]
    return f"{model} was asked for a {_MADE[event.purpose]}: {' '.join(event.message.text.split())}"


def _about_the_loop(event: Event) -> list[str]:
    if isinstance(event, Resumed):
        return ["another process went on from here"]
    if isinstance(event, Reopened):
        return ["it was tried again"]
    if isinstance(event, ChildStarted):
        return [f"a loop of {event.agent} was begun under it: {event.loop_id}"]
    if isinstance(event, ChildEnded):
        return [f"the loop {event.loop_id} was over, with {event.requests} model calls"]
    if isinstance(event, Forked):
        return [f"forked from {short(event.source)} after turn {event.turn}"]
    if isinstance(event, Admitted | TurnPrepared | AnswerReviewed):
        return checked(event)
    if isinstance(event, Delivered) and event.error is not None:
        return [f"refused: {event.error.code}: {event.error.message}"]
    if isinstance(event, Ended):
        limit = (event.error.details or {}).get("limit") if event.error is not None else None
        why = f" by the limit {limit}" if limit else ""
        return [f"the run ended: {event.outcome}{why}"]
    if isinstance(event, Started) and event.history:
        return [f"it began with {len(event.history)} messages of an earlier conversation"]
    return []


def _settled(event: TurnSettled) -> list[str]:
    repairs = [f"the check put the answer right: {repair}" for repair in event.repairs]
    if event.accepted:
        taken = f", though the reflection has against it: {event.reflected}" if event.reflected else ""
        return [*repairs, f"the check accepted the answer{taken}"]
    if event.reflected:
        return [*repairs, f"the reflection sent the answer back: {event.reflected}"]
    if event.error is not None:
        return [*repairs, f"the check ended the run: {event.error.code}: {event.error.message}"]
    return [*repairs, *[f"{_REFUSED}: {text}" for text in event.feedback]]


def _judged(verdict: Verdict, name: str, *, careful: bool) -> str:
    """What was decided about a call; `careful`: approval had a say in it, and not only the filters."""
    who = f"the filter {verdict.by}" if verdict.by else "approval" if careful else "filters"
    if verdict.args_json is not None:
        return f"{who}: {name} was let through with other arguments: {verdict.args_json}"
    if verdict.allowed:
        return f"{who}: {name} was let through"
    return f"{who}: {name} was refused" + (f": {verdict.reason}" if verdict.reason else "")


def _verdict(state: State, last: _Open | None) -> str:
    """In a sentence, what decided how the run stands."""
    if state.at != "done":
        if state.paused or state.pausing:
            return "It is paused: a signal asked for that."
        if state.at == "execute" and state.awaiting:
            names = ", ".join([state.calls[index].name for index in state.awaiting])
            return f"It waits for somebody to approve {names}."
        if waits_for_results(state):
            calls = ", ".join([f"{one.tool_name} ({one.tool_call_id})" for one in deferred_requests(state)])
            return f"It waits for results from outside: {calls}."
        return f"It is not over: nothing is recorded after turn {state.turn} came to {_STANDS[state.at]}."
    if state.outcome is Outcome.SUCCESS:
        checked = last is not None and any("accepted" in text for text in last.decided)
        return "It has its answer: " + ("the check accepted it." if checked else "the model answered.")
    if state.error is None:
        return "It ended without an answer."
    limit = (state.error.details or {}).get("limit")
    by = f"the limit {limit}" if limit else f"{state.error.code} ({state.error.category})"
    return f"It ended by {by}: {state.error.message}"


_MADE = {"repair": "repair", "compact": "summary"}
"""What a model call is made for, if not for the turn."""

_STANDS = {
    "admit": "its beginning",
    "prepare": "its preparation",
    "compact": "the summary of what was said",
    "infer": "the model call",
    "judge": "the approval of its tool calls",
    "execute": "its tool calls",
    "review": "the review of its answer",
    "settle": "the check of its answer",
    "repair": "the repair of its answer",
    "deliver": "its deliveries",
    "end": "its end",
}


def _next(state: State, name: str) -> list[Next]:
    """What may be done with the run."""
    if state.at != "done" and state.at == "execute" and state.awaiting:
        return [
            Next(f"flyball resume {name} --approve", "let the calls run that wait"),
            Next(f'flyball resume {name} --reject "why"', "refuse them; the model reads the reason"),
        ]
    if waits_for_results(state):
        return [
            *[
                Next(
                    f'flyball answer {name} {one.tool_call_id} "…"',
                    f"give the result of {one.tool_name} {one_line(one.args_json, 60)}",
                )
                for one in deferred_requests(state)
            ],
            _fork(state, name),
        ]
    if state.at != "done":
        return [Next(f"flyball resume {name}", "go on where it stopped"), _fork(state, name)]
    if state.outcome is Outcome.SUCCESS:
        return [
            Next(f"flyball replay {name}", "give the answer again, without a model"),
            Next(f"flyball chat --resume {name}", "go on talking"),
            _fork(state, name),
        ]
    retryable = state.error is not None and state.error.retryable
    again = "try it again" + (": this kind of error may pass" if retryable else ", from where it ended")
    return [Next(f"flyball resume {name}", again), _fork(state, name)]


def _fork(state: State, name: str) -> Next:
    turn = max(state.turn - 1, 0)
    after = f"after turn {turn}" if turn else "from its beginning"
    return Next(f"flyball fork {name} --at {turn} -m MODEL", f"go on {after} with another model")

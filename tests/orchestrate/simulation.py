"""A world that hypothesis plays: it answers what a loop owes, in any order, with whatever may come.

After every event it checks what must always hold; see `World.check`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import UNSET

from flyball.core.around import Around, Sent
from flyball.core.carried import Carried
from flyball.core.codec import decode_event, encode_event
from flyball.core.compaction import CompactionPlan
from flyball.core.edits import edits_between
from flyball.core.effects import (
    Admit,
    Deliver,
    Effect,
    End,
    Execute,
    Infer,
    Judge,
    Prepare,
    Review,
    Settle,
    Wait,
)
from flyball.core.errors import EngineError
from flyball.core.events import (
    VERSION,
    Admitted,
    AnswerReviewed,
    CallsJudged,
    ChildEnded,
    ChildStarted,
    Delivered,
    Ended,
    Event,
    ModelAnswered,
    ModelFailed,
    Outcome,
    Purpose,
    Reopened,
    Resumed,
    SignalReceived,
    Stage,
    StageMoved,
    Started,
    TimePassed,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
    TurnSettled,
    Verdict,
)
from flyball.core.history import check_history
from flyball.core.limits import Limits, UsageLimits
from flyball.core.messages import (
    FinishReason,
    Message,
    Part,
    ResultKind,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    user,
)
from flyball.core.signals import Signal, SignalType
from flyball.core.snapshot import RunSnapshot
from flyball.core.spec import CompactSpec, LoopSpec, OutputMode, OutputSpec, RepairSpec
from flyball.core.tools import Safety, ToolChoice, ToolDefinition, ToolKind, ToolSpec
from flyball.core.usage import CallUsage, RunUsage, Usage
from flyball.orchestrate import reaching
from flyball.orchestrate.call_ids import told_apart
from flyball.orchestrate.calls import waits_for_results
from flyball.orchestrate.candidates import candidates
from flyball.orchestrate.compacted import can_be_planned, remembered
from flyball.orchestrate.machine import accepts, apply, fold, inference_owed, owed, start
from flyball.orchestrate.requests import request_for
from flyball.orchestrate.sending import base, outgoing
from flyball.orchestrate.snapshot import snapshot_of
from flyball.orchestrate.spending import spent
from flyball.orchestrate.state import EDGES, State

T = TypeVar("T")

STATES = msgspec.json.Decoder(State)
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
OUTPUT = ToolDefinition("final_result", SCHEMA, kind=ToolKind.OUTPUT)
OTHER = ToolDefinition("final_result_Other", SCHEMA, kind=ToolKind.OUTPUT)
REPAIRER = RepairSpec("Put it right.")


def tool_spec(
    name: str,
    *,
    sequential: bool,
    approval: bool,
    safety: Safety,
    retries: int | None,
    state: str | None,
    outside: bool,
) -> ToolSpec:
    definition = ToolDefinition(name, SCHEMA, sequential=sequential)
    if outside:
        return ToolSpec(definition, retries=retries, outside=True)
    return ToolSpec(definition, safety=safety, approval=approval, retries=retries, state=state)


# A strategy is made once, here: making one for each draw would take longer than the draw.
NAMES = ("look", "send", "add")
_some_names = st.lists(st.sampled_from(NAMES), unique=True, max_size=3)
tool_specs = {
    name: st.builds(
        tool_spec,
        st.just(name),
        sequential=st.booleans(),
        approval=st.booleans(),
        safety=st.sampled_from(Safety),
        retries=st.none() | st.integers(0, 2),
        state=st.sampled_from([None, None, "one", "two"]),
        outside=st.sampled_from([False, False, False, True]),
    )
    for name in NAMES
}
tools = st.fixed_dictionaries({}, optional=tool_specs)

outputs = st.sampled_from(
    [
        OutputSpec(),
        OutputSpec(checked=True),
        OutputSpec(mode=OutputMode.TOOL, tools=(OUTPUT,), allows_text=False, checked=True),
        OutputSpec(mode=OutputMode.TOOL, tools=(OUTPUT, OTHER), checked=True, repairer=REPAIRER),
        OutputSpec(mode=OutputMode.NATIVE, schema=SCHEMA, checked=True),
        OutputSpec(mode=OutputMode.NATIVE, schema=SCHEMA, checked=True, repairer=REPAIRER),
        OutputSpec(approval=True),
        OutputSpec(mode=OutputMode.TOOL, tools=(OUTPUT, OTHER), checked=True, approval=True),
    ]
)

limits = st.builds(
    Limits,
    max_iterations=st.sampled_from([None, 1, 4, 20]),
    usage=st.builds(
        UsageLimits,
        request_limit=st.sampled_from([None, 3, 50]),
        tool_calls_limit=st.sampled_from([None, 2]),
        total_tokens_limit=st.sampled_from([None, 25]),
    ),
    timeout=st.sampled_from([None, 60.0]),
    repeated_calls=st.sampled_from([None, 1, 5]),
    calls_per_turn=st.sampled_from([None, 3]),
    max_concurrency=st.sampled_from([1, 2, 64]),
    max_depth=st.sampled_from([None, 0, 8]),
)

specs = st.builds(
    LoopSpec,
    instructions=st.sampled_from(["", "Be brief."]),
    tools=tools,
    output=outputs,
    limits=limits,
    retries=st.integers(0, 2),
    tool_choice=st.sampled_from([None, ToolChoice("required", auto_reset=True)]),
    end_strategy=st.sampled_from(["early", "exhaustive"]),
    admits=st.booleans(),
    prepares=st.booleans(),
    reviews=st.booleans(),
    judges=st.booleans(),
    filters=st.booleans(),
    delivers=st.booleans(),
    editor=st.sampled_from(["", "editor"]),
    provider=st.sampled_from(["", "openai"]),
    compactor=st.sampled_from([None, CompactSpec("auto_context", "Sum it up.")]),
)

texts = st.sampled_from(["", "hello", "{}", "ein Löwe"])
call_ids = st.sampled_from(["a", "b", "c", "d"])


_either = st.booleans()
_up_to = [st.integers(0, most) for most in range(10)]
_some_ids = st.lists(call_ids, unique=True, max_size=4)
_arguments = st.sampled_from(["{}", '{"x": 1}', '{"x": 1}', '{"x": '])
_usages = st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9))
_below = st.lists(st.builds(CallUsage, st.just(1000.0), st.just("m"), _usages), max_size=2)
"""What a loop under this one used."""
_finishes = st.none() | st.sampled_from(FinishReason)
_other_arguments = st.none() | st.just("{}")
_statuses = st.sampled_from([ResultKind.RETURN, ResultKind.RETURN, ResultKind.RETRY, ResultKind.DEFERRED])
_answers = st.sampled_from([ResultKind.RETURN, ResultKind.RETRY])
_later = st.sampled_from([0.0, 100.0])
_stages = st.sampled_from(Stage)
carried = st.none() | st.builds(
    Carried,
    step=st.integers(0, 3),
    usage=st.builds(RunUsage, requests=st.integers(0, 3), input_tokens=st.integers(0, 9)),
    retries=st.integers(0, 2),
    tool_retries=st.none() | st.just({"look": 1}),
)
_purposes: SearchStrategy[Purpose] = st.sampled_from(["turn", "turn", "repair", "compact"])
_earlier = Message(Role.TOOL, (ToolResult("z1", "look", "ok"),))
_earlier_call = assistant("", ToolCall("z1", "look"))
earlier: SearchStrategy[tuple[Message, ...]] = st.sampled_from(
    [
        (),
        (user("One?"), assistant("1."), user("Two?"), _earlier_call, _earlier, assistant("2.")),
    ]
)
"""What was said before the loop began."""
_reflected = st.sampled_from(["", "", "too short"])
_children = st.sampled_from(["loop", "loop-editor", "one", "two"])
_outcomes = st.sampled_from(Outcome)
_indices = st.integers(-1, 4)
_left_states: SearchStrategy[Any] = st.sampled_from([UNSET, UNSET, None, 1, {"deep": [1]}])
_sent_besides = st.sampled_from([[], [], [assistant("What?"), user("This.")]])


def one_in(draw: st.DrawFn, number: int) -> bool:
    """Whether something happens that happens one time in so many, which are ten at the most.

    The simplest world is one in which it does not.
    """
    return draw(_up_to[number - 1]) == number - 1


def one_of_these(draw: st.DrawFn, values: Sequence[T]) -> T:
    """One of some values; where there is no choice, nothing is drawn."""
    most = len(values) - 1
    return values[draw(_up_to[most] if most < len(_up_to) else st.integers(0, most)) if most else 0]


def said(draw: st.DrawFn, spec: LoopSpec, ids: SearchStrategy[list[str]] = _some_ids) -> Message:
    """What a model may say: text, thinking, calls to tools that it has and to others, nothing."""
    parts: list[Part] = []
    if draw(_either):
        parts.append(Thinking("hm"))
    if text := draw(texts):
        parts.append(Text(text))
    outputs = [definition.name for definition in spec.output.tools]
    names = (*spec.tools, *spec.tools, *(outputs or ["final_result"]), "no_such_tool")
    for identifier in draw(ids):
        parts.append(ToolCall(identifier, one_of_these(draw, names), draw(_arguments)))
    return Message(Role.ASSISTANT, tuple(parts), usage=draw(_usages), finish_reason=draw(_finishes))


signals = st.builds(
    Signal,
    st.sampled_from(SignalType),
    id=st.sampled_from(["", "s1", "s2", "s3"]),
    text=st.sampled_from(["", "because"]),
    call_id=st.none() | call_ids,
)


@dataclass
class World:
    """One loop, its journal, and the clock."""

    spec: LoopSpec
    history: tuple[Message, ...] = ()
    depth: int = 0
    carried: Carried | None = None
    now: float = 1000.0
    journal: list[Event] = field(default_factory=list[Event])
    answered: set[str] = field(default_factory=set[str])
    refused: int = 0

    def __post_init__(self) -> None:
        started = Started(
            self.now,
            VERSION,
            "loop",
            self.spec,
            user("hi"),
            self.history,
            depth=self.depth,
            carried=self.carried,
        )
        self.state: State = start(started)
        self.record(started)
        self.check()

    def offer(self, event: Event) -> bool:
        """Record an event if it fits."""
        event = told_apart(event, self.state.ids)
        if not accepts(self.state, event):
            self.refused += self.state.at == "done"
            return False
        before = self.state.at
        apply(self.state, event)
        assert self.state.at == before or self.state.at in EDGES[before], (before, event, self.state.at)
        self.record(event)
        self.check()
        return True

    @property
    def over(self) -> bool:
        """Whether the loop has ended, and has refused enough of what came afterwards."""
        return self.refused >= 4

    def record(self, event: Event) -> None:
        """Keep what a reader of the journal would read."""
        self.journal.append(decode_event(encode_event(event)))

    def check(self) -> None:
        state = self.state
        # A fresh process that decodes the journal owes exactly what the live driver owes.
        again = fold(self.journal)
        assert again == state
        assert owed(again) == owed(state)
        # A state that was written down is the same state.
        assert STATES.decode(msgspec.json.encode(state)) == state
        # Ids are unique, and nothing that was answered is owed again.
        ids = [effect.id for effect in owed(state)]
        assert len(set(ids)) == len(ids)
        assert not self.answered & set(ids)
        # There is always a way on.
        assert (state.at == "done") == (not ids)
        # What is sent, and what is left at the end, is valid for every provider.
        if state.at == "infer":
            check_history(state.history, complete=True)
            check_history(outgoing(state), complete=True)
        if state.at in ("prepare", "compact"):
            check_history(remembered(state), complete=True)
        if state.at in ("repair", "compact"):
            called = inference_owed(state)
            assert called is not None
            check_history(request_for(state, called).messages, complete=True)
        if state.at in ("deliver", "end", "done"):
            check_history(state.history)
            assert state.outcome is not None
        self.check_snapshot()
        assert state.open == sum(result is None for result in state.results)
        # What the calls used is what the run has used: its cost leaves nothing out.
        began = Usage() if state.carried is None else state.carried.usage
        used = sum([call.usage for call in spent(state) if call.usage is not None], Usage())
        assert used.input_tokens + began.input_tokens == state.usage.input_tokens
        assert used.output_tokens + began.output_tokens == state.usage.output_tokens
        self.check_what_waits()
        self.check_tool_state()
        self.check_approval()
        self.check_the_end()

    def check_approval(self) -> None:
        """Where a person must approve the answer, none counts without: that is the last word."""
        state = self.state
        assert (state.at == "approve") <= (state.spec.output.approval and state.answer is not None)
        if state.outcome is Outcome.SUCCESS and state.spec.output.approval:
            decided = [event for event in self.journal if isinstance(event, SignalReceived | ModelAnswered)]
            last = [one for one in decided if not _is_beside(one)][-1]
            assert isinstance(last, SignalReceived), "the answer came after the last signal"
            assert last.signal.type is SignalType.APPROVE

    def check_snapshot(self) -> None:
        """A snapshot of any moment can be kept, and gone on from: counts go on, and what is sent is valid."""
        snapshot = snapshot_of(self.state, self.now)
        assert RunSnapshot.from_json(snapshot.to_json()) == snapshot
        check_history(snapshot.messages)
        begun = Started(
            self.now, VERSION, "on", LoopSpec(), user("go on"), snapshot.messages, carried=snapshot.carried
        )
        went_on = start(begun)
        assert (went_on.usage, went_on.turn) == (
            self.state.usage,
            snapshot.run_step + (went_on.at == "infer"),
        )
        check_history(went_on.history, complete=True)
        assert went_on.tool_retries == self.state.tool_retries
        assert went_on.tool_state == self.left_by(snapshot.run_step)

    def check_what_waits(self) -> None:
        """What is deferred is open, is run no more and is waited for; nothing is recorded as its result."""
        state = self.state
        assert all(state.results[index] is None for index in state.deferred)
        assert state.at == "execute" or not (state.deferred or state.detached)
        effects = owed(state)
        running = {effect.index for effect in effects if isinstance(effect, Execute)}
        assert not running & set(state.deferred)
        if state.at == "execute":
            outside = {n for n, call in enumerate(state.calls) if self.is_outside(call.name)}
            assert not running & outside, "nobody here runs it"
            open_ = {n for n in outside if state.results[n] is None and n not in state.outputs}
            assert open_ <= set(state.deferred), "its result is waited for from the beginning"
        waits = [effect for effect in effects if isinstance(effect, Wait)]
        named = [name for effect in waits for name in effect.calls]
        assert named == ([] if state.paused else [state.calls[index].id for index in state.deferred])
        only = bool(effects) and all(isinstance(one, Wait) and not one.signals for one in effects)
        assert waits_for_results(state) == only
        if state.at in ("infer", "deliver", "end", "done"):
            assert not any(
                result.status is ResultKind.DEFERRED and not result.is_error
                for message in state.history
                for result in message.tool_results
            )

    def is_outside(self, name: str) -> bool:
        """Whether a tool's calls are run by nobody here."""
        tool = self.state.spec.tools.get(name)
        return tool is not None and tool.outside

    def check_tool_state(self) -> None:
        """A state is what the last call that changed it has left, and no two calls change one at once."""
        state, tools = self.state, self.state.spec.tools
        assert state.tool_state == self.left_by(state.turn)
        running = [state.calls[effect.index].name for effect in owed(state) if isinstance(effect, Execute)]
        assert len(running) <= 1 or not any(tools[name].alone for name in running)

    def left_by(self, turn: int) -> dict[str, Any] | None:
        """What the calls up to a turn have left of the states."""
        tools = self.state.spec.tools
        left: dict[str, Any] = {}
        for event in self.journal:
            if not isinstance(event, ToolReturned) or event.turn > turn:
                continue
            if event.state is not UNSET and event.result.status is not ResultKind.DEFERRED:
                name = tools[event.result.name].state
                if name is not None:
                    left[name] = event.state
        return left or None

    def check_the_end(self) -> None:
        """A cancel goes to every child that is recorded, and an answer to the editor."""
        state = self.state
        recorded = [event.loop_id for event in self.journal if isinstance(event, ChildStarted)]
        assert list(state.children) == recorded
        assert len(set(recorded)) == len(recorded)
        over = [event.loop_id for event in self.journal if isinstance(event, ChildEnded)]
        assert len(set(over)) == len(over), "what a child used counts once"
        assert set(over) <= set(recorded)
        for effect in owed(state):
            if isinstance(effect, End):
                cancelled, answered = (state.outcome is one for one in (Outcome.CANCELLED, Outcome.SUCCESS))
                assert effect.cancels == (state.children if cancelled else ())
                assert effect.editor == (state.spec.editor if answered else "")
        too_deep = state.spec.limits.max_depth is not None and self.depth > state.spec.limits.max_depth
        assert not too_deep or (state.outcome is not Outcome.SUCCESS and not state.iterations)

    def answer(self, draw: st.DrawFn, effect: Effect) -> Event:
        """An answer to an effect, as the world may give it."""
        self.now += 1
        return replied(draw, self, effect)


def _is_beside(event: SignalReceived | ModelAnswered) -> bool:
    """Whether it decides nothing about an answer: a pause and what ends it, what nobody can read any more."""
    if isinstance(event, ModelAnswered):
        return False
    return event.signal.type not in (SignalType.APPROVE, SignalType.REJECT)


@st.composite
def reply(draw: st.DrawFn, world: World, effect: Effect) -> Event:
    return replied(draw, world, effect)


def replied(draw: st.DrawFn, world: World, effect: Effect) -> Event:
    now, state = world.now, world.state
    error = EngineError("it broke").record()
    failed = one_in(draw, 10)
    if isinstance(effect, Admit):
        return Admitted(now, error=error) if failed else Admitted(now, ("Speak English.",), user("hi there"))
    if isinstance(effect, Prepare):
        offered = tuple(draw(_some_names))
        known = tuple(name for name in offered if name in state.spec.tools)
        plans = [CompactionPlan(stop, 9, 100) for stop in range(len(state.history) + 1)]
        plans = [plan for plan in plans if can_be_planned(state, plan)]
        if plans and not failed and draw(_either):
            return TurnPrepared(now, effect.turn, compact=one_of_these(draw, plans))
        edits, skipped = edits_between(base(state), remembered(state)), ""
        if one_in(draw, 3):
            # Whatever was said, something else is sent: as an interceptor may have it.
            edits = edits_between(base(state), [user("Something else."), *draw(_sent_besides)])
        elif one_in(draw, 10):
            skipped = "not now"
        return TurnPrepared(now, effect.turn, known, error if failed else None, edits=edits, skipped=skipped)
    if isinstance(effect, Infer):
        around = middleware(draw, state) if one_in(draw, 4) else None
        if failed:
            partial = said(draw, state.spec) if draw(_either) else None
            return ModelFailed(now, effect.turn, error, partial, purpose=effect.purpose, around=around)
        answer = said(draw, state.spec)
        return ModelAnswered(now, effect.turn, answer, purpose=effect.purpose, around=around)
    if isinstance(effect, Review):
        if failed:
            return AnswerReviewed(now, effect.turn, error=error)
        decided = draw(st.sampled_from(["pass", "pass", "pass", "change", "drop", "stop"]))
        changed = said(draw, state.spec) if decided == "change" else None
        if changed is not None and not state.ids.isdisjoint([call.id for call in changed.tool_calls]):
            changed = None
        dropped, stop = ("no" if decided == one else "" for one in ("drop", "stop"))
        return AnswerReviewed(now, effect.turn, changed, dropped, stop)
    if isinstance(effect, Judge):
        verdicts = [Verdict(index, draw(_either), "no", draw(_other_arguments)) for index in effect.indices]
        return CallsJudged(now, effect.turn, tuple(verdicts), error if failed else None)
    if isinstance(effect, Execute):
        call = state.calls[effect.index]
        result = ToolResult(call.id, call.name, "ok", status=draw(_statuses), stop_loop=failed)
        return ToolReturned(now, effect.turn, effect.index, result, state=draw(_left_states))
    if isinstance(effect, Settle):
        if failed:
            return TurnSettled(now, effect.turn, accepted=False, error=error)
        if draw(_either):
            index = one_of_these(draw, state.outputs) if state.outputs else None
            return TurnSettled(now, effect.turn, accepted=True, index=index, reflected=draw(_reflected))
        reflected = "" if state.stopping else draw(_reflected)
        unread = None if reflected else one_of_these(draw, [None, *range(len(candidates(state)))])
        return TurnSettled(
            now, effect.turn, accepted=False, feedback=("wrong",), unread=unread, reflected=reflected
        )
    if isinstance(effect, Deliver):
        return Delivered(now)
    assert isinstance(effect, End)
    return Ended(now, effect.outcome, effect.error)


def middleware(draw: st.DrawFn, state: State) -> Around:
    """What middleware may have done: answered itself, or sent something else, perhaps several times."""
    before = reaching.base(state)
    others = [[user("Something else."), *draw(_sent_besides)] for _ in range(draw(_up_to[2]))]
    sent = [Sent(edits_between(before, messages), by=("other",)) for messages in others]
    return Around(tuple(sent), "" if sent else "other")


def from_outside(draw: st.DrawFn, world: World) -> Event:
    """Something that nobody asked for: signals, time, crashes, late and doubled answers.

    What has ended is opened again half of the time: little else can happen to it.
    """
    world.now += 1
    now, state = world.now, world.state
    if state.at == "done" and draw(_either):
        return Reopened(now)
    if state.deferred and draw(_either):
        index = one_of_these(draw, state.deferred)
        call = state.calls[index]
        result = ToolResult(call.id, call.name, "at last", status=draw(_answers), stop_loop=one_in(draw, 5))
        return ToolReturned(now, state.turn, index, result)
    kind = draw(_up_to[9])
    if kind <= 2:
        return SignalReceived(now, draw(signals))
    if kind == 3:
        return Resumed(now, VERSION, state.epoch + draw(_up_to[1]))
    if kind == 4:
        world.now += draw(_later)  # and it does not come back
        return TimePassed(world.now)
    if kind == 5:
        if draw(_either):
            return StageMoved(now, draw(_stages))
        child = draw(_children)
        if draw(_either):
            return ChildStarted(now, child)
        return ChildEnded(now, child, spent=tuple(draw(_below)), requests=draw(_up_to[3]))
    if kind == 6:
        return Reopened(now)
    if kind == 7:
        return Ended(now, draw(_outcomes))
    turn = one_of_these(draw, range(state.turn + 2))
    if kind == 8:
        purpose: Purpose = draw(_purposes)
        return ModelAnswered(now, turn, said(draw, state.spec), purpose=purpose)
    index = draw(_indices)
    if draw(_either):
        return ToolStarted(now, turn, index)
    return ToolReturned(now, turn, index, ToolResult("a", "look", "late"))


def is_work(effect: Effect) -> bool:
    return not isinstance(effect, Wait)

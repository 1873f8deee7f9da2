"""A world that hypothesis plays: it answers what a loop owes, in any order, with whatever may come.

After every event it checks what must always hold; see `World.check`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec
from hypothesis import strategies as st

from flyball.core.codec import decode_event, encode_event
from flyball.core.effects import Admit, Deliver, Effect, End, Execute, Infer, Judge, Prepare, Settle, Wait
from flyball.core.errors import EngineError
from flyball.core.events import (
    VERSION,
    Admitted,
    CallsJudged,
    Delivered,
    Ended,
    Event,
    ModelAnswered,
    ModelFailed,
    Outcome,
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
    user,
)
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec, OutputMode, OutputSpec
from flyball.core.tools import Safety, ToolChoice, ToolDefinition, ToolKind, ToolSpec
from flyball.core.usage import Usage
from flyball.orchestrate.call_ids import told_apart
from flyball.orchestrate.history import check_history
from flyball.orchestrate.machine import accepts, apply, fold, owed, start
from flyball.orchestrate.state import State

STATES = msgspec.json.Decoder(State)
SCHEMA = {"type": "object", "properties": {"x": {"type": "integer"}}}
OUTPUT = ToolDefinition("final_result", SCHEMA, kind=ToolKind.OUTPUT)


def tool_spec(
    name: str, *, sequential: bool, approval: bool, safety: Safety, retries: int | None
) -> ToolSpec:
    definition = ToolDefinition(name, SCHEMA, sequential=sequential)
    return ToolSpec(definition, safety=safety, approval=approval, retries=retries)


tools = st.lists(st.sampled_from(["look", "send", "add"]), unique=True, max_size=3).flatmap(
    lambda names: st.fixed_dictionaries(
        {
            name: st.builds(
                tool_spec,
                st.just(name),
                sequential=st.booleans(),
                approval=st.booleans(),
                safety=st.sampled_from(Safety),
                retries=st.none() | st.integers(0, 2),
            )
            for name in names
        }
    )
)

outputs = st.sampled_from(
    [
        OutputSpec(),
        OutputSpec(checked=True),
        OutputSpec(mode=OutputMode.TOOL, tools=(OUTPUT,), allows_text=False, checked=True),
        OutputSpec(mode=OutputMode.NATIVE, schema=SCHEMA, checked=True),
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
    judges=st.booleans(),
    delivers=st.booleans(),
)

texts = st.sampled_from(["", "hello", "{}", "ein Löwe"])
call_ids = st.sampled_from(["a", "b", "c", "d"])


@st.composite
def answers(draw: st.DrawFn) -> Message:
    """What a model may say: text, thinking, calls to known and unknown tools, nothing."""
    parts: list[Part] = []
    if draw(st.booleans()):
        parts.append(Thinking("hm"))
    if text := draw(texts):
        parts.append(Text(text))
    names = st.sampled_from(["look", "send", "add", "final_result", "no_such_tool"])
    for identifier in draw(st.lists(call_ids, unique=True, max_size=4)):
        parts.append(ToolCall(identifier, draw(names), draw(st.sampled_from(["{}", '{"x": 1}']))))
    usage = draw(st.none() | st.builds(Usage, st.integers(0, 9), st.integers(0, 9)))
    return Message(
        Role.ASSISTANT,
        tuple(parts),
        usage=usage,
        finish_reason=draw(st.none() | st.sampled_from(FinishReason)),
    )


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
    now: float = 1000.0
    journal: list[Event] = field(default_factory=list[Event])
    answered: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        started = Started(self.now, VERSION, "loop", self.spec, user("hi"), self.history)
        self.state: State = start(started)
        self.record(started)
        self.check()

    def offer(self, event: Event) -> bool:
        """Record an event if it fits."""
        event = told_apart(event, self.state.ids)
        if not accepts(self.state, event):
            return False
        apply(self.state, event)
        self.record(event)
        self.check()
        return True

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
        if state.at in ("deliver", "end", "done"):
            check_history(state.history)
            assert state.outcome is not None
        assert state.open == sum(result is None for result in state.results)

    def answer(self, draw: st.DrawFn, effect: Effect) -> Event:
        """An answer to an effect, as the world may give it."""
        self.now += 1
        return draw(reply(self, effect))


@st.composite
def reply(draw: st.DrawFn, world: World, effect: Effect) -> Event:
    now, state = world.now, world.state
    error = EngineError("it broke").record()
    failed = draw(st.integers(0, 9)) == 0
    if isinstance(effect, Admit):
        return Admitted(now, error=error) if failed else Admitted(now, ("Speak English.",), user("hi there"))
    if isinstance(effect, Prepare):
        offered = tuple(draw(st.lists(st.sampled_from(["look", "send", "add"]), unique=True)))
        known = tuple(name for name in offered if name in state.spec.tools)
        return TurnPrepared(now, effect.turn, known, error if failed else None)
    if isinstance(effect, Infer):
        if failed:
            return ModelFailed(now, effect.turn, error)
        return ModelAnswered(now, effect.turn, draw(answers()))
    if isinstance(effect, Judge):
        verdicts = [
            Verdict(index, draw(st.booleans()), "no", draw(st.none() | st.just("{}")))
            for index in effect.indices
        ]
        return CallsJudged(now, effect.turn, tuple(verdicts), error if failed else None)
    if isinstance(effect, Execute):
        call = state.calls[effect.index]
        kinds = st.sampled_from([ResultKind.RETURN, ResultKind.RETURN, ResultKind.RETRY])
        result = ToolResult(call.id, call.name, "ok", status=draw(kinds), stop_loop=failed)
        return ToolReturned(now, effect.turn, effect.index, result)
    if isinstance(effect, Settle):
        if failed:
            return TurnSettled(now, effect.turn, accepted=False, error=error)
        if draw(st.booleans()):
            index = draw(st.sampled_from(state.outputs)) if state.outputs else None
            return TurnSettled(now, effect.turn, accepted=True, index=index)
        return TurnSettled(now, effect.turn, accepted=False, feedback=("wrong",))
    if isinstance(effect, Deliver):
        return Delivered(now)
    assert isinstance(effect, End)
    return Ended(now, effect.outcome, effect.error)


@st.composite
def from_outside(draw: st.DrawFn, world: World) -> Event:
    """Something that nobody asked for: signals, time, crashes, late and doubled answers."""
    world.now += 1
    now, state = world.now, world.state
    kind = draw(st.integers(0, 9))
    if kind <= 2:
        return SignalReceived(now, draw(signals))
    if kind == 3:
        return Resumed(now, VERSION, state.epoch + draw(st.integers(0, 1)))
    if kind == 4:
        return TimePassed(now + draw(st.sampled_from([0.0, 100.0])))
    if kind == 5:
        return StageMoved(now, draw(st.sampled_from(Stage)))
    if kind == 6:
        return Reopened(now)
    if kind == 7:
        return Ended(now, draw(st.sampled_from(Outcome)))
    turn = draw(st.integers(0, state.turn + 1))
    if kind == 8:
        return ModelAnswered(now, turn, draw(answers()))
    index = draw(st.integers(-1, 4))
    if draw(st.booleans()):
        return ToolStarted(now, turn, index)
    return ToolReturned(now, turn, index, ToolResult("a", "look", "late"))


def is_work(effect: Effect) -> bool:
    return not isinstance(effect, Wait)

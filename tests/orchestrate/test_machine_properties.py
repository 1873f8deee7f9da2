"""What holds for every loop, whatever happens to it."""

from __future__ import annotations

from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

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
from flyball.core.events import (
    VERSION,
    Admitted,
    AnswerReviewed,
    CallsJudged,
    ChildStarted,
    Delivered,
    Ended,
    Event,
    ModelAnswered,
    Outcome,
    Resumed,
    SignalReceived,
    ToolReturned,
    ToolStarted,
    TurnPrepared,
    TurnSettled,
    Verdict,
)
from flyball.core.messages import Message, ResultKind, Role, Text, ToolCall, ToolResult
from flyball.core.signals import Signal, SignalType
from flyball.core.spec import LoopSpec
from flyball.core.tools import Safety
from flyball.orchestrate.calls import detachable
from flyball.orchestrate.commands import call_to_run
from flyball.orchestrate.compacted import remembered
from flyball.orchestrate.facts import call_facts
from flyball.orchestrate.machine import accepts, apply, fold, owed
from flyball.orchestrate.sending import base
from tests.orchestrate.simulation import (
    World,
    call_ids,
    carried,
    earlier,
    from_outside,
    is_work,
    one_in,
    one_of_these,
    replied,
    said,
    specs,
    tool_specs,
)

STEPS = 30
_depths = st.sampled_from([0, 0, 0, 1, 9])


def _settles_again(world: World, event: TurnSettled) -> bool:
    """Whether another answer of the same turn is to be settled: a tool's, after the model's was refused."""
    return any(isinstance(effect, Settle) and effect.turn == event.turn for effect in owed(world.state))


@st.composite
def worlds(draw: st.DrawFn, steps: int = STEPS) -> World:
    """A world after some steps, each of which was looked at."""
    world = World(draw(specs), draw(earlier), draw(_depths), draw(carried))
    for _ in range(steps):
        if world.over:
            break
        work = [effect for effect in owed(world.state) if is_work(effect)]
        if not work or one_in(draw, 4):
            world.offer(from_outside(draw, world))
            continue
        effect = one_of_these(draw, work)
        if isinstance(effect, Execute) and effect.once:
            world.offer(ToolStarted(world.now, effect.turn, effect.index))
        event = replied(draw, world, effect)
        if effect.id in [still.id for still in owed(world.state)]:
            world.answered.add(effect.id)
            assert world.offer(event)
            if not isinstance(event, TurnSettled) or not _settles_again(world, event):
                assert not accepts(world.state, event), "an answer is taken once"
    return world


@given(worlds())
def test_every_reachable_state_keeps_the_rules(world: World) -> None:
    world.check()


@given(worlds(), st.sampled_from(["one", "another"]))
def test_a_child_is_recorded_once_and_never_under_a_loop_that_was_cancelled(world: World, name: str) -> None:
    """So a cancel that is recorded knows all children that there can be, however they come together."""
    state, child = world.state, ChildStarted(world.now, name)
    refused = state.at == "done" or state.outcome is Outcome.CANCELLED or name in state.children
    at = state.at
    assert world.offer(child) is not refused
    assert not world.offer(child)
    assert state.at == at, "it moves nothing"
    if world.offer(SignalReceived(world.now, Signal(SignalType.CANCEL))):
        assert not world.offer(ChildStarted(world.now, "late"))
        while world.state.at == "deliver":
            world.offer(Delivered(world.now))
        (end,) = owed(world.state)
        assert isinstance(end, End)
        assert end.cancels == world.state.children


@given(worlds())
def test_no_call_runs_that_a_judge_was_to_decide_about_and_did_not_let_through(world: World) -> None:
    spec = world.spec
    allowed: dict[int, Verdict] = {}
    state = fold(world.journal[:1])
    for event in world.journal[1:]:
        if isinstance(event, ModelAnswered):
            allowed = {}
        elif isinstance(event, CallsJudged):
            allowed = {verdict.index: verdict for verdict in event.verdicts if verdict.allowed}
        apply(state, event)
        for effect in owed(state):
            if isinstance(effect, Execute):
                call = state.calls[effect.index]
                if spec.filters or (spec.judges and spec.tools[call.name].approval):
                    verdict = allowed[effect.index]
                    run = call_to_run(state, effect.index)
                    assert run.args_json == (verdict.args_json or call.args_json)


@given(worlds(15))
def test_every_loop_can_be_brought_to_its_end(world: World) -> None:
    for _ in range(200):
        if world.state.at == "done":
            return
        effects = owed(world.state)
        waits = [
            effect for effect in effects if isinstance(effect, Wait) and (effect.signals or effect.calls)
        ]
        work = [effect for effect in effects if is_work(effect)]
        if waits and not work:
            if waits[0].calls:
                index = next(n for n, call in enumerate(world.state.calls) if call.id == waits[0].calls[0])
                result = ToolResult(waits[0].calls[0], world.state.calls[index].name, "ok")
                assert world.offer(ToolReturned(world.now, world.state.turn, index, result))
                continue
            kind = waits[0].signals[0]
            assert world.offer(SignalReceived(world.now, Signal(kind)))
            continue
        assert world.offer(benign(world, work[0]))
    raise AssertionError(f"no end in sight: {world.state.at} in turn {world.state.turn}")


def benign(world: World, effect: Effect) -> Event:
    """The answer of a world in which all goes well."""
    state = world.state
    world.now += 1
    if isinstance(effect, Infer):
        calls = [definition.name for definition in state.spec.output.tools]
        parts = (ToolCall("z", calls[0], '{"x": 1}'),) if calls else (Text("done"),)
        return ModelAnswered(world.now, effect.turn, Message(Role.ASSISTANT, parts), purpose=effect.purpose)
    if isinstance(effect, Execute):
        call = state.calls[effect.index]
        return ToolReturned(world.now, effect.turn, effect.index, ToolResult(call.id, call.name, "ok"))
    if isinstance(effect, Settle):
        index = state.outputs[0] if state.outputs else None
        return TurnSettled(world.now, effect.turn, accepted=True, index=index)
    return _example(world, effect)


def _example(world: World, effect: Effect) -> Event:
    now = world.now
    if isinstance(effect, Admit):
        return Admitted(now)
    if isinstance(effect, Prepare):
        edits = edits_between(base(world.state), remembered(world.state))
        return TurnPrepared(now, effect.turn, tuple(world.state.spec.tools), edits=edits)
    if isinstance(effect, Review):
        return AnswerReviewed(now, effect.turn)
    if isinstance(effect, Judge):
        verdicts = tuple(Verdict(index, allowed=True) for index in effect.indices)
        return CallsJudged(now, effect.turn, verdicts)
    if isinstance(effect, Deliver):
        return Delivered(now)
    assert isinstance(effect, End)
    return Ended(now, effect.outcome, effect.error)


_calling = st.lists(call_ids, unique=True, min_size=1, max_size=3)
_with_tools = st.builds(
    LoopSpec,
    tools=st.fixed_dictionaries({"send": tool_specs["send"]}, optional={"look": tool_specs["look"]}),
    judges=st.booleans(),
    filters=st.booleans(),
    end_strategy=st.sampled_from(["early", "exhaustive"]),
)


@given(worlds())
def test_who_runs_is_asked_to_detach_once_and_nothing_else_changes(world: World) -> None:
    state, detach = world.state, SignalReceived(world.now, Signal(SignalType.DETACH))
    before, running = msgspec.structs.asdict(state), detachable(state)
    assert world.offer(detach) == any(index not in before["detached"] for index in running)
    assert not world.offer(detach)
    after = msgspec.structs.asdict(state)
    assert set(after.pop("detached")) == set(before.pop("detached")) | set(running)
    assert after == before
    for effect in owed(state):
        if isinstance(effect, Execute):
            assert call_facts(state, effect).detached == (effect.index in running)


@st.composite
def crashes(draw: st.DrawFn) -> list[Event]:
    """A journal of a loop that calls tools and whose driver dies again and again, also during a call."""
    world = World(draw(_with_tools))
    begun: set[str] = set()
    for _ in range(STEPS):
        if world.over:
            break
        for effect in owed(world.state):
            if isinstance(effect, Execute):
                tool = world.state.spec.tools[world.state.calls[effect.index].name]
                assert effect.once == (tool.safety is Safety.AT_MOST_ONCE)
                started = ToolStarted(world.now, effect.turn, effect.index)
                if effect.once and one_in(draw, 2) and world.offer(started):
                    begun.add(effect.id)
        if one_in(draw, 5) and world.offer(Resumed(world.now, VERSION, world.state.epoch + 1)):
            assert not begun & {effect.id for effect in owed(world.state)}
        work = [effect for effect in owed(world.state) if is_work(effect)]
        effect = one_of_these(draw, work) if work else None
        if effect is None:
            world.offer(from_outside(draw, world))
        elif isinstance(effect, Infer):
            world.offer(ModelAnswered(world.now, effect.turn, said(draw, world.state.spec, _calling)))
        else:
            world.offer(replied(draw, world, effect))
    return world.journal


@given(crashes())
def test_an_at_most_once_call_that_had_started_is_never_owed_again(events: list[Event]) -> None:
    """The look is taken at each crash, above; here, that what had begun was begun once."""
    begun = [(event.turn, event.index) for event in events if isinstance(event, ToolStarted)]
    assert len(set(begun)) == len(begun)


@given(st.data(), specs, st.randoms(use_true_random=False))
def test_the_order_in_which_concurrent_tools_return_does_not_matter(
    data: st.DataObject, spec: LoopSpec, random: Random
) -> None:
    """Two worlds get the same results in different orders, and go on alike."""
    names = list(spec.tools)
    if not names:
        return
    calls = tuple(
        ToolCall(str(n), data.draw(st.sampled_from(names)), '{"x": 1}')
        for n in range(data.draw(st.integers(1, 5)))
    )
    message = Message(Role.ASSISTANT, calls)
    kinds = st.sampled_from([ResultKind.RETURN, ResultKind.RETRY])
    results = [
        ToolResult(call.id, call.name, "ok", status=data.draw(kinds), stop_loop=data.draw(st.booleans()))
        for call in calls
    ]
    worlds = [World(spec), World(spec)]
    for number, world in enumerate(worlds):
        while world.state.at not in ("infer", "done"):
            if not world.offer(benign(world, owed(world.state)[0])):
                return
        world.offer(ModelAnswered(5000, world.state.turn, message))
        for _ in range(50):
            if str(world.state.at) not in ("judge", "execute"):
                break
            effects = owed(world.state)
            waits = [effect for effect in effects if isinstance(effect, Wait) and effect.signals]
            work = [effect for effect in effects if is_work(effect)]
            if waits:
                world.offer(SignalReceived(5000, Signal(SignalType.APPROVE)))
            elif not work:
                outside = list(world.state.deferred)
                index = random.choice(outside) if number else outside[0]
                world.offer(ToolReturned(6000, world.state.turn, index, results[index]))
            elif isinstance(work[0], Execute):
                executions = [effect for effect in work if isinstance(effect, Execute)]
                chosen = random.choice(executions) if number else executions[0]
                world.offer(ToolReturned(6000, chosen.turn, chosen.index, results[chosen.index]))
            else:
                world.now = 5500
                world.offer(benign(world, work[0]))
    first, second = (world.state for world in worlds)
    assert first.history == second.history
    assert (first.at, first.error, first.answer) == (second.at, second.error, second.answer)

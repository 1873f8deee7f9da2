"""Properties of a flow's machine: whatever the tree and the order, it comes to what plain recursion gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject, SearchStrategy
from msgspec import convert, to_builtins
from msgspec.json import decode, encode
from msgspec.structs import replace

from flyball.core.backoff import Backoff
from flyball.core.codec import decode_event, encode_event
from flyball.core.effects import End, FlowEffect, RunStep, SignalChild, Wait
from flyball.core.errors import (
    CancelledSignal,
    CancelledTimeout,
    ContextExceeded,
    EngineError,
    FlyballError,
    InferenceFailure,
    JournalCorrupt,
    StepFailed,
    SystemError,  # noqa: A004 - pagantic's name for it
    UserError,
)
from flyball.core.events import (
    VERSION,
    ChildStarted,
    Ended,
    Event,
    FlowStarted,
    Outcome,
    Reopened,
    Resumed,
    SignalReceived,
    StepEnded,
    TimePassed,
)
from flyball.core.flow import CONDITIONAL, PARALLEL, PIPELINE, PLANNED, REDUNDANT, FlowNode, node_at
from flyball.core.signals import Signal, SignalType
from flyball.core.usage import RunUsage
from flyball.orchestrate.flow_loops import children_of, helper_loop, step_loop
from flyball.orchestrate.flow_machine import accepts, fold, owed, start, take
from flyball.orchestrate.flow_state import FlowState

# Trees: a leaf is named for what it does to its input.

leaves: SearchStrategy[FlowNode] = st.builds(
    FlowNode,
    st.sampled_from(["transform", "agent"]),
    st.sampled_from(["double", "next", "wrap", "fail"]) | st.sampled_from(["double", "next", "wrap"]),
    retries=st.integers(0, 2),
    given=st.none() | st.integers(0, 3),
)
tests = st.builds(FlowNode, st.just("test"), st.sampled_from(["even", "small"]))


def several(inner: SearchStrategy[FlowNode]) -> SearchStrategy[tuple[FlowNode, ...]]:
    return st.lists(inner, max_size=4).map(tuple)


def composed(inner: SearchStrategy[FlowNode]) -> SearchStrategy[FlowNode]:
    some, most = several(inner), st.none() | st.integers(1, 3)
    return st.one_of(
        st.builds(FlowNode, st.just(PIPELINE), st.just("p"), some),
        st.builds(FlowNode, st.just(PARALLEL), st.just("b"), some, concurrency=most),
        st.builds(FlowNode, st.just(REDUNDANT), st.just("r"), some, concurrency=most),
        st.builds(FlowNode, st.just(CONDITIONAL), st.just("c"), st.tuples(tests, inner, inner)),
        inner.map(planned),
    )


def planned(plan: FlowNode) -> FlowNode:
    """A node whose first step gives the plan."""
    return FlowNode(PLANNED, "d", (FlowNode("transform", "same", given=to_builtins(plan)),))


trees = st.recursive(leaves, composed, max_leaves=12).map(lambda node: FlowNode(PIPELINE, "flow", (node,)))

FAILED = InferenceFailure("no").record()
DOES: dict[str, Callable[[Any], Any]] = {
    "double": lambda value: [value, value],
    "next": lambda value: value + 1 if isinstance(value, int) else [value],
    "wrap": lambda value: {"value": value},
    "even": lambda value: isinstance(value, int) and value % 2 == 0,
    "small": lambda value: len(encode(value)) < 8,
    "same": lambda value: value,
}


class Failed(Exception):  # noqa: N818 - what is the case
    """A leaf has failed."""


def evaluated(node: FlowNode, value: Any) -> Any:
    """What a flow comes to, by plain recursion."""
    value = value if node.given is None else node.given
    if node.kind == PLANNED:
        return evaluated(convert(node.steps[0].given, FlowNode), value)
    if node.kind == PIPELINE:
        for step in node.steps:
            value = evaluated(step, value)
        return value
    if node.kind == PARALLEL:
        return [evaluated(step, value) for step in node.steps]
    if node.kind == CONDITIONAL:
        test, then, otherwise = node.steps
        return evaluated(then if evaluated(test, value) else otherwise, value)
    if node.kind == REDUNDANT:
        return [outcome_of(step, value) for step in node.steps]
    if node.name == "fail":
        raise Failed
    return DOES[node.name](value)


def outcome_of(node: FlowNode, value: Any) -> dict[str, Any]:
    try:
        return {"output": evaluated(node, value)}
    except Failed:
        return {"error": decode(encode(FAILED))}


# Worlds


class World:
    """Somebody who does what a flow owes, in any order, twice, and dying now and then."""

    def __init__(self, flow: FlowNode, value: Any = 3, timeout: float | None = None) -> None:
        self.journal: list[Event] = [FlowStarted(1.0, VERSION, "f", flow, value, timeout)]
        self.state = fold(self.journal)
        self.ran: list[str] = []

    def offer(self, event: Event) -> bool:
        event = decode_event(encode_event(event))
        assert accepts(self.state, event) is take(self.state, event)
        return self._kept(event)

    def _kept(self, event: Event) -> bool:
        again = fold(self.journal)
        if not take(again, event):
            assert encode(again) == encode(self.state)
            return False
        self.journal.append(event)
        assert encode(again) == encode(self.state)
        assert owed(again) == owed(self.state)
        return True

    def crash(self) -> None:
        self.state = fold(self.journal)
        self.offer(Resumed(2.0, VERSION, self.state.epoch + 1))

    def steps(self) -> list[RunStep]:
        return [effect for effect in owed(self.state) if isinstance(effect, RunStep)]

    def answer(self, effect: RunStep) -> StepEnded:
        node = node_at(self.state.flow, effect.path)
        self.ran.append(effect.id)
        loop_id = effect.loop_id if node.kind == "agent" else ""
        used = RunUsage(input_tokens=1, requests=1) if loop_id else None
        if node.name == "fail":
            return StepEnded(2.0, effect.path, None, FAILED, effect.attempt, loop_id, used)
        output = DOES[node.name](effect.input)
        return StepEnded(2.0, effect.path, output, None, effect.attempt, loop_id, used)

    def end(self) -> End:
        (effect,) = owed(self.state)
        assert isinstance(effect, End)
        assert self.offer(Ended(3.0, effect.outcome, effect.error))
        return effect


def kinds(effects: list[FlowEffect]) -> list[str]:
    return [type(effect).__name__ for effect in effects]


def expected(flow: FlowNode, value: Any = 3) -> Any:
    try:
        return evaluated(flow, value)
    except Failed:
        return Failed


@given(trees, st.data())
def test_a_flow_comes_to_what_plain_recursion_gives(flow: FlowNode, data: DataObject) -> None:
    world, wanted = World(flow), expected(flow)
    answered: list[StepEnded] = []
    while world.state.at == "run":
        steps = world.steps()
        assert steps, "a flow that is not over owes something"
        assert len({step.id for step in steps}) == len(steps)
        what = data.draw(st.sampled_from(["answer", "answer", "answer", "again", "crash"]))
        if what == "crash":
            world.crash()
            assert [step.path for step in world.steps()] == [step.path for step in steps]
        elif what == "again" and answered:
            assert not world.offer(data.draw(st.sampled_from(answered)))
        else:
            event = world.answer(data.draw(st.sampled_from(steps)))
            assert world.offer(event)
            assert not world.offer(event)
            answered.append(event)
    if wanted is Failed:
        assert world.state.outcome is Outcome.FAILED
        assert world.state.error is not None
        assert world.state.error.code == FAILED.code
        assert (world.state.error.details or {})["step"] == "fail"
    else:
        assert world.state.outcome is Outcome.SUCCESS
        assert world.state.output == decode(encode(wanted))
    loops = [event for event in answered if event.loop_id]
    assert world.state.usage.requests == len(loops)
    assert len({event.loop_id for event in loops}) == len(loops), "each attempt is a loop of its own"
    world.end()
    assert owed(world.state) == []


@given(trees, st.data())
def test_no_more_steps_of_a_node_are_open_than_may_be(flow: FlowNode, data: DataObject) -> None:
    world = World(flow)
    while world.state.at == "run":
        for path, opened in world.state.opened.items():
            node = opened.node
            if node.kind in (PARALLEL, REDUNDANT):
                under = {
                    leaf[len(path) + 1 if path else 0 :].split(".")[0]
                    for leaf in world.state.ready
                    if not path or leaf.startswith(f"{path}.")
                }
                assert len(under) <= (node.concurrency or len(node.steps))
        world.offer(world.answer(data.draw(st.sampled_from(world.steps()))))


@given(trees, st.data())
def test_a_flow_that_failed_is_tried_again_where_it_stood(flow: FlowNode, data: DataObject) -> None:
    world = World(flow)
    while world.state.at == "run":
        world.offer(world.answer(data.draw(st.sampled_from(world.steps()))))
    world.end()
    done = {path for path, event in world.state.ended.items() if event.error is None}
    if world.state.outcome is Outcome.SUCCESS:
        assert not world.offer(Reopened(4.0))
        return
    before = len(world.ran)
    assert world.offer(Reopened(4.0, "ann", "again"))
    assert not world.offer(Reopened(4.0, "ann", "again"))
    world.ran.clear()
    DOES["fail"] = lambda value: value
    try:
        while steps := world.steps():
            step = data.draw(st.sampled_from(steps))
            event = world.answer(step)
            world.offer(StepEnded(5.0, event.path, event.output, None, event.attempt, event.loop_id))
            assert step.path not in done, "what has ended well is not run again"
    finally:
        del DOES["fail"]
    assert before
    assert world.state.outcome is Outcome.SUCCESS


# One at a time


def leaf(name: str, kind: str = "agent", **options: Any) -> FlowNode:
    return FlowNode(kind, name, **options)


def flow(*steps: FlowNode, kind: str = PIPELINE, **options: Any) -> FlowNode:
    return FlowNode(kind, "flow", steps, **options)


def test_a_conversation_is_passed_on_through_what_has_none() -> None:
    world = World(flow(leaf("next"), leaf("next", "transform"), leaf("next")))
    seen: list[tuple[str, str]] = []
    while world.state.at == "run":
        (step,) = world.steps()
        seen.append((step.path, step.history))
        world.offer(world.answer(step))
    assert seen == [("0", ""), ("1", "f-s0"), ("2", "f-s0")]
    assert world.state.output == 6


def test_a_step_is_tried_again_as_often_as_it_may_be_and_in_a_loop_of_its_own() -> None:
    world = World(flow(leaf("fail", retries=2)))
    loops: list[str] = []
    while world.state.at == "run":
        (step,) = world.steps()
        loops.append(step.loop_id)
        world.offer(world.answer(step))
    assert loops == ["f-s0", "f-s0-t2", "f-s0-t3"]
    assert world.state.usage.requests == 3


def test_what_trying_again_does_not_mend_is_not_tried_again() -> None:
    world = World(flow(leaf("next", retries=5)))
    world.offer(StepEnded(2.0, "0", None, UserError("no").record()))
    assert world.state.outcome is Outcome.FAILED


def test_a_cancel_names_what_runs_and_nothing_more_is_begun() -> None:
    world = World(flow(leaf("next"), flow(leaf("next"), leaf("next"), kind=PARALLEL)))
    world.offer(ChildStarted(1.0, "f-s0", "a"))
    world.offer(world.answer(world.steps()[0]))
    world.offer(ChildStarted(1.0, "f-s1_0", "a"))
    world.offer(ChildStarted(1.0, helper_loop("f-s1_1", 2), "a"))
    assert children_of(world.state, ("f-s1_1",)) == ("f-s1_1-h2",)
    assert world.offer(SignalReceived(2.0, Signal(SignalType.CANCEL, "c1", "ann", "enough")))
    assert not world.offer(ChildStarted(2.0, "f-s1_1", "a"))
    assert not world.offer(StepEnded(2.0, "1.0", 4))
    end = world.end()
    assert end.outcome is Outcome.CANCELLED
    assert end.cancels == ("f-s1_0", "f-s1_1-h2")
    assert world.state.error is not None
    assert "by ann: enough" in world.state.error.message


def test_a_pause_lets_finish_what_runs_and_is_passed_on() -> None:
    world = World(flow(flow(leaf("next"), leaf("next"), kind=PARALLEL), leaf("next", "transform")))
    world.offer(ChildStarted(1.0, "f-s0_0", "a"))
    assert world.offer(SignalReceived(2.0, Signal(SignalType.PAUSE, "p", "ann")))
    assert not world.offer(SignalReceived(2.0, Signal(SignalType.PAUSE, "q", "ann")))
    assert kinds(owed(world.state)) == ["RunStep", "RunStep", "SignalChild", "Wait"]
    told = owed(world.state)[2]
    assert isinstance(told, SignalChild)
    assert (told.loop_id, told.signal.type, told.signal.by) == ("f-s0_0", SignalType.PAUSE, "parent")
    for step in world.steps():
        world.offer(world.answer(step))
    assert kinds(owed(world.state)) == ["Wait"]
    assert world.offer(SignalReceived(2.0, Signal(SignalType.RESUME, "r", "ann")))
    assert [step.path for step in world.steps()] == ["1"]


def test_a_paused_flow_begins_nothing_in_another_driver() -> None:
    world = World(flow(leaf("next")))
    world.offer(SignalReceived(2.0, Signal(SignalType.PAUSE)))
    world.crash()
    assert kinds(owed(world.state)) == ["Wait"]


LATE = CancelledTimeout("too slow", limit="timeout").record()


def test_a_step_that_took_too_long_is_tried_again_and_one_that_was_cancelled_is_not() -> None:
    world = World(flow(leaf("next", retries=1)))
    assert world.offer(StepEnded(2.0, "0", error=LATE))
    assert [step.attempt for step in world.steps()] == [2]
    cancelled = CancelledSignal("cancelled").record()
    assert world.offer(StepEnded(3.0, "0", error=cancelled, attempt=2))
    assert world.end().outcome is Outcome.FAILED
    once = World(flow(leaf("next", retries=1)))
    assert once.offer(StepEnded(2.0, "0", error=cancelled))
    assert once.end().outcome is Outcome.FAILED


def test_what_a_step_had_begun_that_took_too_long_is_cancelled_before_the_step_is_tried_again() -> None:
    world = World(flow(leaf("next", "transform", retries=1)))
    world.offer(ChildStarted(1.0, helper_loop("f-s0", 1), "a"))
    assert world.offer(StepEnded(2.0, "0", error=LATE))
    step, told = owed(world.state)
    assert isinstance(step, RunStep)
    assert isinstance(told, SignalChild)
    assert (told.loop_id, told.signal.type) == ("f-s0-h1", SignalType.CANCEL)


def test_a_step_that_ends_by_the_flows_deadline_is_the_flows_time_out() -> None:
    world = World(flow(leaf("next", retries=1)), timeout=10.0)
    assert world.offer(StepEnded(11.0, "0", error=LATE))
    end = world.end()
    assert end.error is not None
    assert (end.outcome, end.error.message) == (Outcome.CANCELLED, "the flow's time-out of 10 s passed")


def test_the_deadline_from_above_holds_where_it_is_sooner() -> None:
    started = FlowStarted(1.0, VERSION, "f", flow(leaf("next")), 3, 10.0, deadline=5.0)
    state = fold([started, TimePassed(5.0)])
    assert state.error is not None
    assert state.error.message == "the time of the run that it was begun from passed"
    assert fold([replace(started, deadline=50.0)]).deadline == 11.0
    assert fold([replace(started, timeout=None)]).deadline == 5.0


def test_the_deadline_ends_a_flow_and_a_retry_has_its_time_anew() -> None:
    world = World(flow(leaf("next")), timeout=10.0)
    assert not world.offer(TimePassed(10.9))
    wait = owed(world.state)[-1]
    assert isinstance(wait, Wait)
    assert wait.until == 11.0
    assert world.offer(TimePassed(11.0))
    assert world.end().outcome is Outcome.CANCELLED
    assert world.offer(Reopened(100.0))
    assert world.state.deadline == 110.0


@pytest.mark.parametrize("kind", list(SignalType))
def test_signals_about_calls_are_for_the_loops_under_a_flow(kind: SignalType) -> None:
    world = World(flow(leaf("next")))
    fits = kind in (SignalType.CANCEL, SignalType.PAUSE)
    assert world.offer(SignalReceived(2.0, Signal(kind, text="x"))) is fits


def test_a_flow_that_stands_too_deep_fails_as_it_starts() -> None:
    state = start(FlowStarted(1.0, VERSION, "f", flow(leaf("next")), depth=3, max_depth=2))
    assert state.outcome is Outcome.FAILED
    assert state.error is not None
    assert state.error.code == "ORCHESTRATION_DEPTH_LIMIT"


def test_redundant_steps_end_once_there_are_enough() -> None:
    tree = flow(
        leaf("next"), leaf("next"), leaf("next"), kind=REDUNDANT, concurrency=2, until=leaf("u", "test")
    )
    world = World(flow(tree))
    for name in ("f-s0_0", "f-s0_1"):
        world.offer(ChildStarted(1.0, name, "a"))
    assert [step.path for step in world.steps()] == ["0.0", "0.1"]
    world.offer(world.answer(world.steps()[0]))
    asked = world.steps()[-1]
    assert (asked.path, asked.input) == ("0.until", [{"output": 4}, None, None])
    assert [step.path for step in world.steps()] == ["0.1", "0.until"], "nothing new until that is known"
    assert world.offer(StepEnded(2.0, "0.until", output=True, attempt=asked.attempt))
    assert world.state.outcome is Outcome.SUCCESS
    assert world.state.output == [{"output": 4}, None, None]
    assert world.end().cancels == ("f-s0_1",), "nobody waits for it any more"


def test_what_was_asked_about_fewer_outcomes_is_void() -> None:
    tree = flow(*[leaf("next")] * 4, kind=REDUNDANT, concurrency=2, until=leaf("u", "test"))
    world = World(flow(tree))
    world.offer(world.answer(world.steps()[0]))
    first = world.steps()[-1]
    world.offer(world.answer(world.steps()[0]))
    second = world.steps()[-1]
    assert first.id != second.id
    assert not world.offer(StepEnded(2.0, "0.until", output=True, attempt=first.attempt))
    assert world.offer(StepEnded(2.0, "0.until", output=False, attempt=second.attempt))
    assert [step.path for step in world.steps()] == ["0.2", "0.3"]


def test_the_question_whether_there_is_enough_may_fail() -> None:
    tree = flow(leaf("next"), leaf("next"), kind=REDUNDANT, until=leaf("u", "test"))
    world = World(flow(tree))
    world.offer(world.answer(world.steps()[0]))
    asked = world.steps()[-1]
    assert world.offer(StepEnded(2.0, "0.until", None, FAILED, asked.attempt))
    assert world.state.outcome is Outcome.FAILED
    world.end()
    world.offer(Reopened(3.0))
    again = next(step for step in world.steps() if step.path == "0.until")
    assert again.attempt == asked.attempt + 1
    world.offer(world.answer(world.steps()[0]))
    assert world.state.output == [{"output": 4}, {"output": 4}]


def test_a_long_pipeline_costs_no_more_for_each_step() -> None:
    """Each event touches what it concerns: nothing walks over the steps that are over."""
    world = FlowState("", flow())
    world = start(FlowStarted(1.0, VERSION, "f", flow(*[leaf("next", "transform")] * 3000), 0))
    for number in range(3000):
        (step,) = owed(world)
        assert isinstance(step, RunStep)
        take(world, StepEnded(1.0, step.path, number + 1, None, step.attempt))
        assert len(world.ready) <= 1
        assert len(world.opened) <= 1
    assert world.output == 3000


def test_a_journal_that_is_none() -> None:
    ended = StepEnded(1.0, "0", 1)
    with pytest.raises(JournalCorrupt, match="begins with StepEnded"):
        fold([ended])
    with pytest.raises(JournalCorrupt, match="no events"):
        fold([])
    first = FlowStarted(1.0, VERSION, "f", flow(leaf("next")))
    with pytest.raises(JournalCorrupt, match="event 2, StepEnded, does not fit: the flow stands at 'end'"):
        fold([first, ended, ended])
    with pytest.raises(LookupError):
        node_at(first.flow, "until")


def test_an_error_keeps_what_it_was_and_says_where() -> None:
    error: SystemError = FlyballError("no", why="x").record()
    world = World(flow(flow(leaf("next"))))
    take(world.state, StepEnded(2.0, "0.0", None, error, 1, "f-s0_0"))
    assert world.state.error is not None
    assert world.state.error.message == "step 'next' (0.0): no"
    assert world.state.error.details == {"why": "x", "step": "next", "path": "0.0", "loop_id": "f-s0_0"}
    assert step_loop("f", "0.0", 1) == "f-s0_0"


# A retry of what was made of redundant steps


def asked_again(tree: FlowNode, *failing: str) -> World:
    """A flow whose last step could make nothing of what redundant steps gave, opened again."""
    world = World(tree)
    last = f"{len(tree.steps) - 1}"
    while world.state.at == "run":
        step = world.steps()[0]
        answer = world.answer(step)
        if step.path in (*failing, last):
            answer = StepEnded(2.0, step.path, None, FAILED, step.attempt, answer.loop_id)
        world.offer(answer)
    assert world.end().outcome is Outcome.FAILED
    assert world.offer(Reopened(4.0))
    return world


def paths(world: World) -> list[tuple[str, int]]:
    return [(step.path, step.attempt) for step in world.steps()]


@pytest.mark.parametrize("most", [1, 2, None])
def test_redundant_steps_that_failed_are_tried_again_and_no_others(most: int | None) -> None:
    replicas = flow(*[leaf("next")] * 4, kind=REDUNDANT, concurrency=most)
    world = asked_again(flow(replicas, leaf("wrap", "transform")), "0.0", "0.1", "0.3")
    seen: list[tuple[str, int]] = []
    while world.state.at == "run":
        assert len(world.steps()) <= (most or 4)
        world.crash()
        seen.append(paths(world)[0])
        world.offer(world.answer(world.steps()[0]))
    assert seen == [("0.0", 2), ("0.1", 2), ("0.3", 2), ("1", 2)]
    assert world.state.output == {"value": [{"output": 4}] * 4}


def test_a_replica_goes_on_with_the_phase_that_failed() -> None:
    two = flow(leaf("next"), leaf("double"))
    world = asked_again(flow(flow(two, two, kind=REDUNDANT), leaf("wrap", "transform")), "0.0.1", "0.1.0")
    assert paths(world) == [("0.0.1", 2), ("0.1.0", 2)]
    assert [step.input for step in world.steps()] == [4, 3]
    assert [step.history for step in world.steps()] == ["f-s0_0_0", ""]
    while world.state.at == "run":
        world.offer(world.answer(world.steps()[0]))
    assert world.state.output == {"value": [{"output": [4, 4]}] * 2}


def test_outcomes_are_made_anew_also_where_they_come_from_inside() -> None:
    inner = flow(leaf("next"), flow(leaf("next"), leaf("next"), kind=REDUNDANT))
    world = asked_again(flow(inner, leaf("wrap", "transform")), "0.1.1")
    assert paths(world) == [("0.1.1", 2)]
    while world.state.at == "run":
        world.offer(world.answer(world.steps()[0]))
    assert world.state.output == {"value": [{"output": 5}] * 2}


def test_steps_that_were_not_waited_for_are_gone_on_with_where_the_outcomes_were_not_enough() -> None:
    replicas = flow(*[leaf("next")] * 3, kind=REDUNDANT, concurrency=2, until=leaf("u", "test"))
    world = World(flow(replicas, leaf("wrap", "transform")))
    world.offer(StepEnded(2.0, "0.0", None, FAILED))
    world.offer(StepEnded(2.0, "0.until", output=True))
    world.offer(StepEnded(2.0, "1", None, FAILED))
    assert world.end().outcome is Outcome.FAILED
    assert world.offer(Reopened(4.0))
    assert paths(world) == [("0.0", 2), ("0.1", 2)]
    world.offer(world.answer(world.steps()[0]))
    assert paths(world) == [("0.1", 2), ("0.until", 2)]
    world.offer(StepEnded(5.0, "0.until", output=True, attempt=2))
    assert [(step.path, step.attempt, step.input) for step in world.steps()] == [
        ("1", 2, [{"output": 4}, None, None])
    ]


def test_outcomes_of_which_something_was_made_are_not_made_anew() -> None:
    replicas = flow(leaf("fail"), leaf("next"), kind=REDUNDANT)
    world = asked_again(flow(replicas, leaf("wrap", "transform"), leaf("next")))
    assert paths(world) == [("2", 2)]


# When a step is tried again, and after what

RETRYABLE = EngineError("busy").record()
WAITS = Backoff(4.0, 2.0, 10.0, 0.5)


@pytest.mark.parametrize(
    ("options", "event", "again"),
    [
        ({}, {"error": FAILED}, True),
        ({"retried": ()}, {"error": RETRYABLE}, True),
        ({"retried": ()}, {"error": ContextExceeded("too long").record()}, False),
        ({"retried": ()}, {"error": StepFailed("what no error of ours is").record()}, True),
        ({"retried": ()}, {"error": LATE}, False),
        ({"retried": ("inference_failure",)}, {"error": RETRYABLE}, True),
        ({"retried": ("tool_failure",)}, {"error": RETRYABLE}, False),
        ({"judged": True, "retried": ()}, {"error": RETRYABLE}, False),
        ({"judged": True, "retried": ()}, {"error": LATE, "again": True}, True),
        ({"judged": True, "retried": ()}, {"error": UserError("no").record(), "again": True}, False),
        ({"judged": True, "retried": ()}, {"error": CancelledSignal("no").record(), "again": True}, False),
    ],
)
def test_after_which_failures_a_step_is_tried_again(options: Any, event: Any, again: bool) -> None:
    world = World(flow(leaf("next", retries=1, **options)))
    assert world.offer(StepEnded(2.0, "0", **event))
    assert bool(world.steps()) is again


def test_a_step_that_is_tried_again_waits_ever_longer_and_not_anew_after_a_crash() -> None:
    world = World(flow(leaf("fail", retries=4, backoff=WAITS)))
    waited: list[float] = []
    while world.state.at == "run":
        (step,) = world.steps()
        waited.append(max(step.after - 2.0, 0.0))
        world.crash()
        assert world.steps() == [step]
        world.offer(world.answer(step))
    least = [0.0, 4.0, 8.0, 10.0, 10.0]
    assert all(one <= wait <= min(one * 1.5, 10.0) for one, wait in zip(least, waited, strict=True))
    assert waited[1] > 4.0, "chance is by the step's name, and the same for whoever folds it"
    world.end()
    assert world.offer(Reopened(50.0))
    assert world.steps()[0].after == 0.0, "who asks for another attempt wants it now"


def test_a_step_that_waits_does_not_begin_while_the_flow_is_paused() -> None:
    world = World(flow(flow(leaf("fail", retries=1, backoff=WAITS), leaf("next"), kind=PARALLEL)))
    world.offer(world.answer(world.steps()[0]))
    assert world.offer(SignalReceived(3.0, Signal(SignalType.PAUSE)))
    assert [step.path for step in world.steps()] == ["0.1"], "which runs, and may finish"
    assert world.offer(SignalReceived(4.0, Signal(SignalType.RESUME)))
    assert [step.path for step in world.steps()] == ["0.0", "0.1"]

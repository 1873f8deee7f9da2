"""The lifecycle: phases keep their edges whatever happens to a loop, and stages end where phases end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, Limits, ModelRetry, RunContext, tool
from flyball.core.errors import EngineError, FlyballError, IllegalTransition, JournalCorrupt
from flyball.core.events import (
    Ended,
    Event,
    Outcome,
    Reopened,
    SignalReceived,
    Stage,
    StageMoved,
    Started,
    TurnSettled,
)
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import Answer, tool_call_answer
from flyball.inference.scripted import ScriptedEngine
from flyball.orchestrate.journal import MemoryJournal
from flyball.orchestrate.lifecycle import (
    EDGES,
    NOMINAL_STAGES,
    PATHS,
    REOPENING,
    RETRY,
    Mode,
    Phase,
    Transition,
    check_edge,
    check_stage,
    execution_context,
    execution_state,
    phase_of,
    stage_of,
    transitions,
)
from flyball.orchestrate.machine import fold
from flyball.orchestrate.recorded import fork, send_signal
from flyball.testing.clock import FakeClock
from tests.orchestrate.driven import drive_of
from tests.orchestrate.journals import journals

P = Phase


def names(events: list[Event]) -> list[str]:
    """The phases in order, the first one included."""
    return ["init", *[str(move.to) for move in transitions(events)]]


# The tables


def test_the_values_are_pagantics() -> None:
    assert [str(phase) for phase in Phase] == [
        "init",
        "plan",
        "prepare",
        "execute",
        "validate",
        "complete",
        "error",
        "cancelled",
    ]
    assert [phase for phase in Phase if phase.is_terminal] == [P.COMPLETE, P.ERROR, P.CANCELLED]


def test_every_phase_has_its_edges() -> None:
    assert set(EDGES) == set(Phase)
    for phase, following in EDGES.items():
        if phase.is_terminal:
            assert not following
        else:
            assert following >= {P.ERROR, P.CANCELLED}


def test_only_the_retry_leads_back() -> None:
    order = list(Phase)
    back = [(a, b) for a, following in EDGES.items() for b in following if order.index(b) <= order.index(a)]
    assert back == [RETRY] == [(P.VALIDATE, P.EXECUTE)]


@given(st.sampled_from(Phase), st.sampled_from(Phase))
def test_an_edge_is_allowed_or_named(before: Phase, after: Phase) -> None:
    if after in EDGES[before]:
        check_edge(before, after)
        return
    with pytest.raises(IllegalTransition) as caught:
        check_edge(before, after)
    assert caught.value.code == "ORCHESTRATION_ILLEGAL_TRANSITION"
    assert caught.value.message.startswith(f"the phase {after.value} cannot follow {before.value}")
    assert all(phase.value in caught.value.message for phase in EDGES[before])


@pytest.mark.parametrize("mode", list(Mode))
def test_the_path_of_a_mode_follows_the_edges(mode: Mode) -> None:
    path = PATHS[mode]
    assert (path.phases[0], path.phases[-1]) == (P.INIT, P.COMPLETE)
    for before, after in (*pairwise(path.phases), *pairwise(path.retry)):
        check_edge(before, after)


def test_which_phases_which_mode_visits() -> None:
    paths = {mode: [str(phase) for phase in path.phases] for mode, path in PATHS.items()}
    assert paths == {
        "chat": ["init", "prepare", "execute", "complete"],
        "structured": ["init", "prepare", "execute", "validate", "complete"],
        "plan": ["init", "plan", "prepare", "execute", "validate", "complete"],
        "redundant": ["init", "prepare", "execute", "validate", "complete"],
    }
    assert {mode: path.tool_loop for mode, path in PATHS.items()} == {
        "chat": "execute",
        "structured": "",
        "plan": "step",
        "redundant": "",
    }
    assert [mode for mode, path in PATHS.items() if not path.retry] == ["redundant"]


def test_the_ten_stages() -> None:
    ends = [Stage.COMPLETE, Stage.FAILED, Stage.CANCELLED]
    assert len(Stage) == 10
    assert [stage for stage in Stage if stage.is_terminal] == ends
    assert str(Stage.AWAITING_APPROVAL) == "awaiting_approval"
    assert NOMINAL_STAGES[0] == "exploring"


@given(st.sampled_from(Stage), st.sampled_from(Stage))
def test_stages_move_freely_but_not_out_of_an_end(before: Stage, after: Stage) -> None:
    if before.is_terminal and before is not after:
        with pytest.raises(IllegalTransition, match=f"{before.value} is an end, and {after.value} cannot"):
            check_stage(before, after)
    else:
        check_stage(before, after)


# Whatever happens to a loop


def legal(move: Transition) -> bool:
    return move.to in EDGES[move.from_] or (move.from_, move.to) in REOPENING


@given(journals(), st.data())
def test_the_course_of_every_loop(events: list[Event], data: st.DataObject) -> None:
    it_follows_the_edges(events)
    an_attempt_begins_with_every_retry_and_every_reopening(events)
    it_prepares_once_in_each_beginning(events)
    it_only_grows(events, data.draw(st.integers(1, len(events))))


def it_follows_the_edges(events: list[Event]) -> None:
    moves = transitions(events)
    assert all(legal(move) for move in moves)
    phases = [P.INIT, *[move.to for move in moves]]
    assert [move.from_ for move in moves] == phases[:-1]
    assert phases[-1] is phase_of(fold(events))
    assert [move.at for move in moves] == sorted(move.at for move in moves)
    assert all(move.reason for move in moves)


def an_attempt_begins_with_every_retry_and_every_reopening(events: list[Event]) -> None:
    attempt = 1
    for move in transitions(events):
        if (move.from_, move.to) == RETRY or (move.from_, move.to) in REOPENING:
            attempt += 1
        assert move.attempt == attempt
    reopened = len([event for event in events if isinstance(event, Reopened)])
    refused = len([event for event in events if _sends_back(event)])
    assert 1 + reopened <= attempt <= 1 + reopened + refused
    assert execution_state(events).attempt == attempt


def _sends_back(event: Event) -> bool:
    """Whether it may send an answer back: a check that failed, or a person who would not have it."""
    if isinstance(event, SignalReceived):
        return event.signal.type in (SignalType.REJECT, SignalType.FEEDBACK)
    return isinstance(event, TurnSettled) and not event.accepted


def it_prepares_once_in_each_beginning(events: list[Event]) -> None:
    phases = [P.INIT, *[move.to for move in transitions(events)]]
    beginnings = phases.count(P.INIT)
    assert phases.count(P.PREPARE) <= beginnings == 1 + len([e for e in events if isinstance(e, Reopened)])
    started = events[0]
    assert isinstance(started, Started)
    if not started.spec.output.checked and not started.spec.output.approval:
        assert P.VALIDATE not in phases


@given(journals())
def test_where_every_loop_stands(events: list[Event]) -> None:
    phase_and_stage_end_together(events)
    the_execution_state_is_where_the_course_has_come_to(events)


def phase_and_stage_end_together(events: list[Event]) -> None:
    state = fold(events)
    phase, stage = phase_of(state), stage_of(state)
    assert phase.is_terminal == stage.is_terminal == (state.outcome is not None)
    if state.outcome is not None:
        assert (state.outcome, phase, stage) in [
            (Outcome.SUCCESS, P.COMPLETE, Stage.COMPLETE),
            (Outcome.FAILED, P.ERROR, Stage.FAILED),
            (Outcome.CANCELLED, P.CANCELLED, Stage.CANCELLED),
        ]
    elif stage is state.stage:
        assert not state.paused, "moved there by hand"
    elif state.at == "approve":
        assert phase is P.VALIDATE, "a person checks the answer: back to EXECUTE would be a retry"
        assert stage is (Stage.PAUSED if state.paused else Stage.AWAITING_APPROVAL)
    elif stage in (Stage.PAUSED, Stage.AWAITING_APPROVAL):
        assert phase is P.EXECUTE or (state.at == "prepare" and not state.iterations)
    else:
        assert (phase, stage) in [
            (P.INIT, Stage.EXPLORING),
            (P.PREPARE, Stage.EXPLORING),
            (P.EXECUTE, Stage.EXECUTING),
            (P.VALIDATE, Stage.REVIEWING),
        ]


def it_only_grows(events: list[Event], length: int) -> None:
    part = transitions(events[:length])
    assert part == transitions(events)[: len(part)]


def the_execution_state_is_where_the_course_has_come_to(events: list[Event]) -> None:
    moves, standing, state = transitions(events), execution_state(events), fold(events)
    assert standing.current is phase_of(state)
    assert standing.entered_at == (moves[-1].at if moves else events[0].at)
    if state.error is not None:
        assert standing.last_error == state.error
    assert standing.total_steps <= state.turn
    assert bool(standing.last_step) == bool(standing.total_steps)


@pytest.mark.parametrize("look", [transitions, execution_state, execution_context])
def test_what_is_no_journal_is_refused(look: object) -> None:
    assert callable(look)
    with pytest.raises(JournalCorrupt, match="begins with Ended"):
        look([Ended(0.0, Outcome.SUCCESS)])


def test_of_no_events_there_is_no_standing() -> None:
    assert transitions([]) == []
    with pytest.raises(JournalCorrupt, match="no events"):
        execution_state([])


# Real runs


@tool
async def look(where: str) -> str:
    """Look somewhere."""
    return f"nothing in {where}"


async def run(agent: Agent, **options: object) -> list[Event]:
    """The journal of a run, which may fail."""
    journal = MemoryJournal()
    try:
        await agent.run("hi", journal=journal, loop_id="loop", **options)  # pyright: ignore[reportArgumentType, reportCallIssue]
    except FlyballError:
        pass
    return await journal.read("loop")


LOOK = tool_call_answer("look", {"where": "here"})


async def test_a_chat() -> None:
    events = await run(Agent(ScriptedEngine("hello")))
    assert names(events) == ["init", "prepare", "execute", "complete"]
    assert [move.reason for move in transitions(events)] == ["started", "prepared", "the model answered"]
    assert len({move.at for move in transitions(events)[:2]}) == 1, "nothing had to be prepared"


async def test_a_loop_of_tools_stays_inside_execute() -> None:
    events = await run(Agent(ScriptedEngine(LOOK, LOOK, "done"), tools=[look]))
    assert names(events) == ["init", "prepare", "execute", "complete"]
    standing = execution_state(events)
    assert (standing.total_steps, standing.last_step) == (3, "turn 3")


async def test_preparing_is_seen_where_something_is_prepared() -> None:
    def ready(_: RunContext) -> bool:
        return True

    checked = tool(available=ready)(look_again)
    agent = Agent(ScriptedEngine(tool_call_answer("look_again", {}), "done"), tools=[checked])
    events = await run(agent)
    assert [type(event).__name__ for event in events].count("TurnPrepared") == 2
    assert names(events) == ["init", "prepare", "execute", "complete"]


async def look_again() -> str:
    """Look again."""
    return "still nothing"


async def test_admitting_is_still_init() -> None:
    agent = Agent(ScriptedEngine("hello"), instructions=lambda _: "Be brief.")
    events = await run(agent)
    assert names(events) == ["init", "prepare", "execute", "complete"]
    assert transitions(events)[0].reason == "admitted"


def checking(*answers: Answer, retries: int = 1) -> Agent:
    agent = Agent(ScriptedEngine(*answers), retries=retries)

    @agent.output_validator
    def polite(_: RunContext, output: str) -> str:
        if "please" not in output:
            raise ModelRetry("Say please.")
        return output

    return agent


async def test_an_answer_that_is_checked_is_validated() -> None:
    events = await run(checking("yes please"))
    assert names(events) == ["init", "prepare", "execute", "validate", "complete"]


async def test_a_retry_is_an_edge_and_an_attempt() -> None:
    events = await run(checking("yes", "yes please"))
    assert names(events) == ["init", "prepare", "execute", "validate", "execute", "validate", "complete"]
    assert [move.attempt for move in transitions(events)] == [1, 1, 1, 2, 2, 2]
    assert transitions(events)[3].reason == "retry: Say please."
    standing = execution_state(events)
    assert (standing.current, standing.attempt) == (P.COMPLETE, 2)
    assert standing.last_error is not None
    assert standing.last_error.message == "Say please.", "one that was recovered from"


async def test_when_the_attempts_are_used_up_it_is_an_error() -> None:
    events = await run(checking("yes", "no"))
    assert names(events)[-2:] == ["validate", "error"]
    assert execution_state(events).last_error == fold(events).error


async def test_a_failing_engine() -> None:
    events = await run(Agent(ScriptedEngine(EngineError("no power"))))
    assert names(events) == ["init", "prepare", "execute", "error"]
    assert transitions(events)[-1].reason == "no power"


async def test_a_run_that_may_not_even_begin() -> None:
    events = await run(Agent(ScriptedEngine("hello"), limits=Limits(max_iterations=0)))
    assert names(events) == ["init", "error"]
    assert execution_state(events).total_steps == 0


async def test_a_failing_tool_is_an_error_that_was_recovered_from() -> None:
    @tool
    async def broken() -> str:
        """Break."""
        raise RuntimeError("out of order")

    events = await run(Agent(ScriptedEngine(tool_call_answer("broken"), "never mind"), tools=[broken]))
    standing = execution_state(events)
    assert standing.current is P.COMPLETE
    assert standing.last_error is not None
    assert standing.last_error.code == "TOOL_EXECUTION_FAILED"
    assert standing.last_error.details == {"tool": "broken"}


async def test_a_cancelled_loop() -> None:
    journal = MemoryJournal()
    engine = ScriptedEngine(LOOK, "done")
    async with Agent(engine, tools=[look]).iter("hi", journal=journal, loop_id="loop") as steps:
        await steps.next()
        await steps.cancel("enough")
        await steps.next()
    events = await journal.read("loop")
    assert names(events) == ["init", "prepare", "execute", "cancelled"]
    assert transitions(events)[-1].reason == "cancelled: enough"
    assert stage_of(fold(events)) is Stage.CANCELLED


async def test_a_loop_that_is_paused_is_so_inside_execute() -> None:
    async with Agent(ScriptedEngine(LOOK, "done"), tools=[look]).iter("hi") as steps:
        drive = drive_of(steps)
        await steps.signal("pause")
        assert stage_of(drive.state) is Stage.EXECUTING, "a pause begins where the loop next moves"
        await drive.advance()
        assert (phase_of(drive.state), stage_of(drive.state)) == (P.EXECUTE, Stage.PAUSED)
        await steps.signal("resume")
        assert (phase_of(drive.state), stage_of(drive.state)) == (P.EXECUTE, Stage.EXECUTING)


async def test_a_loop_that_paused_before_a_check_has_not_begun_it() -> None:
    async with checking("yes please").iter("hi") as steps:
        drive = drive_of(steps)
        await steps.signal("pause")
        await drive.advance()
        assert drive.state.at == "settle"
        assert (phase_of(drive.state), stage_of(drive.state)) == (P.EXECUTE, Stage.PAUSED)
        await steps.signal("resume")
        assert (phase_of(drive.state), stage_of(drive.state)) == (P.VALIDATE, Stage.REVIEWING)


async def test_a_loop_that_waits_for_approval() -> None:
    careful = tool(approval=True)(look_again)
    async with Agent(ScriptedEngine(tool_call_answer("look_again")), tools=[careful]).iter("hi") as steps:
        drive = drive_of(steps)
        await drive.advance()
        assert (phase_of(drive.state), stage_of(drive.state)) == (P.EXECUTE, Stage.AWAITING_APPROVAL)


async def test_a_stage_moved_by_hand_holds_until_the_end() -> None:
    events = await run(Agent(ScriptedEngine("hello")))
    started, answered, ended = events
    moved = StageMoved(started.at, Stage.PLANNING)
    assert stage_of(fold([started])) is Stage.EXECUTING
    assert stage_of(fold([started, moved])) is Stage.PLANNING
    assert stage_of(fold([started, moved, answered, ended])) is Stage.COMPLETE


@pytest.mark.parametrize(("metadata", "name"), [({"role": "architect"}, "agent"), (None, "architect")])
async def test_an_architect_at_work_is_architecting(metadata: dict[str, object] | None, name: str) -> None:
    agent = Agent(ScriptedEngine("a plan"), name=name)
    events = await run(agent, metadata=metadata)
    assert stage_of(fold(events[:1])) is Stage.ARCHITECTING
    assert stage_of(fold(events)) is Stage.COMPLETE


async def test_a_loop_that_failed_can_be_tried_again() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine(EngineError("no power"), "hello"))
    with pytest.raises(EngineError):
        await agent.run("hi", journal=journal, loop_id="loop")
    assert await send_signal(journal, "loop", Signal(SignalType.RETRY, by="ann"))
    events = await journal.read("loop")
    assert names(events)[3:] == ["error", "init", "prepare", "execute"]
    assert transitions(events)[3].reason == "reopened by ann"
    await agent.resume("loop", journal)
    standing = execution_state(await journal.read("loop"))
    assert (standing.current, standing.attempt, standing.total_steps) == (P.COMPLETE, 2, 1)


async def test_the_course_of_a_fork_is_its_own() -> None:
    journal = MemoryJournal()
    agent = Agent(ScriptedEngine(LOOK, "done", "more"), tools=[look])
    await agent.run("hi", journal=journal, loop_id="loop")
    forked = await fork(journal, "loop", 1, agent.spec)
    events = await journal.read(forked)
    assert names(events) == ["init", "prepare", "execute"]
    assert transitions(events)[0].at == events[-1].at
    await agent.resume(forked, journal)
    assert names(await journal.read(forked)) == ["init", "prepare", "execute", "complete"]


async def test_the_context_of_an_execution() -> None:
    clock = FakeClock(5.0)
    agent = Agent(ScriptedEngine("hello"), tools=[look])
    events = await run(agent, clock=clock, metadata={"customer": 7})
    context = execution_context(events)
    assert (context.request_id, context.session_id, context.mode) == ("loop", "", Mode.CHAT)
    assert len(context.trace_id) == 32
    assert (context.started_at, context.metadata) == (5.0, {"customer": 7})
    assert context.selected_tools == ("look",)
    assert context.state == execution_state(events)


async def test_an_answer_that_is_held_to_a_schema_is_structured() -> None:
    agent = Agent(ScriptedEngine(tool_call_answer("final_result", {"result": 3})), output=int)
    events = await run(agent)  # pyright: ignore[reportArgumentType]
    assert execution_context(events).mode is Mode.STRUCTURED
    assert names(events) == [str(phase) for phase in PATHS[Mode.STRUCTURED].phases]

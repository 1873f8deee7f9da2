"""The modes that are flows, through the system's one door: answers, failures, streams, and going on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from flyball import Agent, MemoryJournal, System, SystemRequest, SystemResponse, TransformStep, tool, user
from flyball.core.errors import EngineError, JournalFailure, NoConsensus
from flyball.core.events import StepEnded
from flyball.core.messages import Image, Message, Text, ToolCall, assistant, system, tool_result
from flyball.inference.answers import tool_call as call
from flyball.inference.request import ModelInfo, Request
from flyball.inference.scripted import FunctionEngine
from flyball.inference.stream import TextDelta
from flyball.orchestrate.contracts import ExecutionHints, Mode, OutputContract
from flyball.orchestrate.lifecycle import (
    EDGES,
    PATHS,
    REOPENING,
    Phase,
    execution_context,
    execution_state,
    transitions,
)
from flyball.orchestrate.patterns import Redundancy, UnanimityVoting
from flyball.orchestrate.plan import ExecutionPlan, PlanPolicy, PlanStep
from flyball.orchestrate.plan.planner import ModelPlanner, StaticPlanner
from tests.orchestrate.dying import Dying
from tests.orchestrate.models import Hanging, Place, Script

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"enum": ["x", "y"]}},
    "required": ["a"],
    "additionalProperties": False,
}
X = '{"a":"x"}'
HELD = OutputContract(SCHEMA)
PLAN = {"steps": [{"name": "first", "type": "infer", "input": "One?"}, {"name": "second", "type": "infer"}]}


@tool
async def look(topic: str) -> str:
    """Look something up."""
    return f"about {topic}"


def asking(mode: Mode, **options: Any) -> SystemRequest:
    return SystemRequest(messages=(user("Which?"),), mode=mode, request_id="r", session_id="s", **options)


def plan_of(*steps: PlanStep) -> StaticPlanner:
    return StaticPlanner({}, default=ExecutionPlan(steps))


def code(response: SystemResponse) -> str:
    return response.error.code if response.error is not None else ""


# What each mode fills in


async def test_redundant() -> None:
    journal = MemoryJournal()
    response = await System(Agent(Script(X)), journal=journal).handle(asking(Mode.REDUNDANT, output=HELD))
    assert (response.content, response.structured_output) == (X, {"a": "x"})
    assert (response.confidence, response.confidence_source) == (1.0, "voting")
    assert (response.usage.requests, response.request_id, response.session_id) == (3, "r", "s")
    context = execution_context(await journal.read(response.loop_id))
    assert (context.mode, context.request_id) == (Mode.REDUNDANT, "r")
    assert [candidate.source for candidate in context.candidates] == ["replica 0", "replica 1", "replica 2"]


async def test_structured_with_tools_has_two_phases() -> None:
    engine = Script(call("look", {"topic": "tea"}), "It is tea.", X)
    agent = Agent(engine, tools=[look], instructions="Be brief.")
    response = await System(agent).handle(asking(Mode.STRUCTURED, output=HELD))
    assert code(response) == "CONSTRAINT_JSON_INVALID", "the second loop's first answer is this model's first"

    async def answer(request: Any) -> Any:
        if request.output is not None:
            return X
        return "It is tea." if len(request.messages) > 2 else call("look", {"topic": "tea"})

    agent = agent.clone(model=FunctionEngine(answer, info=ModelInfo("two", provider="test")))
    response = await System(agent).handle(asking(Mode.STRUCTURED, output=HELD))
    assert (response.content, response.structured_output) == (X, {"a": "x"})
    assert [(made.name, made.result) for made in response.tool_calls_made] == [("look", "about tea")]
    assert response.validation_result is not None
    assert (response.validation_result.passed, response.usage.requests) == (1, 3)


async def test_a_plan_that_the_request_brings() -> None:
    journal = MemoryJournal()
    system = System(Agent(Script("said")), journal=journal)
    response = await system.handle(asking(Mode.PLAN, plan=PLAN))
    assert (response.content, response.structured_output) == ("said", {"first": "said", "second": "said"})
    assert response.usage.requests == 2
    state = execution_state(await journal.read(response.loop_id))
    assert (state.current, state.total_steps, state.last_step) == (Phase.COMPLETE, 2, "second")


async def test_the_agents_model_plans_where_nobody_else_does() -> None:
    async def answer(request: Any) -> Any:
        if request.output is not None:
            return '{"rationale":"short","steps":[{"name":"a","type":"infer","input":"Sure?"}]}'
        return f"to {request.messages[-1].text}"

    system = System(Agent(FunctionEngine(answer, info=ModelInfo("plans", provider="test"))))
    response = await system.handle(asking(Mode.PLAN))
    assert response.content == "to Sure?"


async def test_a_first_step_without_an_input_takes_the_users_question() -> None:
    engine = Script("said")
    steps = plan_of(PlanStep("a", "infer"))
    heard = [piece async for piece in System(Agent(engine), planner=steps).stream(asking(Mode.PLAN))]
    assert engine.last.messages[-1].text == "Which?"
    assert isinstance(heard[-1], SystemResponse)
    brought = asking(Mode.PLAN, plan={"steps": [{"name": "a", "type": "infer"}]})
    assert (await System(Agent(engine)).handle(brought)).ok
    assert engine.last.messages[-1].text == "Which?"


def heard_by(engine: Script) -> list[list[tuple[str, str]]]:
    return [[(str(one.role), one.text) for one in request.messages] for request in engine.requests]


TALK = (system("Be."), user("Hi"), assistant("Hello"), user("Which, "), user("then?"))


async def test_the_conversation_is_there_for_who_plans_and_for_each_step_that_asks() -> None:
    planning = Script('{"rationale":"so","steps":[{"name":"a","type":"infer","input":null}]}')
    engine = Script("said")
    planner = ModelPlanner(planning, {"infer": "asks"})
    request = SystemRequest(messages=TALK, mode=Mode.PLAN)
    assert (await System(Agent(engine), planner=planner).handle(request)).ok
    before = [("user", "Hi"), ("assistant", "Hello"), ("user", "Which, then?")]
    assert heard_by(engine) == [[("system", "Be."), *before]]
    assert heard_by(planning)[0][1:] == before

    engine = Script("said")
    brought = SystemRequest(messages=TALK, mode=Mode.PLAN, plan=PLAN)
    assert (await System(Agent(engine)).handle(brought)).ok
    assert [one[1:] for one in heard_by(engine)] == [
        [*before[:2], ("user", "One?")],
        [*before[:2], ("user", "said")],
    ]


async def test_a_step_that_is_asked_the_users_question_gets_all_of_it() -> None:
    engine, picture = Script("said"), Image("https://example.org/a.png")
    one = {"steps": [{"name": "a", "type": "infer"}]}
    request = SystemRequest(messages=(user((Text("What is this?"), picture)),), mode=Mode.PLAN, plan=one)
    assert (await System(Agent(engine)).handle(request)).ok
    assert engine.last.messages[-1].parts == request.messages[0].parts
    called = (user("Which?"), assistant("", ToolCall("c", "look")), tool_result("c", "look", "x"))
    engine = Script("said")
    assert (await System(Agent(engine)).handle(SystemRequest(messages=called, mode=Mode.PLAN, plan=one))).ok
    assert [str(message.role) for message in engine.last.messages] == ["user", "assistant", "tool"]
    assert (await System(Agent(engine)).handle(SystemRequest(messages=called, mode=Mode.PLAN, plan=PLAN))).ok
    assert [str(message.role) for message in engine.last.messages] == ["user", "assistant", "tool", "user"]


async def test_a_step_that_is_given_a_conversation_has_its_own() -> None:
    def talks(step: PlanStep) -> list[Message]:
        return [user("Mine?")]

    engine = Script("said")
    steps = plan_of(PlanStep("t", "talks", 1), PlanStep("a", "infer"))
    door = System(Agent(engine), planner=steps, handlers={"talks": talks})
    assert (await door.handle(SystemRequest(messages=TALK, mode=Mode.PLAN))).ok
    assert heard_by(engine) == [[("system", "Be."), ("user", "Mine?")]]


async def test_the_tools_of_the_agent_are_steps() -> None:
    steps = plan_of(PlanStep("find", "tool", {"name": "look", "arguments": {"topic": "tea"}}))
    response = await System(Agent(Script(), tools=[look]), planner=steps).handle(asking(Mode.PLAN))
    assert response.content == "about tea"


async def test_handlers_of_ones_own_and_a_policy() -> None:
    def shout(step: PlanStep) -> str:
        """Says it louder."""
        return step.input_as(str).upper()

    steps = plan_of(PlanStep("a", "shout", "hi"), PlanStep("b", "shout"))
    handlers: dict[str, Any] = {"shout": shout}
    system = System(Agent(Script()), planner=steps, handlers=handlers)
    assert (await system.handle(asking(Mode.PLAN))).content == "HI"
    strict = System(Agent(Script()), planner=steps, handlers=handlers, plan_policy=PlanPolicy(max_steps=1))
    response = await strict.handle(asking(Mode.PLAN))
    assert code(response) == "ORCHESTRATION_PLAN_REJECTED"


# What goes wrong


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (asking(Mode.REDUNDANT), "CONFIG_SCHEMA_REQUIRED"),
        (asking(Mode.CHAT, plan=PLAN), "CONFIG_INVALID_REQUEST"),
        (asking(Mode.PLAN, plan={"steps": [{"name": "a"}]}), "CONFIG_INVALID_REQUEST"),
        (asking(Mode.PLAN, plan={"steps": []}), "ORCHESTRATION_PLAN_REJECTED"),
        (asking(Mode.PLAN, plan={"steps": [{"name": "a", "type": "x"}]}), "ORCHESTRATION_PLAN_REJECTED"),
        (asking(Mode.REDUNDANT, output=HELD, tools=("no",)), "CONFIG_INVALID_REQUEST"),
        (asking(Mode.PLAN, hints=ExecutionHints(top_p=3)), "CONFIG_INVALID_REQUEST"),
    ],
)
async def test_what_cannot_be_served_leaves_nothing(request_: SystemRequest, expected: str) -> None:
    journal = MemoryJournal()
    response = await System(Agent(Script("said")), journal=journal).handle(request_)
    assert code(response) == expected
    assert response.request_id == "r"
    assert not await journal.loops()


async def test_no_consensus_is_told_with_what_there_is() -> None:
    async def answer(request: Any) -> Any:
        return X if "s0_0" in request.run_id else '{"a":"y"}'

    agent = Agent(FunctionEngine(answer, info=ModelInfo("votes", provider="test")))
    system = System(agent, redundancy=Redundancy(voting=UnanimityVoting()))
    response = await system.handle(asking(Mode.REDUNDANT, output=HELD))
    assert code(response) == "ORCHESTRATION_NO_CONSENSUS"
    assert response.content == '{"a":"y"}'
    strict = OutputContract(SCHEMA, strict_validation=True)
    response = await system.handle(asking(Mode.REDUNDANT, output=strict))
    assert (response.content, response.structured_output) == ("", None)


async def test_a_plan_that_fails_has_the_steps_before() -> None:
    async def answer(request: Any) -> Any:
        if request.messages[-1].text != "One?":
            raise EngineError("no power")
        return "one"

    response = await System(Agent(FunctionEngine(answer))).handle(asking(Mode.PLAN, plan=PLAN))
    assert code(response) == "INFERENCE_ENGINE_ERROR"
    assert response.error is not None
    assert (response.error.details or {})["step"] == "second"
    assert (response.content, response.structured_output) == ("one", {"first": "one"})


async def test_time_is_up_for_the_whole_request() -> None:
    place = Place()
    system = System(Agent(Hanging(place=place)))
    request = asking(Mode.PLAN, plan=PLAN, hints=ExecutionHints(timeout=0.05))
    response = await system.handle(request)
    assert code(response) == "CANCELLED_TIMEOUT"


# Streams


async def test_a_plan_is_heard_answer_by_answer() -> None:
    pieces = [
        piece async for piece in System(Agent(Script("said", chunk=2))).stream(asking(Mode.PLAN, plan=PLAN))
    ]
    assert isinstance(pieces[-1], SystemResponse)
    assert "".join([piece.text for piece in pieces if isinstance(piece, TextDelta)]) == "saidsaid"


async def test_of_a_vote_only_the_winner_is_heard() -> None:
    pieces = [piece async for piece in System(Agent(Script(X))).stream(asking(Mode.REDUNDANT, output=HELD))]
    assert isinstance(pieces[-1], SystemResponse)
    assert "".join([piece.text for piece in pieces if isinstance(piece, TextDelta)]) == X


async def test_a_refusal_is_one_response() -> None:
    (response,) = [piece async for piece in System(Agent(Script(X))).stream(asking(Mode.REDUNDANT))]
    assert isinstance(response, SystemResponse)
    assert code(response) == "CONFIG_SCHEMA_REQUIRED"


async def test_closing_a_stream_early_leaves_the_flow_to_be_gone_on_with() -> None:
    journal = MemoryJournal()
    system = System(Agent(Script("said", chunk=2)), journal=journal)
    stream = system.stream(asking(Mode.PLAN, plan=PLAN), loop_id="p")
    async for _ in stream:
        break
    await stream.aclose()
    assert (await system.resume("p")).content == "said"


# Going on

MODES = [
    (asking(Mode.PLAN, plan=PLAN), "said"),
    (asking(Mode.PLAN), "said"),
    (asking(Mode.CHAT), "said"),
    (asking(Mode.STRUCTURED, output=HELD), X),
    (asking(Mode.REDUNDANT, output=HELD), X),
]
"""Requests to a system with a planner, and what they come to."""


def made(request: SystemRequest, answer: str, journal: Any) -> tuple[System, Script]:
    engine = Script(answer)
    planner = plan_of(PlanStep("a", "infer", "One?"), PlanStep("b", "infer"))
    return System(Agent(engine), journal=journal, planner=planner), engine


@pytest.mark.parametrize(("request_", "answer"), MODES)
async def test_a_request_that_breaks_off_anywhere_goes_on(request_: SystemRequest, answer: str) -> None:
    system, engine = made(request_, answer, MemoryJournal())
    whole = await system.handle(request_, loop_id="f")
    calls = engine.calls
    for left in range(80):
        journal = Dying(left)
        system, before = made(request_, answer, journal)
        response = await system.handle(request_, loop_id="f")
        if response.ok:
            assert left > 6
            return
        assert code(response) == JournalFailure.code
        journal.left = -1
        system, after = made(request_, answer, journal)
        response = await system.resume("f")
        if not await journal.read("f"):
            assert code(response) == "ORCHESTRATION_LOOP_NOT_FOUND"
            continue
        assert (response.content, response.structured_output) == (whole.content, whole.structured_output)
        assert response.request_id == "r"
        assert before.calls + after.calls <= calls + 1, "only what had no answer yet is asked again"
        assert (await system.replay("f")).content == whole.content
    raise AssertionError("it never came to its end")


async def test_a_failed_plan_is_tried_again() -> None:
    journal = MemoryJournal()
    power = [False]

    async def answer(request: Any) -> Any:
        if request.messages[-1].text != "One?" and not power[0]:
            raise EngineError("no power")
        return "said"

    system = System(Agent(FunctionEngine(answer)), journal=journal)
    failed = await system.handle(asking(Mode.PLAN, plan=PLAN), loop_id="p")
    assert code(failed) == "INFERENCE_ENGINE_ERROR"
    assert code(await system.resume("p")) == "INFERENCE_ENGINE_ERROR"
    power[0] = True
    again = await system.resume("p", retry=True)
    assert (again.content, again.ok) == ("said", True)
    first = [
        event for event in await journal.read("p") if isinstance(event, StepEnded) and event.path == "0.0"
    ]
    assert len(first) == 1, "what had ended was not run again"


@pytest.mark.parametrize("stop_early", [False, True])
async def test_a_vote_without_a_candidate_is_tried_again(stop_early: bool) -> None:
    journal, power, asked = MemoryJournal(), [False], list[str]()

    async def answer(request: Any) -> Any:
        asked.append(request.run_id)
        if not power[0]:
            raise EngineError("no power")
        return X

    agent = Agent(FunctionEngine(answer, info=ModelInfo("votes", provider="test")))
    system = System(agent, journal=journal, redundancy=Redundancy(stop_early=stop_early))
    failed = await system.handle(asking(Mode.REDUNDANT, output=HELD), loop_id="v")
    assert code(failed) == "INFERENCE_ENGINE_ERROR"
    assert code(await system.resume("v", retry=True)) == "INFERENCE_ENGINE_ERROR"
    power[0] = True
    again = await system.resume("v", retry=True)
    replicas = 2 if stop_early else 3
    assert (again.content, again.confidence) == (X, replicas / 3)
    assert len(set(asked)) == 6 + replicas, "each attempt is a loop of its own"
    assert (await system.replay("v")).content == X
    assert execution_state(await journal.read("v")).attempt == 3


async def test_a_retry_of_a_vote_asks_only_replicas_that_gave_no_answer() -> None:
    journal, power, asked = MemoryJournal(), [False], list[str]()

    async def answer(request: Any) -> Any:
        asked.append(request.run_id)
        if "s0_1" in request.run_id and not power[0]:
            raise EngineError("no power")
        return X

    agent = Agent(FunctionEngine(answer, info=ModelInfo("votes", provider="test")))
    system = System(agent, journal=journal, redundancy=Redundancy(voting=AllOfThree()))
    failed = await system.handle(asking(Mode.REDUNDANT, output=HELD), loop_id="v")
    assert code(failed) == "ORCHESTRATION_NO_CONSENSUS"
    asked.clear()
    power[0] = True
    assert (await system.resume("v", retry=True)).confidence == 1.0
    assert asked == ["v-s0_1_0-t2"]


class AllOfThree:
    """A voting that wants to hear everybody."""

    def vote(self, candidates: Sequence[str]) -> tuple[str, float]:
        if len(candidates) < 3:
            raise NoConsensus("somebody is missing")
        return candidates[0], 1.0


async def test_a_flow_that_no_request_began() -> None:
    journal = MemoryJournal()
    await TransformStep(str).run(3, journal=journal, loop_id="f")
    response = await System(Agent(Script()), journal=journal).replay("f")
    assert code(response) == "CONFIG_LOOP_MISMATCH"


# The lifecycle


@pytest.mark.parametrize(("request_", "answer"), MODES)
async def test_each_mode_goes_its_way(request_: SystemRequest, answer: str) -> None:
    journal = MemoryJournal()
    system, _ = made(request_, answer, journal)
    response = await system.handle(request_)
    moves = transitions(await journal.read(response.loop_id))
    first, *others = [phase for phase in PATHS[request_.mode].phases if phase is not Phase.PLAN]
    assert ("init", *[move.to for move in moves]) == (first, Phase.PLAN, *others), "whatever the mode"
    assert all(move.reason for move in moves)
    assert all(move.to in EDGES[move.from_] for move in moves)


@pytest.mark.parametrize(("request_", "answer"), [MODES[0], *MODES[2:]])
async def test_only_the_mode_plan_plans_without_a_planner(request_: SystemRequest, answer: str) -> None:
    journal = MemoryJournal()
    response = await System(Agent(Script(answer)), journal=journal).handle(request_)
    moves = transitions(await journal.read(response.loop_id))
    assert ("init", *[move.to for move in moves]) == PATHS[request_.mode].phases


async def test_a_step_that_is_tried_again_is_another_attempt() -> None:
    tries = [ValueError("once"), None]

    def shaky(step: PlanStep) -> str:
        if (error := tries.pop(0)) is not None:
            raise error
        return "done"

    journal = MemoryJournal()
    steps = plan_of(PlanStep("a", "shaky", "x", retries=1))
    system = System(Agent(Script()), journal=journal, planner=steps, handlers={"shaky": shaky})
    response = await system.handle(asking(Mode.PLAN))
    moves = transitions(await journal.read(response.loop_id))
    assert [(str(move.from_), str(move.to), move.attempt) for move in moves[3:]] == [
        ("execute", "validate", 1),
        ("validate", "execute", 2),
        ("execute", "validate", 2),
        ("validate", "complete", 2),
    ]
    assert all(move.to in EDGES[move.from_] or (move.from_, move.to) in REOPENING for move in moves), (
        "no edge is made up"
    )


async def test_a_flow_that_fails_ends_in_error_and_may_be_reopened() -> None:
    journal = MemoryJournal()
    steps = plan_of(PlanStep("a", "fails", "x"))

    def fails(step: PlanStep) -> str:
        raise ValueError("never")

    system = System(Agent(Script()), journal=journal, planner=steps, handlers={"fails": fails})
    response = await system.handle(asking(Mode.PLAN), loop_id="p")
    assert code(response) == "ORCHESTRATION_STEP_FAILED"
    state = execution_state(await journal.read("p"))
    assert (state.current, state.last_step) == (Phase.ERROR, "plan")
    assert state.last_error is not None
    assert code(await system.resume("p", retry=True)) == "ORCHESTRATION_STEP_FAILED"
    moves = transitions(await journal.read("p"))
    assert (Phase.ERROR, Phase.INIT) in [(move.from_, move.to) for move in moves]


# Read elsewhere


@pytest.mark.parametrize(("request_", "answer"), MODES)
async def test_what_is_over_is_told_where_no_code_is_at_hand(request_: SystemRequest, answer: str) -> None:
    journal = MemoryJournal()
    system, _ = made(request_, answer, journal)
    whole = await system.handle(request_, loop_id="f")
    told = await System(journal=journal).replay("f")
    assert (told.content, told.structured_output) == (whole.content, whole.structured_output)
    assert (told.confidence, told.usage, told.loop_id) == (whole.confidence, whole.usage, "f")


async def test_what_is_not_over_needs_the_steps_that_it_was_begun_with() -> None:
    journal = Dying(7)
    request = asking(Mode.REDUNDANT, output=HELD)
    await System(Agent(Script(X)), journal=journal).handle(request, loop_id="v")
    journal.left = -1
    other = System(Agent(Script(X)), journal=journal, redundancy=Redundancy(n=5))
    response = await other.resume("v")
    assert code(response) == "CONFIG_LOOP_MISMATCH"
    assert response.error is not None
    assert "was begun with other steps" in response.error.message
    assert (await System(Agent(Script(X)), journal=journal).resume("v")).ok


@pytest.mark.parametrize("mode", [Mode.STRUCTURED, Mode.PLAN, Mode.REDUNDANT])
async def test_the_tools_that_were_selected_are_told(mode: Mode) -> None:
    @tool
    async def listen() -> str:
        """Listen."""
        return "heard"

    async def answer(request: Request) -> Any:
        return X if request.output is not None else "It is tea."

    agent = Agent(FunctionEngine(answer, info=ModelInfo("two", provider="test")), tools=[look, listen])
    plan: Any = {"plan": PLAN} if mode is Mode.PLAN else {}
    journal = Dying(5)
    request = asking(mode, output=HELD, tools=("look",), **plan)
    response = await System(agent, journal=journal).handle(request, loop_id="f")
    assert code(response) == JournalFailure.code
    context = execution_context(await journal.read("f"))
    assert (context.mode, context.selected_tools) == (mode, ("look",))

    journal = Dying(1)
    system = System(agent.clone(tools=[look]), journal=journal)
    assert code(await system.handle(asking(mode, output=HELD, **plan), loop_id="f")) == JournalFailure.code
    journal.left = -1
    assert (await System(agent, journal=journal).resume("f")).ok, "no loop had begun with fewer of them"

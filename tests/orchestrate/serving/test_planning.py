"""A system with a planner: in the modes other than plan, the agent is told to go by what it made."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import Agent, MemoryJournal, RetryPolicy, System, SystemRequest, SystemResponse, tool, user
from flyball.core.errors import EngineError
from flyball.inference.answers import tool_call as call
from flyball.inference.request import ModelInfo
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.inference.stream import TextDelta
from flyball.orchestrate.contracts import Mode, OutputContract
from flyball.orchestrate.lifecycle import Phase, execution_context, execution_state, transitions
from flyball.orchestrate.plan import ExecutionPlan, PlanStep
from flyball.orchestrate.plan.planner import ModelPlanner, StaticPlanner
from tests.orchestrate.models import Script

X = '{"a":"x"}'
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
HELD = OutputContract(SCHEMA)
STEPS = StaticPlanner({}, default=ExecutionPlan((PlanStep("look", "find", "tea"), PlanStep("say", "infer"))))
TOLD = "Go by it as far as it helps:\n1. look (find): tea\n2. say (infer)"


def asking(mode: Mode, **options: Any) -> SystemRequest:
    return SystemRequest(messages=(user("Which?"),), mode=mode, **options)


async def test_a_chat_is_told_its_plan_after_its_instructions() -> None:
    engine = Script("Tea.")
    system = System(Agent(engine, instructions="Be brief."), planner=STEPS)
    response = await system.handle(asking(Mode.CHAT))
    assert (response.ok, response.content, response.structured_output) == (True, "Tea.", None)
    told = engine.last.messages[0].text
    assert told.startswith("Be brief.\n\nA plan was made")
    assert told.endswith(TOLD)
    assert engine.last.messages[-1].text == "Which?"
    assert engine.calls == 1, "a static plan asks nobody"


async def test_all_replicas_go_by_one_plan() -> None:
    journal, engine = MemoryJournal(), ScriptedEngine(X, X, X)
    system = System(Agent(engine), journal=journal, planner=STEPS)
    response = await system.handle(asking(Mode.REDUNDANT, output=HELD))
    assert (response.content, response.confidence, response.confidence_source) == (X, 1.0, "voting")
    assert [sent.messages[0].text.endswith(TOLD) for sent in engine.calls] == [True] * 3
    context = execution_context(await journal.read(response.loop_id))
    assert [one.source for one in context.candidates] == ["replica 0", "replica 1", "replica 2"]


async def test_what_gathers_is_told_and_what_answers_goes_on_with_that() -> None:
    @tool
    async def look(topic: str) -> str:
        """Look something up."""
        return f"about {topic}"

    seen: list[tuple[bool, int]] = []

    async def answer(request: Any) -> Any:
        seen.append((request.output is not None, request.messages[0].text.count(TOLD)))
        if request.output is not None:
            return X
        return "It is tea." if len(request.messages) > 2 else call("look", {"topic": "tea"})

    engine = FunctionEngine(answer, info=ModelInfo("two", provider="test"))
    system = System(Agent(engine, tools=[look]), planner=STEPS)
    response = await system.handle(asking(Mode.STRUCTURED, output=HELD))
    assert response.structured_output == {"a": "x"}
    assert seen == [(False, 1), (False, 1), (True, 1)], "once each"


async def test_a_planner_that_has_no_plan_for_it_is_done_without() -> None:
    engine, journal = Script("Tea."), MemoryJournal()
    system = System(Agent(engine), journal=journal, planner=StaticPlanner({}))
    response = await system.handle(asking(Mode.CHAT))
    assert response.content == "Tea."
    assert [message.role for message in engine.last.messages] == ["user"]
    assert Phase.PLAN in [move.to for move in transitions(await journal.read(response.loop_id))]


async def test_a_planner_that_fails_fails_the_request() -> None:
    class Broken:
        async def create_plan(self, context: Any, request: SystemRequest) -> ExecutionPlan:
            raise EngineError("no power")

    journal, engine = MemoryJournal(), Script("Tea.")
    response = await System(Agent(engine), journal=journal, planner=Broken()).handle(asking(Mode.CHAT))
    assert response.error is not None
    assert response.error.code == "INFERENCE_ENGINE_ERROR"
    state = execution_state(await journal.read(response.loop_id))
    assert (state.current, engine.calls) == (Phase.ERROR, 0)


async def test_what_a_planner_asks_a_model_is_counted_and_not_heard() -> None:
    made = '{"rationale":"short","steps":[{"name":"say","type":"infer","input":null}]}'
    planner = ModelPlanner(ScriptedEngine(made, chunk=4), {"infer": "asks a model"})
    system = System(Agent(ScriptedEngine("Tea.", chunk=2)), planner=planner)
    pieces = [piece async for piece in system.stream(asking(Mode.CHAT))]
    assert "".join([piece.text for piece in pieces if isinstance(piece, TextDelta)]) == "Tea."
    response = pieces[-1]
    assert isinstance(response, SystemResponse)
    assert (response.content, response.usage.requests) == ("Tea.", 2)


@pytest.mark.parametrize("mode", [Mode.CHAT, Mode.STRUCTURED])
async def test_without_a_planner_a_request_is_one_loop(mode: Mode) -> None:
    journal = MemoryJournal()
    request = asking(mode, output=HELD if mode is Mode.STRUCTURED else None)
    await System(Agent(Script(X)), journal=journal).handle(request)
    assert len(await journal.loops()) == 1


class Giving:
    """A planner that gives anything."""

    def __init__(self, plan: Any) -> None:
        self.plan = plan

    async def create_plan(self, context: Any, request: Any) -> Any:
        return self.plan


WRONG: Any = 3


@pytest.mark.parametrize("mode", [Mode.CHAT, Mode.PLAN])
@pytest.mark.parametrize(
    "plan",
    [
        ExecutionPlan((PlanStep(WRONG, "infer"),)),
        ExecutionPlan((PlanStep("a", "infer", object()),)),
        ExecutionPlan((PlanStep("a", "infer", retries=RetryPolicy(1, retry_if=bool)),)),
        ExecutionPlan(WRONG),
    ],
    ids=["name", "input", "retries", "steps"],
)
async def test_a_plan_that_is_none_is_the_planners_fault_in_every_mode(plan: Any, mode: Mode) -> None:
    engine = Script("Tea.")
    response = await System(Agent(engine), planner=Giving(plan)).handle(asking(mode))
    assert response.error is not None
    assert response.error.code == "ORCHESTRATION_PLAN_REJECTED"
    assert engine.calls == 0


async def test_nobody_is_told_of_a_plan_without_steps() -> None:
    engine = Script("Tea.")
    assert (await System(Agent(engine), planner=Giving(ExecutionPlan(()))).handle(asking(Mode.CHAT))).ok
    assert [message.text for message in engine.last.messages] == ["Which?"]

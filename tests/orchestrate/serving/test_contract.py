"""What a request's contract holds in mode plan: what the plan gives, whoever gives it."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import Agent, MemoryJournal, RunContext, System
from flyball.core.errors import UserError
from flyball.inference.request import ModelInfo, Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.orchestrate.contracts import Mode, OutputContract, ValidationResult
from flyball.orchestrate.lifecycle import PATHS, execution_state, transitions
from flyball.orchestrate.plan import ExecutionPlan, PlanExecutor, PlanStep
from tests.orchestrate.models import Script
from tests.orchestrate.serving.test_modes import HELD, PLAN, SCHEMA, X, asking, code, plan_of

OPEN: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Held(FunctionEngine):
    """A model that answers by a schema where it is asked for one, and notes how it was asked."""

    def __init__(self, *answers: str) -> None:
        self.requests: list[Request] = []
        left = list(answers)

        async def answer(request: Request) -> Any:
            self.requests.append(request)
            return "so" if request.output is None else left.pop(0) if len(left) > 1 else left[0]

        super().__init__(answer, info=ModelInfo("held", provider="test"))


async def test_only_the_plans_own_output_is_held_to_the_contract() -> None:
    engine, journal = Held(X), MemoryJournal()
    response = await System(Agent(engine), journal=journal).handle(asking(Mode.PLAN, plan=PLAN, output=HELD))
    assert [request.output is not None for request in engine.requests] == [False, True]
    assert [request.settings.temperature for request in engine.requests] == [None, 0.3]
    assert response.structured_output == {"first": "so", "second": {"a": "x"}, "output": {"a": "x"}}
    assert (response.content, response.validation_result) == (X, ValidationResult(passed=1))
    events = await journal.read(response.loop_id)
    state = execution_state(events)
    assert (state.total_steps, state.last_step) == (2, "second"), "holding it to the schema is no step of it"
    assert tuple([str(move.to) for move in transitions(events)]) == PATHS[Mode.PLAN].phases[1:]
    assert any(move.reason == "the output is held to its schema" for move in transitions(events))


async def test_the_agents_own_type_of_output_is_the_plans() -> None:
    engine = Held('{"n":3}')
    seen: list[Any] = []

    def look_at(context: RunContext[Any], value: Any) -> Any:
        seen.append(value)
        return value

    agent = Agent(engine, output=OPEN, output_mode="native", validators=[look_at])
    response = await System(agent).handle(asking(Mode.PLAN, plan=PLAN))
    assert response.structured_output == {"first": "so", "second": {"n": 3}}
    assert seen == [{"n": 3}], "what is said on the way is of no type, and nobody's to look at"
    assert [request.output is not None for request in engine.requests] == [False, True]


async def test_a_grammar_holds_the_plans_own_output() -> None:
    engine = Script("yes")
    contract = OutputContract(grammar='root ::= "yes"')
    assert (await System(Agent(engine)).handle(asking(Mode.PLAN, plan=PLAN, output=contract))).ok
    assert [request.grammar for request in engine.requests] == [None, 'root ::= "yes"']


@pytest.mark.parametrize(
    ("given", "output", "expected"),
    [
        ({"a": "x"}, {"a": "x"}, ""),
        ('{"a":"x"}', {"a": "x"}, ""),
        ('{"a":"X"', {"a": "x"}, ""),
        ("junk", None, "CONSTRAINT_JSON_INVALID"),
        ({"a": "z"}, None, "CONSTRAINT_ENUM_UNRECOGNIZED"),
        ([1], None, "CONSTRAINT_SCHEMA_INVALID"),
    ],
)
async def test_whoever_gives_a_plans_output_it_is_held_to_the_contract(
    given: Any, output: Any, expected: str
) -> None:
    def gives(step: PlanStep) -> Any:
        return given

    steps = plan_of(PlanStep("a", "gives", 1))
    door = System(Agent(Script()), planner=steps, handlers={"gives": gives})
    response = await door.handle(asking(Mode.PLAN, output=HELD))
    assert code(response) == expected
    told: Any = response.structured_output
    assert told == ({"a": given} if expected else {"a": given, "output": output})
    assert response.validation_result is not None
    assert (response.validation_result.passed, response.validation_result.failed) == (
        (0, 1) if expected else (1, 0)
    )
    strict = OutputContract(SCHEMA, strict_validation=True)
    response = await door.handle(asking(Mode.PLAN, output=strict))
    assert (response.structured_output is None) == bool(expected)


@pytest.mark.parametrize("contract", [{"repair_allowed": False}, {"strict_validation": True}])
async def test_a_contract_that_lets_nothing_be_put_right_has_no_step_tried_again(
    contract: dict[str, Any],
) -> None:
    engine = Held('{"a":"z"}')
    held = OutputContract(SCHEMA, **contract)
    response = await System(Agent(engine)).handle(asking(Mode.PLAN, plan=PLAN, output=held))
    assert code(response) == "CONSTRAINT_ENUM_UNRECOGNIZED"
    assert len(engine.requests) == 2


async def test_ways_that_end_a_plan_are_held_and_what_is_inside_is_not() -> None:
    engine = Held(X)
    steps: list[Any] = [
        {"name": "both", "parallel": [{"name": "p", "type": "infer"}, {"name": "q", "type": "infer"}]},
        {
            "name": "which",
            "test": {"name": "t", "type": "yes"},
            "then": [{"name": "r", "type": "infer"}, {"name": "s", "type": "infer"}],
        },
    ]
    door = System(Agent(engine), handlers={"yes": lambda step: True})
    response = await door.handle(asking(Mode.PLAN, plan={"steps": steps}, output=HELD))
    assert response.ok
    assert [request.output is not None for request in engine.requests] == [False, False, False, True]


async def test_steps_may_be_of_any_type_also_where_flows_have_such_a_kind() -> None:
    def same(step: PlanStep) -> Any:
        return step.input

    kinds: dict[str, Any] = {"planner": same, "contract": same}
    steps = plan_of(PlanStep("a", "planner", "x"), PlanStep("b", "contract"))
    journal = MemoryJournal()
    response = await System(Agent(Script()), planner=steps, handlers=kinds, journal=journal).handle(
        asking(Mode.PLAN)
    )
    assert response.structured_output == {"a": "x", "b": "x"}
    assert response.validation_result is None
    result = await PlanExecutor(kinds).execute(
        ExecutionPlan((PlanStep("a", "planner", "x"), PlanStep("b", "contract")))
    )
    assert execution_state(await result.flow.events()).total_steps == 2


async def test_what_is_held_to_the_contract_is_the_output_whatever_steps_are_called() -> None:
    steps = plan_of(PlanStep("output", "says", "not held"), PlanStep("plan", "infer", "Which?"))
    door = System(Agent(Held(X)), planner=steps, handlers={"says": lambda step: step.input})
    response = await door.handle(asking(Mode.PLAN, output=HELD))
    assert response.structured_output == {
        "output": {"a": "x"},
        "output (2)": "not held",
        "plan": {"a": "x"},
    }


@pytest.mark.parametrize("contract", [{"repair_allowed": False}, {"strict_validation": True}])
@pytest.mark.parametrize("mode", [Mode.CHAT, Mode.PLAN])
async def test_an_answer_that_breaks_its_grammar_is_the_end_where_a_contract_says_so(
    mode: Mode, contract: dict[str, Any]
) -> None:
    plan = {"plan": {"steps": [{"name": "a", "type": "infer"}]}} if mode is Mode.PLAN else {}
    held = OutputContract(grammar='root ::= "yes"', **contract)
    engine, journal = ScriptedEngine("no", "no", "yes"), MemoryJournal()
    system = System(Agent(engine), journal=journal)
    response = await system.handle(asking(mode, output=held, **plan), loop_id="r")
    assert (code(response), len(engine.calls)) == ("CONSTRAINT_GRAMMAR_REJECTED", 1)
    response = await system.resume("r", retry=True)
    assert (code(response), len(engine.calls)) == ("CONSTRAINT_GRAMMAR_REJECTED", 2), (
        "also by what is recorded"
    )


def test_an_agent_asks_again_or_does_not() -> None:
    wrong: Any = "no"
    with pytest.raises(UserError, match="asks_again is True or False"):
        Agent(Script(), asks_again=wrong)

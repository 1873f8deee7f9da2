"""Plans as JSON, and who makes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from flyball import Agent, RetryPolicy, System, SystemRequest, user
from flyball.core.errors import InvalidRequest, UserError
from flyball.orchestrate.contracts import Mode
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.plan import ExecutionPlan, PlanBranch, PlanItem, PlanParallel, PlanStep, PlanTrace
from flyball.orchestrate.plan.forms import plan_from_json, plan_to_json
from flyball.orchestrate.plan.planner import ModelPlanner, Planner, StaticPlanner
from flyball.orchestrate.plan.written import Customs, node_of, plan_from
from tests.orchestrate.models import Script

policies = st.builds(
    RetryPolicy,
    st.integers(0, 3),
    st.floats(0, 9),
    st.floats(1, 9),
    st.none() | st.floats(0, 9),
    st.floats(0, 1),
)
names = st.text("abc ", min_size=1, max_size=4)
steps: SearchStrategy[PlanItem] = st.builds(
    PlanStep,
    names,
    names,
    st.none() | st.integers(1, 9) | st.text(max_size=3) | st.just({"a": [1, None]}),
    retries=st.none() | st.integers(0, 3) | policies,
    timeout=st.none() | st.floats(0.1, 9),
)


def larger(inner: SearchStrategy[PlanItem]) -> SearchStrategy[PlanItem]:
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.builds(PlanParallel, some, names, st.none() | st.integers(1, 3)) | st.builds(
        PlanBranch, steps.filter(lambda item: isinstance(item, PlanStep)), some, some | st.just(()), names
    )


traces = st.none() | st.builds(PlanTrace, names, names, st.floats(0, 9), st.integers(0, 9))
plans = st.builds(
    ExecutionPlan, st.lists(st.recursive(steps, larger, max_leaves=6), max_size=4).map(tuple), traces
)


@given(plans)
def test_a_plan_comes_back_from_json(plan: ExecutionPlan) -> None:
    assert plan_from_json(plan_to_json(plan)) == plan


@given(plans)
def test_a_plan_comes_back_from_how_it_is_recorded(plan: ExecutionPlan) -> None:
    written = node_of(plan, Customs(retries=2, timeout=3.0))
    again = plan_from(written)
    assert node_of(again, Customs()).steps == tuple([_without(step) for step in written.steps])
    assert [step.name for step in again.leaves] == [step.name for step in plan.leaves]
    assert again.trace == plan.trace


def _without(node: Any) -> Any:
    """A node as one that says all by itself: what it is tried again after is not part of a plan."""
    from msgspec.structs import replace

    retried = () if node.retried == () else None  # which is a policy's
    return replace(node, retried=retried, steps=tuple([_without(step) for step in node.steps]))


MALFORMED: list[tuple[Any, str]] = [
    ({"steps": [{"type": "infer"}]}, "plan.steps[0].name"),
    ({"steps": [{"name": "a", "type": 3}]}, "plan.steps[0].type"),
    ({"steps": [{"name": "a", "type": "infer", "inptu": "x"}]}, "plan.steps[0].inptu"),
    ({"steps": [{"name": "a", "parallel": "x"}]}, "plan.steps[0].parallel"),
    ({"steps": [{"test": 3, "then": []}]}, "plan.steps[0].test"),
    ({"steps": {}}, "plan.steps"),
    ({"steps": [{"name": "a", "type": "infer", "retries": "x"}]}, "plan.steps[0].retries"),
    ({"steps": [{"name": "a", "type": "infer", "retries": {"max_retries": -1}}]}, "plan.steps[0].retries"),
    ({"steps": [{"name": "a", "type": "infer", "retries": {"wait": 1}}]}, "plan.steps[0].retries.wait"),
    (
        {"steps": [{"name": "a", "type": "infer", "retries": {"backoff": "x"}}]},
        "plan.steps[0].retries.backoff",
    ),
    ({"steps": [], "more": 1}, "plan.more"),
    ([], "plan"),
]


@pytest.mark.parametrize(("document", "field"), MALFORMED)
def test_a_malformed_plan_names_what_is_wrong(document: Any, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        plan_from_json(document)
    assert caught.value.details["field"] == field


def test_a_plan_that_is_too_deep_is_refused() -> None:
    deep: dict[str, Any] = {"name": "a", "type": "infer"}
    for _ in range(60):
        deep = {"name": "p", "parallel": [deep]}
    with pytest.raises(InvalidRequest, match="at most 32 deep"):
        plan_from_json({"steps": [deep]})


# Planners

PLAN = ExecutionPlan((PlanStep("a", "infer", "first?"), PlanStep("b", "infer")))


def asking(**options: Any) -> SystemRequest:
    return SystemRequest(messages=(user("Why?"),), mode=Mode.PLAN, **options)


async def test_a_plan_is_looked_up() -> None:
    planner = StaticPlanner({"faq": PLAN}, default=None)
    assert isinstance(planner, Planner)
    system = System(Agent(Script("one")), planner=planner)
    response = await system.handle(asking(metadata={"plan": "faq"}))
    assert response.structured_output == {"a": "one", "b": "one"}
    refused = await system.handle(asking())
    assert refused.error is not None
    assert refused.error.code == "ORCHESTRATION_PLAN_REJECTED"
    assert "there is no plan ''; there are: faq" in refused.error.message
    by_key = System(Agent(Script("one")), planner=StaticPlanner({"x": PLAN}, key=lambda request: "x"))
    assert (await by_key.handle(asking())).ok
    wrong: Any = {"faq": "plan"}
    with pytest.raises(UserError, match="should be an ExecutionPlan"):
        StaticPlanner(wrong)


async def test_a_model_makes_the_plan() -> None:
    planning = Script('{"rationale":"two looks","steps":[{"name":"a","type":"infer","input":"first?"}]}')
    planner = ModelPlanner(planning, {"infer": "asks a model"}, max_steps=3, instructions="Be quick.")
    system = System(Agent(Script("one")), planner=planner)
    response = await system.handle(asking())
    assert (response.content, response.usage.requests) == ("one", 2)
    told = planning.last.messages[0].text
    assert "- infer: asks a model" in told
    assert told.endswith("Be quick.")
    assert planning.last.messages[-1].text == "Why?"
    with pytest.raises(UserError, match="needs the types of steps"):
        ModelPlanner(planning, {})


async def test_a_planner_that_gives_no_plan() -> None:
    class Wrong:
        async def create_plan(self, context: StepContext[Any], request: SystemRequest) -> Any:
            return "a plan"

    response = await System(Agent(Script("one")), planner=Wrong()).handle(asking())
    assert response.error is not None
    assert response.error.code == "ORCHESTRATION_STEP_MISMATCH"
    assert "a planner gives an ExecutionPlan, not 'a plan'" in response.error.message

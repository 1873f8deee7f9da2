"""Names of a plan's steps: each step has one of its own."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from flyball import Agent, System, SystemRequest, user
from flyball.core.flow import CONDITIONAL, FlowNode, node_at
from flyball.orchestrate.contracts import Mode
from flyball.orchestrate.plan import ExecutionPlan, PlanBranch, PlanExecutor, PlanParallel, PlanStep
from flyball.orchestrate.plan.naming import names_in
from flyball.orchestrate.plan.written import Customs, node_of
from tests.orchestrate.models import Script
from tests.orchestrate.plan.test_planners import plans


def named(*items: Any) -> list[str]:
    return list(names_in(node_of(ExecutionPlan(items), Customs())).values())


def a(name: str = "a") -> PlanStep:
    return PlanStep(name, "same", 1)


@pytest.mark.parametrize(
    ("items", "names"),
    [
        ((a(), a("b")), ["a", "b"]),
        ((a(), a(), a()), ["a", "a (2)", "a (3)"]),
        ((a(), a(), a("a (2)")), ["a", "a (2)", "a (2) (2)"]),
        ((PlanParallel((a(), a())), a()), ["a", "a (2)", "a (3)"]),
        ((PlanBranch(a("t"), (a(), a("b")), (a(),)), a(), a("b")), ["t", "a", "b", "a", "a (2)", "b (2)"]),
        ((PlanBranch(a(), (a(),), (a(),)),), ["a", "a (2)", "a (2)"]),
    ],
)
def test_a_name_that_comes_again_has_a_number(items: tuple[Any, ...], names: list[str]) -> None:
    assert named(*items) == names


def _ways(path: str, flow: FlowNode) -> set[tuple[str, str]]:
    """The branches that a step stands in, and on which side."""
    parts = path.split(".")
    above = [(".".join(parts[:at]), parts[at]) for at in range(len(parts))]
    return {(one, side) for one, side in above if node_at(flow, one).kind == CONDITIONAL and side != "0"}


@given(plans)
def test_no_two_steps_that_may_both_be_done_have_one_name(plan: ExecutionPlan) -> None:
    flow = node_of(plan, Customs())
    names = names_in(flow)
    assert len(names) == len(plan.leaves)
    for path, name in names.items():
        assert name.startswith(node_at(flow, path).name)
        for other in names:
            apart = (
                {one for one, _ in _ways(path, flow) ^ _ways(other, flow)}
                & {one for one, _ in _ways(path, flow)}
                & {one for one, _ in _ways(other, flow)}
            )
            assert other == path or names[other] != name or apart


async def test_outputs_of_steps_with_one_name_do_not_stand_for_each_other() -> None:
    steps = [{"name": "look", "type": "up", "input": text} for text in ("a", "b")]
    executor = PlanExecutor({"up": lambda step: step.input.upper()})
    done = await executor.execute(
        ExecutionPlan(tuple([PlanStep(one["name"], one["type"], one["input"]) for one in steps]))
    )
    assert (done["look"], done["look (2)"]) == ("A", "B")
    with pytest.raises(KeyError):
        done["look (3)"]
    system = System(Agent(Script()), handlers={"up": lambda step: step.input.upper()})
    request = SystemRequest(messages=(user("?"),), mode=Mode.PLAN, plan={"steps": steps})
    assert (await system.handle(request)).structured_output == {"look": "A", "look (2)": "B"}

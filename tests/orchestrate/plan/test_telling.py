"""A plan in words: each step on its line, with what it is made of numbered under it."""

from __future__ import annotations

from flyball import ExecutionPlan, PlanBranch, PlanStep
from flyball.orchestrate.plan import PlanParallel
from flyball.orchestrate.plan.telling import OPENING, plan_text


def test_a_line_for_each_step() -> None:
    plan = ExecutionPlan(
        (
            PlanStep("find", "retrieve", "floods"),
            PlanParallel((PlanStep("a", "infer"), PlanStep("b", "infer", {"n": 1})), "both"),
            PlanBranch(PlanStep("long", "check"), (PlanStep("cut", "shorten"),), (PlanStep("keep", "pass"),)),
            PlanBranch(PlanStep("empty", "check"), (PlanStep("ask", "infer"),), name="perhaps"),
        )
    )
    assert plan_text(plan).splitlines() == [
        OPENING,
        "1. find (retrieve): floods",
        "2. both: side by side",
        "2.1. a (infer)",
        '2.2. b (infer): {"n":1}',
        "3. branch: if long (check)",
        "3.1. cut (shorten)",
        "3. branch: else",
        "3.1. keep (pass)",
        "4. perhaps: if empty (check)",
        "4.1. ask (infer)",
    ]

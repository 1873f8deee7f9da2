"""A plan in words, for a model that is to go by it."""

from __future__ import annotations

from collections.abc import Iterator

from flyball.core.encodable import as_text
from flyball.orchestrate.plan.steps import ExecutionPlan, PlanBranch, PlanItem, PlanParallel, PlanStep

OPENING = "A plan was made for what the user asks. Go by it as far as it helps:"


def plan_text(plan: ExecutionPlan) -> str:
    """An opening, and a line for each step: its number, its name, its type, and its input if it has one.

    What stands inside of another is numbered under it: `2.1`.
    """
    return "\n".join([OPENING, *_lines(plan.steps, "")])


def _lines(items: tuple[PlanItem, ...], above: str) -> Iterator[str]:
    for at, item in enumerate(items, 1):
        number = f"{above}{at}"
        if isinstance(item, PlanStep):
            yield f"{number}. {_told(item)}"
        elif isinstance(item, PlanParallel):
            yield f"{number}. {item.name}: side by side"
            yield from _lines(item.steps, f"{number}.")
        else:
            yield from _branch(item, number)


def _branch(item: PlanBranch, number: str) -> Iterator[str]:
    yield f"{number}. {item.name}: if {_told(item.test)}"
    yield from _lines(item.then, f"{number}.")
    if item.otherwise:
        yield f"{number}. {item.name}: else"
        yield from _lines(item.otherwise, f"{number}.")


def _told(step: PlanStep) -> str:
    given = "" if step.input is None else f": {as_text(step.input)}"
    return f"{step.name} ({step.type}){given}"

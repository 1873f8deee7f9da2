"""A plan as JSON, for whoever sends one: a request, a file, a model.

{"steps": [
{"name": "find", "type": "retrieve", "input": "floods", "retries": {"max_retries": 2, "backoff": 0.5}},
{"name": "both", "parallel": [{"name": "a", "type": "infer"}, {"name": "b", "type": "infer"}]},
{"name": "which", "test": {"name": "long", "type": "check"}, "then": [...], "otherwise": [...]}],
"trace": {"planner_id": "ann"}}
"""

from __future__ import annotations

from typing import Any

from msgspec import to_builtins

from flyball.core.encodable import to_json
from flyball.core.forms.fields import Fields, entered, filled, malformed
from flyball.core.messages import JSON
from flyball.orchestrate.contracts.reading import inner, reading
from flyball.orchestrate.plan.retries import retries_from_json, retries_to_json
from flyball.orchestrate.plan.shape import MOST_DEEP
from flyball.orchestrate.plan.steps import (
    ExecutionPlan,
    PlanBranch,
    PlanItem,
    PlanParallel,
    PlanStep,
    PlanTrace,
)


def plan_to_json(plan: ExecutionPlan) -> dict[str, JSON]:
    """A plan as JSON: `plan_from_json` gives the same plan back."""
    steps: list[JSON] = [_written(item) for item in plan.steps]
    return {"steps": steps, **filled(trace=None if plan.trace is None else to_builtins(plan.trace))}


def plan_from_json(document: object, where: str = "plan") -> ExecutionPlan:
    """A plan from JSON.

    Raises:
        InvalidRequest: it is malformed; `field` names what is wrong.
    """
    with reading():
        fields = Fields(entered(document, where), where)
        trace = inner(fields, "trace", _trace)
        plan = ExecutionPlan(_items(fields, "steps", 0), trace)
        _nothing_else(fields)
        return plan


def _written(item: PlanItem) -> dict[str, JSON]:
    if isinstance(item, PlanStep):
        given = to_json(item.input, f"the input of step {item.name!r}")
        own: dict[str, JSON] = {"input": given} if item.input is not None else {}
        optional: dict[str, JSON] = {"retries": retries_to_json(item.retries), "timeout": item.timeout}
        own |= {name: value for name, value in optional.items() if value is not None}
        return {"name": item.name, "type": item.type, **own}
    if isinstance(item, PlanParallel):
        beside: dict[str, JSON] = {} if item.concurrency is None else {"concurrency": item.concurrency}
        return {"name": item.name, "parallel": [_written(step) for step in item.steps], **beside}
    return {
        "name": item.name,
        "test": _written(item.test),
        "then": [_written(step) for step in item.then],
        "otherwise": [_written(step) for step in item.otherwise],
    }


def _items(fields: Fields, key: str, depth: int) -> tuple[PlanItem, ...]:
    if depth > MOST_DEEP:
        raise malformed(fields.place(key), f"steps that stand at most {MOST_DEEP} deep in each other", depth)
    return tuple([_item(Fields(value, where), depth + 1) for value, where in fields.items(key)])


def _item(fields: Fields, depth: int) -> PlanItem:
    item: PlanItem
    if fields.peek("parallel") is not None:
        name = fields.text("name") or "parallel"
        item = PlanParallel(_items(fields, "parallel", depth), name, fields.whole("concurrency"))
    elif fields.peek("test") is not None:
        test = Fields(fields.any("test"), fields.place("test"))
        item = PlanBranch(
            _step(test),
            _items(fields, "then", depth),
            _items(fields, "otherwise", depth),
            fields.text("name") or "branch",
        )
        _nothing_else(test)
    else:
        item = _step(fields)
    _nothing_else(fields)
    return item


def _step(fields: Fields) -> PlanStep:
    for key in ("name", "type"):
        if not fields.peek(key):
            raise malformed(fields.place(key), "text", fields.peek(key))
    return PlanStep(
        fields.text("name"),
        fields.text("type"),
        fields.any("input"),
        retries=retries_from_json(fields, "retries"),
        timeout=fields.number("timeout"),
    )


def _trace(fields: Fields) -> PlanTrace:
    return PlanTrace(
        fields.text("planner_id"),
        fields.text("rationale"),
        fields.number("created_at") or 0.0,
        fields.whole("step_count") or 0,
    )


def _nothing_else(fields: Fields) -> None:
    """A plan is to be done as it is written: a word in it that nobody knows may be one that matters."""
    if rest := fields.rest():
        unknown: Any = next(iter(rest))
        raise malformed(fields.place(unknown), "left out: there is no such key here", rest[unknown])

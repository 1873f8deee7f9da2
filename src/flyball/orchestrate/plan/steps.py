"""A plan as data: steps that are done one after the other, side by side, or one of two.

A plan can be written down, sent, recorded and read back. The code behind its steps is bound by their types.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.errors import StepMismatch
from flyball.orchestrate.flow.retrying import Retries

INFER, TOOL, RETRIEVE, RERANK, VALIDATE = "infer", "tool", "retrieve", "rerank", "validate"
"""The types of steps that pagantic names. Any other text is a type, too, if somebody handles it."""

T = TypeVar("T")


class PlanStep(Struct, frozen=True, omit_defaults=True):
    """One step: what kind of thing is done, with what.

    `input` is what it takes; None means: what the step before gave. `output` is what it gave, and set by
    whoever ran it. `retries` and `timeout` (seconds for each try) are those of the executor where they are
    None. A RetryPolicy says after which failures, and how long is waited; it can have no `retry_if` here.
    """

    name: str
    type: str
    input: Any = None
    output: Any = None
    retries: Retries | None = None
    timeout: float | None = None

    def gives(self, output: Any) -> PlanStep:
        """The step with its output."""
        return replace(self, output=output)

    def input_as(self, kind: type[T]) -> T:
        """The input, which must be of a type.

        Raises:
            StepMismatch: it is of another; the message names both.
        """
        if isinstance(self.input, kind):
            return self.input
        raise mismatch(told(kind), self.input)


class PlanParallel(Struct, frozen=True, omit_defaults=True):
    """Steps that are done side by side, all with the same input. It gives a list of what they gave."""

    steps: tuple[PlanItem, ...]
    name: str = "parallel"
    concurrency: int | None = None


class PlanBranch(Struct, frozen=True, omit_defaults=True):
    """One of two ways, as a step decides: what it gives is taken as true or false."""

    test: PlanStep
    then: tuple[PlanItem, ...]
    otherwise: tuple[PlanItem, ...] = ()
    name: str = "branch"


PlanItem: TypeAlias = PlanStep | PlanParallel | PlanBranch
"""What a plan is made of."""


class PlanTrace(Struct, frozen=True, omit_defaults=True):
    """Where a plan comes from."""

    planner_id: str = ""
    rationale: str = ""
    created_at: float = 0.0
    step_count: int = 0


class ExecutionPlan(Struct, frozen=True, omit_defaults=True):
    """Steps, in order, and where they come from."""

    steps: tuple[PlanItem, ...]
    trace: PlanTrace | None = None

    @property
    def leaves(self) -> tuple[PlanStep, ...]:
        """All steps, also those inside of others."""
        return tuple(_leaves(self.steps))

    @property
    def is_linear(self) -> bool:
        """Whether it has neither branches nor parallel steps."""
        return all(isinstance(item, PlanStep) for item in self.steps)


def _leaves(items: tuple[PlanItem, ...]) -> Iterator[PlanStep]:
    for item in items:
        if isinstance(item, PlanStep):
            yield item
        elif isinstance(item, PlanParallel):
            yield from _leaves(item.steps)
        else:
            yield item.test
            yield from _leaves((*item.then, *item.otherwise))


def mismatch(expected: str, got: object) -> StepMismatch:
    """The failure of a step that was given something else than it takes."""
    given = told(type(got))
    return StepMismatch(f"expected {expected} input, got {given}", expected=expected, got=given)


def told(kind: Any) -> str:
    """What a type is called in messages."""
    names: dict[Any, str] = {str: "string", type(None): "none"}
    return names.get(kind) or cast("str", getattr(kind, "__name__", None) or str(kind))

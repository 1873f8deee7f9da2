"""Steps that are patterns themselves: a question that is answered by a schema, or put to the vote."""

from __future__ import annotations

from typing import Any, Protocol

from flyball.core.errors import UserError
from flyball.core.messages import Content
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.plan.handling import StepHandler
from flyball.orchestrate.plan.ir import StepInput
from flyball.orchestrate.plan.steps import PlanStep, mismatch


class _Answer(Protocol):
    @property
    def content(self) -> str: ...


class Answering(Protocol):
    """A pattern that answers a question: SpecializedLoop and RedundantLoop are such."""

    async def call(self, prompt: Content, /, **options: Any) -> _Answer:
        """Answer a question."""
        ...


def pattern_handler(pattern: Answering | None) -> StepHandler:
    """Runs a pattern under the plan: takes the question as text, gives the content of the answer."""
    if pattern is not None and not callable(getattr(pattern, "call", None)):
        raise UserError(f"pattern_handler takes something with call(prompt), not {pattern!r}")

    async def call(context: StepContext[Any], step: PlanStep) -> str:
        if pattern is None:
            raise UserError("pattern handler: nil pattern")
        given = StepInput.of(step.input)
        if not given.text or not (isinstance(step.input, str) or given.messages):
            raise mismatch("string", step.input)
        return (await pattern.call(given.text, **context.under())).content

    return call

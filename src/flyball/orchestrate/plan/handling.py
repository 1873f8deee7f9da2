"""Handlers: what is done for each type of step. Any function of a step is one.

    async def summarize(step: PlanStep) -> str:
        return shortened(step.input_as(str))

    executor = PlanExecutor({"summarize": summarize, "infer": infer_handler(engine)})

A handler takes a step whose input is set, `(step)` or `(ctx, step)`, and gives its output, or the step with
it. It may say which types it takes and gives by attributes of these names, and by `agent` which agent it
runs: where that may come to wait for approval, and nobody could give it, the plan is refused before it
begins. What it gives must have a JSON form.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from flyball.orchestrate.agent import Agent
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.flow.functions import Function, function_of
from flyball.orchestrate.plan.steps import PlanStep

StepHandler: TypeAlias = (
    Callable[[PlanStep], Any | Awaitable[Any]] | Callable[[StepContext[Any], PlanStep], Any | Awaitable[Any]]
)
"""What does a step: `(step)` or `(ctx, step)`, perhaps async. It gives an output, or the step with one."""


class BoundStep:
    """A step with its handler, as a function of the step's input."""

    __slots__ = ("_handler", "_step")

    def __init__(self, step: PlanStep, handler: Function) -> None:
        self._step = step
        self._handler = handler

    async def __call__(self, context: StepContext[Any], value: Any) -> Any:
        """Handle the step with an input."""
        step = self._step
        given = PlanStep(step.name, step.type, value, retries=step.retries, timeout=step.timeout)
        output = await self._handler(context, given)
        return output.output if isinstance(output, PlanStep) else output


def handler_of(given: Any, kind: str) -> Function:
    """Read a handler.

    Raises:
        UserError: it is no function of a step.
    """
    read = function_of(given, f"the handler of {kind!r}")
    gives = getattr(given, "gives", Any if read.gives is PlanStep else read.gives)
    agent = getattr(given, "agent", None)
    if not isinstance(agent, Agent):
        agent = None  # an attribute of that name may be something else of theirs
    takes = getattr(given, "takes", Any)
    return Function(read.call, read.name, read.takes_context, takes, gives, agent)

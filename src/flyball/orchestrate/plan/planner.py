"""Planners: who makes plans. Running them is somebody else's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

from msgspec.structs import replace

from flyball.core.errors import PlanRejected, UserError
from flyball.core.settings import STRUCTURED, ModelSettings
from flyball.inference.engine import Engine
from flyball.inference.registry import resolve_engine
from flyball.inference.request import NO_SETTINGS
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.contracts import SystemRequest
from flyball.orchestrate.contracts.conversation import conversation
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.patterns.phases import answer_mode
from flyball.orchestrate.plan.forms import plan_from_json
from flyball.orchestrate.plan.steps import ExecutionPlan, PlanTrace
from flyball.orchestrate.schema_output import SchemaOutput


@runtime_checkable
class Planner(Protocol):
    """Makes a plan for a request. What it gives is recorded: for one request it is asked once."""

    async def create_plan(self, context: StepContext[Any], request: SystemRequest) -> ExecutionPlan:
        """The plan. What has to be asked of a model for it is run by the context, and so is recorded, too."""
        ...


class StaticPlanner:
    """Looks a plan up.

    Args:
        plans: the plans by their names.
        key: which of them a request gets. Without it, the one that its metadata names as `plan`.
        default: the plan of all other requests; without it, they are refused.
    """

    def __init__(
        self,
        plans: Mapping[str, ExecutionPlan],
        *,
        key: Callable[[SystemRequest], str] | None = None,
        default: ExecutionPlan | None = None,
    ) -> None:
        for name, plan in plans.items():
            if not isinstance(plan, ExecutionPlan):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserError(f"the plan {name!r} should be an ExecutionPlan, not {plan!r}")
        self._plans = dict(plans)
        self._key = key or _named
        self._default = default

    async def create_plan(self, context: StepContext[Any], request: SystemRequest) -> ExecutionPlan:
        """See `Planner.create_plan`.

        Raises:
            PlanRejected: there is none for the request.
        """
        name = self._key(request)
        plan = self._plans.get(name, self._default)
        if plan is None:
            known = ", ".join(self._plans) or "none"
            raise PlanRejected(f"there is no plan {name!r}; there are: {known}", limit="plans", name=name)
        trace = plan.trace or PlanTrace(f"static:{name}" if name in self._plans else "static")
        return replace(plan, trace=trace)


def _named(request: SystemRequest) -> str:
    return str((request.metadata or {}).get("plan", ""))


class ModelPlanner:
    """Asks a model for a plan: steps of types that it is told, one after the other.

    Args:
        model: an engine or a model string.
        step_types: what a step of each type does, in words for the model.
        max_steps: how many steps a plan has at most.
        instructions: what the model is told besides.
        retries: how often it is asked again if what it gives is no plan.
        settings: laid over those of structured answers: temperature 0.3, no thinking.
    """

    def __init__(
        self,
        model: Engine | str,
        step_types: Mapping[str, str],
        *,
        max_steps: int = 6,
        instructions: str = "",
        retries: int = 2,
        settings: ModelSettings = NO_SETTINGS,
    ) -> None:
        if not step_types:
            raise UserError("ModelPlanner needs the types of steps that a plan may have, with what they do")
        engine = resolve_engine(model)
        self.agent = Agent(
            engine,
            output=SchemaOutput(_schema(tuple(step_types), max_steps)),
            instructions="\n\n".join(filter(None, [_told(step_types, max_steps), instructions])),
            settings=settings.over(STRUCTURED),
            output_mode=answer_mode(engine, None),
            retries=retries,
            name="planner",
        )

    async def create_plan(self, context: StepContext[Any], request: SystemRequest) -> ExecutionPlan:
        """See `Planner.create_plan`."""
        talk = conversation(request.messages)
        result = await context.run(self.agent, talk.prompt, messages=talk.history)
        given: dict[str, Any] = result.output
        plan = plan_from_json({"steps": given["steps"]})
        return replace(plan, trace=PlanTrace("model", str(given.get("rationale", ""))))


def _schema(types: tuple[str, ...], max_steps: int) -> dict[str, Any]:
    step: dict[str, Any] = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "maxLength": 40},
            "type": {"enum": list(types)},
            "input": {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 400}]},
        },
        "required": ["name", "type", "input"],
        "additionalProperties": False,
    }
    return {
        "type": "object",
        "properties": {
            "rationale": {"type": "string", "maxLength": 200},
            "steps": {"type": "array", "items": step, "minItems": 1, "maxItems": max_steps},
        },
        "required": ["rationale", "steps"],
        "additionalProperties": False,
    }


def _told(step_types: Mapping[str, str], max_steps: int) -> str:
    types = "\n".join([f"- {name}: {what}" for name, what in step_types.items()])
    return (
        f"Make a plan for what the user asks: at most {max_steps} steps, and as few as will do. Each step is "
        f"of one of these types:\n{types}\n"
        "A step whose input is null takes what the step before it gave. The first step needs an input of its "
        "own. Do not answer the question yourself: say which steps lead to the answer."
    )

"""Steps that ask a model: once, or as an agent with its tools. Each is a loop of its own under the plan."""

from __future__ import annotations

from typing import Any

from flyball.core.errors import NoEngine, UserError
from flyball.core.messages import Message, Role
from flyball.inference.engine import Engine
from flyball.inference.request import Request, Result
from flyball.orchestrate.agent import Agent
from flyball.orchestrate.contracts.asked import asked_in, conversation_in
from flyball.orchestrate.flow.doing import StepContext
from flyball.orchestrate.patterns.failing import by_category
from flyball.orchestrate.plan.handling import StepHandler
from flyball.orchestrate.plan.ir import StepInput
from flyball.orchestrate.plan.steps import PlanStep, mismatch
from flyball.orchestrate.schema_output import SchemaOutput


def infer_handler(engine: Engine | str | None, **options: Any) -> StepHandler:
    """Asks a model once, in a loop of its own under the plan; gives its `Result`.

    Takes a `Request` (without tools), text, messages, or what was found: then the question is what the plan
    was given, or what was found for. `options` are those of an `Agent`.
    """
    chosen: Any = {"name": "infer", **options}
    agent: Agent[Any, Any] | None = None if engine is None else Agent(engine, **chosen)

    async def infer(context: StepContext[Any], step: PlanStep) -> Result:
        if agent is None:
            raise NoEngine("infer handler: nil engine")
        asked, changes = agent, _asked_for(step.input)
        if isinstance(step.input, Request):
            asked = agent.clone(**changes)
        prompt, messages = question(step, context)
        async with by_category(asked.config.output):
            run = await context.run(asked, prompt, **({"messages": messages} if messages else {}))
        said = next(message for message in reversed(run.messages) if message.role is Role.ASSISTANT)
        return Result(said)

    infer.agent = agent  # pyright: ignore[reportFunctionMemberAccess] - see `plan.handling`
    return infer


def agent_handler(agent: Agent[Any, Any]) -> StepHandler:
    """Runs an agent, with its tools and its type of output, in a loop under the plan; gives its output."""
    if not isinstance(agent, Agent):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(f"agent_handler takes an agent, not {agent!r}")

    async def ask(context: StepContext[Any], step: PlanStep) -> Any:
        prompt, messages = question(step, context)
        async with by_category(agent.config.output):
            run = await context.run(agent, prompt, **({"messages": messages} if messages else {}))
        return run.output

    ask.agent = agent  # pyright: ignore[reportFunctionMemberAccess] - see `plan.handling`
    return ask


def question(step: PlanStep, context: StepContext[Any]) -> tuple[Any, tuple[Message, ...]]:
    """What a model is asked for a step's input, and the conversation before it.

    What was found for a question stands before it. The conversation is the step's own, if it is given one,
    or that of the request which the plan is for; whose question is asked as the user put it, with all parts.
    """
    given = StepInput.of(step.input)
    if given.messages and given.messages[-1].role is Role.USER:
        return given.messages[-1].parts, given.messages[:-1]
    talk = conversation_in(context.flow_input)
    before = () if talk is None else talk.history
    if given.candidates or (given.messages and given.messages[-1].role is Role.SYSTEM):
        found = given.messages[-1].text if given.messages else given.text
        return f"{found}\n\n{given.query or plan_question(context)}", before
    if step.input is None:
        raise mismatch("string", step.input)
    if talk is not None and given.text == plan_question(context):
        return talk.prompt, before
    return given.text, before


def plan_question(context: StepContext[Any]) -> str:
    """What the plan was given to answer: its input as text, or the last that the user said in a request."""
    return asked_in(context.flow_input)


def _asked_for(given: Any) -> dict[str, Any]:
    """What a request asks of the model besides its messages."""
    if not isinstance(given, Request):
        return {}
    if given.tools:
        raise mismatch("Request without tools", given)
    changes: dict[str, Any] = {"settings": given.settings, "grammar": given.grammar}
    if given.output is not None:
        changes["output"] = SchemaOutput(given.output.schema)
    return changes

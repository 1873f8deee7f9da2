"""Runs of agents with features, as a table: they join `scenarios.SCENARIOS`, and so every suite that has it.

That is the one suite which shows that each feature works the same in every kind of run, under every driver,
and wherever a run is cut off, resumed, replayed or forked. What is made here keeps nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel

from flyball import (
    Agent,
    ContentFilter,
    CostTracker,
    InputGuardrail,
    InterceptResult,
    MaxCost,
    MaxPromptLength,
    MaxRunDuration,
    MaxTurns,
    MessageInterceptor,
    ModelPricing,
    RedactPII,
    ResponseContains,
    ResponseInterceptor,
    RunCondition,
    RunContext,
    TextContains,
    ToolCallCount,
    TurnGuardrail,
    Usage,
    tool,
)
from flyball.core.messages import Image, Message, Role, Text, ToolCall, assistant, user
from flyball.inference.answers import tool_call as call
from tests.orchestrate.identity_scenarios import IDENTITIES
from tests.orchestrate.knowledge_scenarios import KNOWLEDGE
from tests.orchestrate.memory_scenarios import MEMORY
from tests.orchestrate.middleware_scenarios import MIDDLEWARE
from tests.orchestrate.models import Script
from tests.orchestrate.output_scenarios import OUTPUTS
from tests.orchestrate.prompt_scenarios import PROMPTS
from tests.orchestrate.run_scenarios import RUNS
from tests.orchestrate.scenario import Scenario
from tests.orchestrate.tree_scenarios import TREES
from tests.orchestrate.validation_scenarios import VALIDATION
from tests.orchestrate.watching_scenarios import WATCHED


class Town(BaseModel):
    name: str


@tool
async def look_up(name: str) -> str:
    """Look a town up."""
    return f"{name} has 9 people, call 555-0199"


@InputGuardrail
async def politely(ctx: RunContext[Any], prompt: str) -> str:
    return f"Please, {ctx.run_step}: {prompt}"


@InputGuardrail
def never_on_sundays(_: RunContext[Any], prompt: str) -> None:
    raise ValueError(f"not today: {prompt}")


@TurnGuardrail
async def nothing_secret(_: RunContext[Any], messages: Sequence[Message]) -> None:
    if any("555-" in message.text for message in messages if message.role != "tool"):
        raise ValueError("a number is about to be sent")


@MessageInterceptor
def only_the_last_two(_: RunContext[Any], messages: Sequence[Message]) -> InterceptResult:
    return InterceptResult.modify([messages[1], *messages[-2:]] if len(messages) > 3 else messages, "window")


@MessageInterceptor
def not_in_the_first_turn(ctx: RunContext[Any], _: Sequence[Message]) -> InterceptResult | None:
    return InterceptResult.drop("too early", skip=True) if ctx.run_step == 1 else None


@MessageInterceptor
def nothing_leaves(_: RunContext[Any], messages: Sequence[Message]) -> InterceptResult:
    return InterceptResult.drop(f"{len(messages)} messages stay here")


@MessageInterceptor
def broken_history(_: RunContext[Any], messages: Sequence[Message]) -> InterceptResult:
    return InterceptResult.modify([assistant("I begin.")])


@ResponseInterceptor
def shouted(_: RunContext[Any], message: Message) -> InterceptResult | None:
    if not message.text:
        return None
    loud = [replace(part, text=part.text.upper()) if type(part) is Text else part for part in message.parts]
    return InterceptResult.modify(replace(message, parts=tuple(loud)), "loud")


@ResponseInterceptor
async def no_swearing(_: RunContext[Any], message: Message) -> InterceptResult | None:
    return InterceptResult.drop("language!") if "damn" in message.text.lower() else None


@RunCondition
def after_three(ctx: RunContext[Any], _: Message) -> bool:
    return ctx.usage.requests >= 3


def enough(_: RunContext[Any], message: Message) -> str:
    return f"{len(message.tool_calls)} calls are enough"


def asks_nothing(message: Message) -> bool:
    return not message.tool_calls


LOOKING = [call("look_up", {"name": name}) for name in ("Oslo", "Rome", "Bonn", "Lima")]


def saying_so(number: int) -> Message:
    """The model says something and asks for a tool at once."""
    return replace(assistant("I look it up."), parts=(Text("I look it up."), LOOKING[number]))


GUARDRAILS = (
    Scenario(
        "guardrails that let through, and one that changes the prompt",
        lambda: Agent(
            Script(LOOKING[0], "nine"),
            tools=[look_up],
            features=[ContentFilter("bomb"), politely, MaxPromptLength(100), MaxTurns(2)],
        ),
        "nine",
        prompt=["How many?", Image("https://example.org/oslo.png"), "In Oslo?"],
    ),
    Scenario(
        "a guardrail looks at a history without a prompt",
        lambda: Agent(Script("nine"), features=[politely], instructions="Be brief."),
        "nine",
        prompt=None,
        options={"messages": [user("How many?")]},
    ),
    Scenario(
        "a guardrail refuses the prompt",
        lambda: Agent(Script("never"), features=[politely, never_on_sundays]),
        code="VALIDATION_RULE_FAILED",
    ),
    Scenario(
        "a turn too many",
        lambda: Agent(Script(*LOOKING), tools=[look_up], features=[MaxTurns(2)]),
        code="VALIDATION_RULE_FAILED",
    ),
)

INTERCEPTORS = (
    Scenario(
        "what the user says is redacted over several turns",
        lambda: Agent(
            Script(*LOOKING[:3], "done"),
            tools=[look_up],
            instructions="Be brief.",
            features=[RedactPII(r"555-\d{4}", r"\1[number]"), nothing_secret],
        ),
        "done",
        prompt="Call 555-0100, or 555-0101.",
    ),
    Scenario(
        "a window over the history",
        lambda: Agent(
            Script(*LOOKING[:3], "done"),
            tools=[look_up],
            instructions="Be brief.",
            features=[RedactPII("go", "come"), only_the_last_two],
        ),
        "done",
    ),
    Scenario(
        "a request that is skipped",
        lambda: Agent(Script("never", "late"), features=[not_in_the_first_turn]),
        "late",
    ),
    Scenario(
        "a request that is dropped",
        lambda: Agent(Script("never"), features=[nothing_leaves]),
        code="VALIDATION_RULE_FAILED",
    ),
    Scenario(
        "an interceptor that gives what no provider takes",
        lambda: Agent(Script("never"), features=[broken_history]),
        code="CONFIG_INVALID_MESSAGE",
    ),
    Scenario(
        "answers that are dropped and changed",
        lambda: Agent(
            Script("Damn!", saying_so(0), "well"), tools=[look_up], features=[no_swearing, shouted]
        ),
        "WELL",
    ),
    Scenario(
        "an output by a tool, reviewed",
        lambda: Agent(
            Script(call("final_result", {}), call("final_result", {"name": "Oslo"})),
            output=Town,
            output_mode="tool",
            features=[shouted, after_three],
        ),
        Town(name="Oslo"),
    ),
)

CONDITIONS = (
    Scenario(
        "a condition that is never met",
        lambda: Agent(
            Script(LOOKING[0], "nine"),
            tools=[look_up],
            features=[(MaxRunDuration(3600) & TextContains("nine")) | ToolCallCount(9)],
        ),
        "nine",
    ),
    Scenario(
        "a condition is met by text beside a call",
        lambda: Agent(
            Script(LOOKING[0], saying_so(1), "never"),
            tools=[look_up],
            features=[TextContains("look") & ToolCallCount(1)],
        ),
        "I look it up.",
    ),
    Scenario(
        "a condition is met by an answer that is none",
        lambda: Agent(Script(*LOOKING), tools=[look_up], features=[after_three]),
        code="ORCHESTRATION_RUN_CONDITION",
    ),
    Scenario(
        "a condition is met by an output",
        lambda: Agent(
            Script([LOOKING[0], call("final_result", {"name": "Oslo"})]),
            output=Town,
            output_mode="tool",
            tools=[look_up],
            end_strategy="exhaustive",
            features=[RunCondition(enough, "enough")],
        ),
        Town(name="Oslo"),
    ),
    Scenario(
        "a condition is met by what is no output",
        lambda: Agent(
            Script("Oslo, I think"),
            output=Town,
            output_mode="native",
            features=[ResponseContains(asks_nothing)],
        ),
        code="ORCHESTRATION_RUN_CONDITION",
    ),
)


def paying(*answers: Any, most: int, model: str = "test", **how: bool) -> Agent[Any, str]:
    """Each answer costs 5; those of other models nobody knows what."""
    tracker = CostTracker({"test": ModelPricing(1, 2)})
    parts = [one if isinstance(one, ToolCall) else Text(one) for one in answers]
    script = Script(*[Message(Role.ASSISTANT, (part,), usage=Usage(3, 1), model=model) for part in parts])
    return Agent(script, tools=[look_up], features=[tracker, MaxCost(most, tracker, **how)])


COSTS = (
    Scenario("a run within its budget", lambda: paying(*LOOKING[:2], "nine", most=15), "nine"),
    Scenario(
        "a run that costs too much",
        lambda: paying(*LOOKING[:2], "never", most=9),
        code="ORCHESTRATION_RUN_CONDITION",
    ),
    Scenario("an answer that costs too much", lambda: paying(LOOKING[0], "nine", most=9), "nine"),
    Scenario(
        "a budget, and a price that nobody knows",
        lambda: paying(LOOKING[0], "never", most=9, model="homemade"),
        code="ORCHESTRATION_RUN_CONDITION",
    ),
    Scenario(
        "a budget that does not mind",
        lambda: paying(LOOKING[0], "nine", most=0, model="homemade", allow_unknown=True),
        "nine",
    ),
)

FEATURES = (
    *GUARDRAILS,
    *INTERCEPTORS,
    *CONDITIONS,
    *COSTS,
    *OUTPUTS,
    *RUNS,
    *MIDDLEWARE,
    *PROMPTS,
    *KNOWLEDGE,
    *MEMORY,
    *WATCHED,
    *TREES,
    *VALIDATION,
    *IDENTITIES,
)

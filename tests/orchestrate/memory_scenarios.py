"""Runs of agents that send less than was said, as a table. What is made here keeps nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from flyball import (
    Agent,
    AutoContext,
    ChangeRequest,
    ContextOverflow,
    HistoryProcessor,
    Limits,
    NormalizeHistory,
    RedactPII,
    Request,
    Result,
    RunContext,
    SlidingWindow,
    SummaryMemory,
    TokenBudget,
    Usage,
    UsageLimits,
    estimate_tokens,
    tool,
)
from flyball.core.errors import ContextExceeded, EngineError
from flyball.core.messages import FinishReason, Image, Message, Role, Text, assistant, user
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario


@tool
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: " + "many words " * 40


@tool
async def show(page: int) -> list[Any]:
    """Show a page."""
    return [f"page {page}", Image(f"https://example.org/{page}.png")]


READING = [call("read", {"page": page}) for page in range(1, 9)]
TALK: list[Message] = [
    user("How are you?"),
    assistant("Well, " * 100),
    user("Really?"),
    assistant("Yes. " * 100),
]


class Summing(Script):
    """Sums up, in whatever turn it is asked, and knows no other thing."""

    def _result(self, request: Request) -> Result:
        assert request.id.split("/")[-2] == "compact"
        return self.result(request, self.answers[0])


class Both(Script):
    """Answers by the turn, and sums up when it is asked to."""

    def _result(self, request: Request) -> Result:
        if request.id.split("/")[-2] == "compact":
            return self.result(request, f"{len(request.messages[-1].text)} characters were said.")
        return super()._result(request)


class Narrow(Script):
    """Takes no more than so many tokens, and says so."""

    def __init__(self, window: int, *answers: Answer, told: bool = True) -> None:
        super().__init__(*answers)
        self.window = window
        self.told = told

    def _result(self, request: Request) -> Result:
        tokens = estimate_tokens(request.messages)
        if tokens > self.window:
            details: dict[str, Any] = (
                {"prompt_tokens": tokens, "context_window": self.window} if self.told else {}
            )
            raise ContextExceeded("too much", **details)
        turn = int(request.id.split("/")[-3])
        return self.result(request, self.answers[turn - 1])


@HistoryProcessor
async def the_last_three(ctx: RunContext[Any], messages: Sequence[Message]) -> Sequence[Message]:
    return messages[-3:] if ctx.run_step > 1 else messages


@HistoryProcessor
def politely(messages: Sequence[Message]) -> list[Message]:
    return [
        replace(message, parts=(Text("Please."), *message.parts)) if message.role is Role.USER else message
        for message in messages
    ]


@HistoryProcessor
def nothing_at_all(_: Sequence[Message]) -> list[Message]:
    return []


@HistoryProcessor
def broken(_: RunContext[Any], messages: Sequence[Message]) -> Sequence[Message]:
    raise LookupError(f"cannot look at {len(messages)} messages")


@ChangeRequest
def in_short(request: Request) -> Request:
    return replace(request, settings=replace(request.settings, max_tokens=100))


def reader(summary: Answer, turns: int = 8, most: int = 300, **options: Any) -> Agent[Any, str]:
    """Reads page after page, and has its reading summed up again and again."""
    return Agent(
        Script(*READING[:turns], "the end"),
        tools=[read],
        instructions="Read it all.",
        features=[AutoContext(most, 2, Summing(summary, name="summing")), *options.pop("features", ())],
        **options,
    )


def said(text: str, **more: Any) -> Message:
    return Message(Role.ASSISTANT, (Text(text),) if text else (), **more)


MEMORY = (
    Scenario(
        "processors that slice and add",
        lambda: Agent(
            Script(*READING[:4], "the end"),
            tools=[read],
            instructions="Read it.",
            features=[the_last_three, politely, RedactPII("go", "come")],
        ),
        "the end",
    ),
    Scenario(
        "windows over what was said, without its images",
        lambda: Agent(
            Script(*READING[:2], call("show", {"page": 3}), *READING[3:5], "the end"),
            tools=[read, show],
            instructions="Read it.",
            features=[NormalizeHistory(), SlidingWindow(3), TokenBudget(300)],
        ),
        "the end",
        prompt=["Read this.", Image("https://example.org/cover.png")],
        options={"messages": [user(Image("https://example.org/a.png")), assistant("A cover.")]},
    ),
    Scenario(
        "a processor that leaves nothing",
        lambda: Agent(Script("never"), features=[nothing_at_all]),
        code="CONFIG_INVALID_MESSAGE",
    ),
    Scenario(
        "a processor that fails",
        lambda: Agent(Script("never"), features=[broken]),
        code="VALIDATION_RULE_FAILED",
    ),
    Scenario("summed up again and again", lambda: reader("It is about words."), "the end"),
    Scenario(
        "summed up, with others who change what is sent",
        lambda: reader("It is about words.", features=[politely, RedactPII("words", "***"), in_short]),
        "the end",
    ),
    Scenario(
        "summed up by the agent's own model, in the first turn",
        lambda: Agent(Both("Fine."), features=[AutoContext(100, 1)], instructions="Be nice."),
        "Fine.",
        options={"messages": TALK},
    ),
    Scenario(
        "summed up by the number of messages",
        lambda: Agent(Both(*READING[:6], "the end"), tools=[read], features=[SummaryMemory(max_messages=5)]),
        "the end",
    ),
    Scenario(
        "an empty summary, and one that was cut off",
        lambda: reader(
            lambda request: (
                said("Too lo", finish_reason=FinishReason.LENGTH)
                if request.id.split("/")[-3] == "5"
                else said("")
            )
        ),
        "the end",
    ),
    Scenario("a summary that fails", lambda: reader(EngineError("gone")), "the end"),
    Scenario(
        "no room for a summary",
        lambda: reader("never", turns=4, most=400, limits=Limits(usage=UsageLimits(request_limit=5))),
        "the end",
    ),
    Scenario(
        "a summary that is one call too many for the run",
        lambda: reader("Words.", turns=4, limits=Limits(usage=UsageLimits(request_limit=5))),
        code="ORCHESTRATION_USAGE_LIMIT",
    ),
    Scenario(
        "a summary that costs too many tokens",
        lambda: reader(
            said("Words.", usage=Usage(500, 500)), limits=Limits(usage=UsageLimits(total_tokens_limit=999))
        ),
        code="ORCHESTRATION_USAGE_LIMIT",
    ),
    Scenario(
        "too much is sent, and less is sent instead",
        lambda: Agent(
            Narrow(300, *READING, "the end"),
            tools=[read],
            instructions="Read it.",
            features=[ContextOverflow(), in_short],
        ),
        "the end",
    ),
    Scenario(
        "too much is sent, and nobody says by how much",
        lambda: Agent(
            Narrow(300, *READING, "the end", told=False), tools=[read], features=[ContextOverflow(5)]
        ),
        "the end",
    ),
    Scenario(
        "too much is sent, whatever is left out",
        lambda: Agent(Narrow(3, "never"), features=[ContextOverflow()]),
        code="INFERENCE_CONTEXT_EXCEEDED",
        prompt="many words " * 20,
    ),
)

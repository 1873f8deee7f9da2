"""Runs of agents with middleware, as a table. All of it does the same on both sides, and keeps nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from msgspec.structs import replace
from pydantic import BaseModel

from flyball import (
    Agent,
    ChangeRequest,
    DualMiddleware,
    Logging,
    MaxTokens,
    Middleware,
    ModelRepair,
    ModelSettings,
    RedactPII,
    Request,
    RequestMiddleware,
    Result,
    Timing,
    ToolChoice,
    tool,
)
from flyball.core.messages import Message, Text, ToolResult, assistant, system, user
from flyball.core.tools import ToolDefinition
from flyball.inference.answers import tool_call as call
from flyball.inference.cut import events_of
from flyball.inference.middleware.kinds import CallNext, StreamNext
from flyball.inference.stream import StreamEvent, TextDelta, collect
from tests.orchestrate.models import Script, turn_of
from tests.orchestrate.scenario import Scenario


class Person(BaseModel):
    name: str


@tool
async def find(name: str) -> str:
    """Find somebody."""
    return f"{name}: 555-0199"


FINDING = [call("find", {"name": name}) for name in ("Ann", "Bob", "Cid", "Dan")]


def without_numbers(message: Message) -> Message:
    parts = [
        replace(part, text=part.text.replace("555-", "***-"))
        if isinstance(part, Text)
        else replace(part, content=str(part.content).replace("555-", "***-"))
        if isinstance(part, ToolResult)
        else part
        for part in message.parts
    ]
    return message if parts == list(message.parts) else replace(message, parts=tuple(parts))


@ChangeRequest
def redacted(request: Request) -> Request:
    """Everything that was ever said, each time anew: also what the tools said."""
    return replace(request, messages=tuple([without_numbers(message) for message in request.messages]))


@ChangeRequest
async def hurried(request: Request) -> Request:
    """Another beginning, other tools, another choice, each of them in some turns only."""
    turn = turn_of(request)
    if turn == 1:
        return request
    more = (*request.tools[1:], ToolDefinition("hurry", {"type": "object"}), *request.tools[:1])
    return replace(
        request,
        messages=(
            system(f"Hurry, it is turn {turn}."),
            *[one for one in request.messages if one.role != "system"],
        ),
        tools=more,
        tool_choice=ToolChoice("none") if turn == 3 else request.tool_choice,
        settings=ModelSettings(temperature=0.5, options={"fast": True}),
    )


@ChangeRequest
def a_window(request: Request) -> Request:
    """The instructions, the prompt and the last two messages, in every other turn."""
    messages = request.messages
    if len(messages) < 5 or turn_of(request) % 2:
        return request
    return replace(request, messages=(*messages[:2], *messages[-2:]))


@ChangeRequest
def in_rhyme(request: Request) -> Request:
    return replace(request, grammar='root ::= "yes"', allows_text=True)


@RequestMiddleware
async def aloud(request: Request, call_next: CallNext) -> Result:
    result = await call_next(request)
    parts = [
        replace(part, text=part.text.upper()) if isinstance(part, Text) else part
        for part in result.message.parts
    ]
    return Result(replace(result.message, parts=tuple(parts)), result.request_id)


@aloud.with_stream
async def shouting(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
    async for piece in call_next(request):
        yield replace(piece, text=piece.text.upper()) if isinstance(piece, TextDelta) else piece


class Remembered(Middleware):
    """Knows the answer to the second turn: the model is not asked."""

    name = "remembered"
    answer = replace(assistant("I remember."), model="memory")

    async def request(self, request: Request, call_next: CallNext) -> Result:
        return Result(self.answer) if turn_of(request) == 2 else await call_next(request)

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        if turn_of(request) == 2:
            for event in events_of(self.answer):
                yield event
            return
        async for piece in call_next(request):
            yield piece


class Twice(Middleware):
    """Asks twice, the second time for more; the later answer counts."""

    name = "twice"

    async def request(self, request: Request, call_next: CallNext) -> Result:
        await call_next(request)
        await call_next(request)
        return await call_next(self.louder(request))

    async def stream(self, request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
        await collect(call_next(request))
        await collect(call_next(request))
        async for piece in call_next(self.louder(request)):
            yield piece

    def louder(self, request: Request) -> Request:
        more = (*request.messages[:1], assistant("Hm."), user("Once more!"), *request.messages[1:])
        return replace(request, id=f"{request.id}-louder", messages=more)


async def refusing(request: Request, call_next: CallNext) -> Result:
    if turn_of(request) == 2:
        raise ValueError("not a second time")
    return await call_next(request)


async def refusing_a_stream(request: Request, call_next: StreamNext) -> AsyncGenerator[StreamEvent]:
    if turn_of(request) == 2:
        raise ValueError("not a second time")
    async for piece in call_next(request):
        yield piece


def nothing(_: object) -> None:
    pass


class Rough(Script):
    """Answers by the turn, and takes any request for it."""

    def _result(self, request: Request) -> Result:
        turn = int(request.id.split("/")[-3])
        return self.result(request, self.answers[turn - 1])


MIDDLEWARE = (
    Scenario(
        "middleware that looks on",
        lambda: Agent(Script(FINDING[0], "done"), tools=[find], features=[Logging(nothing), Timing(nothing)]),
        "done",
    ),
    Scenario(
        "middleware that changes old and new messages",
        lambda: Agent(
            Script(*FINDING, "done"),
            tools=[find],
            instructions="Be brief.",
            settings=ModelSettings(max_tokens=5000),
            features=[MaxTokens(100), redacted, RedactPII("Ann", "A.")],
        ),
        "done",
        prompt="I am Ann, 555-0100.",
    ),
    Scenario(
        "middleware that changes something else each time",
        lambda: Agent(
            Script(*FINDING, "done"),
            tools=[find],
            instructions="Be brief.",
            features=[a_window, hurried, redacted, in_rhyme],
        ),
        "done",
        prompt="555-0100?",
    ),
    Scenario(
        "middleware that changes the answer",
        lambda: Agent(Script(FINDING[0], "done", chunk=2), tools=[find], features=[shouting]),
        "DONE",
    ),
    Scenario(
        "middleware that answers in the model's place",
        lambda: Agent(Script(FINDING[0], "never"), tools=[find], features=[redacted, Remembered(), hurried]),
        "I remember.",
        prompt="555-0100?",
    ),
    Scenario(
        "middleware that asks several times",
        lambda: Agent(Rough(FINDING[0], FINDING[1], "done"), tools=[find], features=[Twice(), redacted]),
        "done",
        prompt="555-0100?",
    ),
    Scenario(
        "middleware around the model that puts an answer right",
        lambda: Agent(
            Script(FINDING[0], "Ann, 555-0199?", '{"name": "Bob"}'),
            tools=[find],
            output=Person,
            output_mode="native",
            features=[
                ModelRepair(Script('{"nam": "Ann"}', first=2, name="mender")),
                redacted,
                MaxTokens(50),
            ],
        ),
        Person(name="Bob"),
        prompt="555-0100?",
    ),
    Scenario(
        "middleware that fails",
        lambda: Agent(
            Script(FINDING[0], "never"),
            tools=[find],
            features=[redacted, DualMiddleware(refusing, refusing_a_stream)],
        ),
        code="INFERENCE_MIDDLEWARE_FAILED",
        prompt="555-0100?",
    ),
    Scenario(
        "a model that fails behind middleware",
        lambda: Agent(Script(FINDING[0], OSError("gone")), tools=[find], features=[redacted, MaxTokens(5)]),
        code="INFERENCE_ENGINE_ERROR",
        prompt="555-0100?",
    ),
)

"""Runs of agents with knowledge, as a table: they join `scenarios.SCENARIOS`. Nothing here keeps anything."""

from __future__ import annotations

from typing import Any

from flyball import (
    Agent,
    ContentFilter,
    InputGuardrail,
    Knowledge,
    RedactPII,
    RunContext,
    StaticKnowledgeBase,
    TurnGuardrail,
    tool,
)
from flyball.context.builder import ContextBuilder
from flyball.context.chunk import Chunk
from flyball.context.in_memory import InMemoryRetriever
from flyball.core.messages import Image, assistant, system, user
from flyball.inference.answers import tool_call as call
from tests.orchestrate.models import Script
from tests.orchestrate.scenario import Scenario


class Echo:
    """Knows what it is asked."""

    async def retrieve(self, query: str) -> str:
        return f"about {query!r}"

    async def store(self, content: str) -> None:
        assert content


class Broken:
    """Cannot be reached."""

    def retrieve(self, query: str) -> str:
        raise ConnectionError("the library is closed")

    async def store(self, content: str) -> None:
        raise ConnectionError("the library is closed")


@tool
async def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@InputGuardrail
def politely(_: RunContext[Any], prompt: str) -> str:
    return f"Please: {prompt}"


@TurnGuardrail
def no_number_leaves(_: RunContext[Any], messages: Any) -> None:
    """What is known stands before what the user says, when interceptors look at it."""
    assert "[number]" in messages[1].parts[0].text
    assert "555" not in messages[1].text


NOTES = [Chunk("Tea is at four.", "tea.md", metadata={"page": 1}), Chunk("Numbers add up.", "sums.md")]
ADDING = [call("add", {"x": number, "y": number}) for number in range(3)]

KNOWLEDGE = (
    Scenario(
        "knowledge of a run, stored at its end",
        lambda: Agent(
            Script(ADDING[0], "zero"),
            tools=[add],
            instructions="Be brief.",
            features=[politely, Knowledge(Echo(), auto_store=True), Knowledge(StaticKnowledgeBase("more"))],
        ),
        "zero",
        prompt=["What is it?", Image("https://example.org/oslo.png")],
    ),
    Scenario(
        "knowledge of a run that goes on from another",
        lambda: Agent(Script("two"), features=[Knowledge(Echo())]),
        "two",
        prompt="And then?",
        options={
            "messages": [system("Old.", "[Knowledge Context] stale"), user("One?"), assistant("one")],
        },
    ),
    Scenario(
        "knowledge of each turn",
        lambda: Agent(
            Script(*ADDING, "done"),
            tools=[add],
            instructions="Be brief.",
            features=[
                Knowledge(Echo(), when="turn", placement="before_user"),
                Knowledge(Echo(), when="turn", prefix="", auto_store=True),
                RedactPII("555", "[number]"),
                no_number_leaves,
            ],
        ),
        "done",
        prompt="Call 555.",
    ),
    Scenario(
        "context of a builder, of each turn and of the run",
        lambda: Agent(
            Script(*ADDING[:2], "done"),
            tools=[add],
            features=[
                Knowledge(ContextBuilder(InMemoryRetriever(NOTES), 2)),
                Knowledge(ContextBuilder(InMemoryRetriever(NOTES), 1), when="run"),
            ],
        ),
        "done",
        prompt="Add tea to the numbers.",
    ),
    Scenario(
        "knowledge of each turn, where nothing stood",
        lambda: Agent(Script(*ADDING[:2], "done"), tools=[add], features=[Knowledge(Echo(), when="turn")]),
        "done",
    ),
    Scenario(
        "knowledge that is missing",
        lambda: Agent(
            Script(ADDING[0], "zero"),
            tools=[add],
            features=[
                Knowledge(Broken(), on_error="degrade", auto_store=True),
                Knowledge(Broken(), when="turn", on_error="degrade", name="the turn's"),
            ],
        ),
        "zero",
    ),
    Scenario(
        "nothing is known",
        lambda: Agent(
            Script("hello"),
            features=[Knowledge(StaticKnowledgeBase(" ")), Knowledge(StaticKnowledgeBase(), when="turn")],
        ),
        "hello",
    ),
    Scenario(
        "nothing is asked where nothing is said",
        lambda: Agent(Script("a town"), features=[Knowledge(Broken()), Knowledge(Broken(), when="turn")]),
        "a town",
        prompt=[Image("https://example.org/oslo.png")],
    ),
    Scenario(
        "knowledge that a run cannot do without",
        lambda: Agent(
            Script("never"), features=[ContentFilter("bomb"), Knowledge(Broken(), auto_store=True)]
        ),
        code="ORCHESTRATION_KNOWLEDGE_FAILED",
    ),
    Scenario(
        "knowledge that a turn cannot do without",
        lambda: Agent(Script("never"), features=[Knowledge(Broken(), when="turn")]),
        code="ORCHESTRATION_KNOWLEDGE_FAILED",
    ),
)

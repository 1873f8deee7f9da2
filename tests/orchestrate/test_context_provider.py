"""A context provider on an agent: asked by `build`, sent as it is, and recorded with its sources."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import Agent, Knowledge, MemoryJournal, tool
from flyball.context.builder import ContextBuilder
from flyball.context.chunk import Chunk
from flyball.context.in_memory import InMemoryRetriever
from flyball.context.policy import ContextPolicy
from flyball.core.errors import KnowledgeFailed, UserError
from flyball.core.events import Admitted, TurnPrepared
from flyball.core.messages import Image, Message, Text, system, user
from flyball.orchestrate.projections.explanation import explain
from flyball.testing import ScriptedEngine, tool_call

LIBRARY = Chunk("The library closes at nine.", "town.md#library")
TOLD = "Relevant context:\n\n[1] (town.md#library): The library closes at nine."
ASKED = "When does the library close?"


def texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, Text)]


def builder(policy: ContextPolicy | None = None) -> ContextBuilder:
    return ContextBuilder(InMemoryRetriever([LIBRARY]), 3, policy or ContextPolicy())


class Provider:
    """Builds what it is told to."""

    def __init__(self, *messages: Any) -> None:
        self.messages: Any = list(messages)
        self.asked: list[str] = []

    async def build(self, query: str) -> list[Message]:
        self.asked.append(query)
        return self.messages


async def test_context_is_sent_before_the_question_word_for_word_and_is_not_said() -> None:
    engine = ScriptedEngine("At nine.")
    knowledge = Knowledge(builder(), when="turn", placement="before_user", on_error="degrade")
    result = await Agent(engine, features=[knowledge]).run(ASKED)
    assert texts(engine.calls[0].messages[0]) == [TOLD, ASKED]
    assert texts(result.messages[0]) == [ASKED]


async def test_what_was_found_is_recorded_with_its_scores_and_told_by_why() -> None:
    journal = MemoryJournal()
    await Agent(ScriptedEngine("At nine."), features=[Knowledge(builder(), name="town")]).run(
        ASKED, journal=journal, loop_id="one"
    )
    events = await journal.read("one")
    (prepared,) = [event for event in events if isinstance(event, TurnPrepared)]
    assert prepared.notes == ("town: town.md#library (0.5)",)
    told = [text for turn in explain(events).turns for text in turn.decided] + list(explain(events).before)
    assert "what is sent was changed by town: town.md#library (0.5)" in told


async def test_a_policy_says_when_and_where_unless_the_feature_does() -> None:
    turn = Knowledge(builder())
    assert (turn.when, turn.placement) == ("turn", "before_user")
    stays = ContextPolicy(placement="system", ephemeral=False)
    run = Knowledge(builder(stays))
    assert (run.when, run.placement) == ("run", "system")
    other = Knowledge(builder(), when="run")
    assert (other.when, other.placement) == ("run", "system")
    plain = Knowledge(Provider())
    assert (plain.when, plain.placement) == ("run", "system")
    engine = ScriptedEngine("At nine.", "At nine!")
    agent = Agent(engine, features=[run])
    first = await agent.run(ASKED)
    assert texts(first.messages[0]) == [f"[Knowledge Context] {TOLD}"]
    second = await agent.run(ASKED, messages=first.messages)
    assert texts(second.messages[0]) == [f"[Knowledge Context] {TOLD}"], "and not twice"


async def test_several_messages_are_told_in_their_order() -> None:
    provider = Provider(system("One."), user("Two."), system(" "))
    engine = ScriptedEngine(tool_call("look", {}), "done")

    @tool
    async def look() -> str:
        """Look."""
        return "seen"

    knowledge = Knowledge(provider, when="turn", placement="before_user", prefix="I know: ")
    await Agent(engine, tools=[look], features=[knowledge]).run("What?")
    for call in engine.calls:
        assert texts(call.messages[0]) == ["I know: One.", "I know: Two.", "What?"]
    assert provider.asked == ["What?", "What?"]


async def test_sources_are_named_in_words() -> None:
    many = [{"source": f"{number}.md", "score": number / 100} for number in range(12)]
    provider = Provider(Message(system("x").role, (Text("x"),), extra={"sources": [*many, "a\nline", {}]}))
    result = await Agent(ScriptedEngine("yes"), features=[Knowledge(provider, when="turn")]).run("What?")
    (prepared,) = [event for event in await result.events() if isinstance(event, TurnPrepared)]
    assert prepared.notes[0].startswith("knowledge: 0.md (0), 1.md (0.01), ")
    assert prepared.notes[0].endswith("9.md (0.09) and 4 more")
    provider.messages = [
        Message(system("x").role, (Text("x"),), extra={"sources": ["a\nline", {"source": "b"}]})
    ]
    result = await Agent(ScriptedEngine("yes"), features=[Knowledge(provider, when="turn")]).run("What?")
    (prepared,) = [event for event in await result.events() if isinstance(event, TurnPrepared)]
    assert prepared.notes == ("knowledge: a line, b",)


@pytest.mark.parametrize(
    ("messages", "what"),
    [
        (["text"], "gave a str among the messages"),
        ([Message(user("x").role, (Image("https://example.org/x.png"),))], "a message with a Image"),
    ],
)
async def test_what_is_no_message_is_told(messages: list[Any], what: str) -> None:
    agent = Agent(ScriptedEngine("yes"), features=[Knowledge(Provider(*messages))])
    with pytest.raises(KnowledgeFailed, match=what):
        await agent.run("What?")


async def test_what_is_no_list_is_told_and_can_be_done_without() -> None:
    provider = Provider()
    provider.messages = "text"
    agent = Agent(ScriptedEngine("yes"), features=[Knowledge(provider, on_error="degrade")])
    result = await agent.run("What?")
    (admitted,) = [event for event in await result.events() if isinstance(event, Admitted)]
    assert admitted.degraded == (
        "knowledge could not be asked: TypeError: build() gave a str: it must give a list of messages",
    )
    assert result.output == "yes"


async def test_nothing_found_changes_nothing() -> None:
    engine = ScriptedEngine("yes")
    result = await Agent(engine, features=[Knowledge(builder())]).run("Bicycles?")
    assert engine.calls[0].messages == (user("Bicycles?"),)
    (prepared,) = [event for event in await result.events() if isinstance(event, TurnPrepared)]
    assert prepared.notes == ()


async def test_a_function_may_give_the_provider_of_a_run() -> None:
    engine = ScriptedEngine("yes")
    agent = Agent(engine, features=[Knowledge(lambda ctx: ctx.deps, when="turn", placement="before_user")])
    await agent.run(ASKED, deps=builder())
    assert texts(engine.calls[0].messages[0]) == [TOLD, ASKED]
    with pytest.raises(KnowledgeFailed, match=r"InMemoryRetriever.* is a retriever"):
        await agent.run(ASKED, deps=InMemoryRetriever())
    with pytest.raises(KnowledgeFailed, match=r"asked by retrieve\(\) or build\(\), and 5 has neither"):
        await agent.run(ASKED, deps=5)


def test_a_retriever_is_not_taken_for_a_knowledge_base() -> None:
    with pytest.raises(UserError, match=r"is a retriever: .* Knowledge\(ContextBuilder\(retriever"):
        Knowledge(InMemoryRetriever())  # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match="auto_store needs a knowledge base"):
        Knowledge(builder(), auto_store=True)


async def test_what_can_be_asked_in_both_ways_is_asked_for_messages_and_may_store() -> None:
    class Both(Provider):
        stored = ""

        def retrieve(self, query: str) -> str:
            raise AssertionError("it is asked for messages")

        def store(self, content: str) -> None:
            self.stored = content

    both = Both(system("It is."))
    result = await Agent(ScriptedEngine("yes"), features=[Knowledge(both, auto_store=True)]).run("Is it?")
    assert texts(result.messages[0]) == ["[Knowledge Context] It is."]
    assert both.stored == "yes"

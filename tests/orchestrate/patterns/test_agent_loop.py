"""AgentLoop: what it remembers, what it forgets, and how it is found again."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from flyball import (
    Agent,
    AgentLoop,
    LoopConfig,
    MemoryJournal,
    Message,
    RunContext,
    SystemPrompt,
    Text,
    tool,
)
from flyball.core.errors import EngineError, IterationLimit, NoEngine, UserError
from flyball.core.messages import Role, system
from flyball.inference.answers import Answer
from flyball.inference.answers import tool_call as call
from flyball.inference.request import Request, Result
from flyball.inference.scripted import ScriptedEngine
from flyball.inference.stream import StreamHandler
from flyball.memory.policy import MemoryPolicy
from flyball.observe.event_log import InMemoryEventLog
from flyball.orchestrate.flow.doing import run_heard
from flyball.runtime.sqlite import SQLiteJournal
from tests.orchestrate.models import Hanging, Place, Script

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sentiment": {"enum": ["positive", "negative"]},
        "confidence": {"type": "number"},
    },
    "required": ["sentiment", "confidence"],
}
JUDGED = '{"sentiment":"positive","confidence":0.95}'


class Noting(ScriptedEngine):
    """A scripted model that notes what it was asked."""

    def __init__(self, *answers: Answer, **options: Any) -> None:
        super().__init__(*answers, **options)
        self.requests: list[Request] = []

    async def infer(self, request: Request) -> Result:
        self.requests.append(request)
        return await super().infer(request)


class Provider:
    """Knows something about every question, and notes them."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self.error = error

    async def build(self, query: str) -> list[Message]:
        self.asked.append(query)
        if self.error is not None:
            raise self.error
        return [Message(Role.SYSTEM, (Text(f"Relevant context:\n\n[1] (a.md): about {query}"),))]


@tool
async def look(topic: str) -> str:
    """Look something up."""
    return f"about {topic}"


def texts(messages: Any) -> list[tuple[str, str]]:
    return [(str(message.role), message.text) for message in messages]


async def test_what_was_said_is_remembered() -> None:
    engine = Noting("Hello!", "Fine.")
    loop = AgentLoop(LoopConfig(engine=engine, system_prompt="Be brief."))
    assert (await loop.chat("Hi")).content == "Hello!"
    await loop.chat("How are you?")
    assert [role for role, _ in texts(loop.messages())] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert texts(engine.requests[1].messages) == texts(loop.messages())[:-1]
    assert engine.requests[0].settings.max_tokens == 2048
    loop.messages().clear()
    assert len(loop.messages()) == 5, "what is given out is a copy"


async def test_context_is_told_before_the_users_words_and_not_kept() -> None:
    engine, provider = Noting("Tea.", "Milk."), Provider()
    loop = AgentLoop(LoopConfig(engine=engine, context_provider=provider))
    await loop.chat("Tea?")
    assert len(loop.memory.working.context) == 1
    await loop.chat("Milk?")
    assert provider.asked == ["Tea?", "Milk?"]
    last = engine.requests[1].messages[-1].text
    assert "[1] (a.md): about Milk?" in last
    assert last.endswith("Milk?")
    assert not any("a.md" in text for _, text in texts(loop.messages()))


async def test_a_provider_that_fails_never_stands_in_the_way() -> None:
    log = InMemoryEventLog()
    loop = AgentLoop(
        LoopConfig(engine=Noting("Tea."), context_provider=Provider(OSError("no disk")), observer=log)
    )
    assert (await loop.chat("Tea?")).content == "Tea."
    assert any("no disk" in str(event) for event in log.events()), "it is recorded all the same"


async def test_what_tools_gave_is_working_memory() -> None:
    told: list[tuple[str, str]] = []
    engine = Noting(call("look", {"topic": "tea"}), "It is tea.", "Yes.")
    loop = AgentLoop(
        LoopConfig(
            engine=engine, tools=[look], on_tool_result=lambda name, output: told.append((name, output))
        )
    )
    result = await loop.chat("Which?")
    assert (result.content, told) == ("It is tea.", [("look", "about tea")])
    assert list(loop.memory.working.step_results.values()) == ["about tea"]
    assert [role for role, _ in texts(loop.messages())] == ["user", "assistant"]
    await loop.chat("Sure?")
    assert loop.memory.working.step_results == {}


async def test_tools_do_not_go_round_for_ever() -> None:
    engine = Noting(*[call("look", {"topic": str(number)}) for number in range(9)])
    loop = AgentLoop(LoopConfig(engine=engine, tools=[look], max_tool_iterations=3))
    with pytest.raises(IterationLimit):
        await loop.chat("Which?")
    assert len(engine.requests) == 3
    assert loop.messages() == [], "a turn that failed was never part of the conversation"


async def test_a_structured_turn() -> None:
    engine = Noting('{"sentiment":"POSITIVE","confidence":0.95', "Good.")
    loop = AgentLoop(LoopConfig(engine=engine, system_prompt="Judge."))
    result = await loop.chat_structured("I like it.", SCHEMA)
    assert result.output == {"sentiment": "positive", "confidence": 0.95}
    (request,) = engine.requests
    assert (request.settings.temperature, request.settings.thinking) == (0.3, False)
    assert request.output is not None
    await loop.chat("And now?")
    assert engine.requests[1].output is None, "only that turn was structured"
    assert engine.requests[1].settings.temperature is None


async def test_a_grammar_is_for_structured_turns_alone() -> None:
    grammar = 'root ::= "{" "}"'
    engine = Noting("{}", "Words.")
    loop = AgentLoop(LoopConfig(engine=engine, grammar=grammar))
    await loop.chat_structured("?", {"type": "object"})
    await loop.chat("?")
    assert [request.grammar for request in engine.requests] == [grammar, None]


async def test_callbacks_hear_the_answer_as_it_comes() -> None:
    heard: list[str] = []
    loop = AgentLoop(
        LoopConfig(
            engine=ScriptedEngine("Hello there", chunk=4), stream=StreamHandler(on_content=heard.append)
        )
    )
    assert (await loop.chat("Hi")).content == "".join(heard) == "Hello there"
    assert len(heard) > 1


async def test_all_is_inspectable_afterwards() -> None:
    log = InMemoryEventLog()
    loop = AgentLoop(LoopConfig(engine=Noting("Hello!"), max_tokens=2048, observer=log, session_id="s1"))
    await loop.chat("Hi")
    actions = {event.action for event in log.events()}
    assert "infer" in actions
    assert all(event.correlation.session_id == "s1" for event in log.events())


async def test_a_buffer_that_is_full_forgets() -> None:
    loop = AgentLoop(LoopConfig(engine=Noting("a", "b", "c"), memory=MemoryPolicy(max_messages=2)))
    for said in ("1", "2", "3"):
        await loop.chat(said)
    assert texts(loop.messages()) == [("user", "3"), ("assistant", "c")]


async def test_one_turn_at_a_time() -> None:
    place = Place()
    loop = AgentLoop(LoopConfig(engine=Hanging(place=place)))
    first = asyncio.ensure_future(loop.chat("Hi"))
    await place.entered.wait()
    with pytest.raises(UserError, match="is under way"):
        await loop.chat("Hello?")
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert loop.messages() == []


def test_what_has_to_be_there() -> None:
    with pytest.raises(NoEngine, match="engine is needed"):
        AgentLoop(LoopConfig())


# Found again


async def test_a_conversation_is_found_again_in_its_journal(tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "talk.db") as journal:
        loop = AgentLoop(LoopConfig(engine=Noting("Hello!", JUDGED), journal=journal, session_id="s"))
        await loop.chat("Hi")
        loop.session.set("name", "Ann")
        await loop.chat_structured("I like it.", SCHEMA)
        said = loop.messages()
    async with SQLiteJournal(tmp_path / "talk.db") as journal:
        again = AgentLoop(LoopConfig(engine=Noting("Bye."), journal=journal, session_id="s"))
        assert await again.restore() == 2
        assert texts(again.messages()) == texts(said)
        assert again.session.get("name") == "Ann"
        assert (await again.chat("Bye")).loop_id == "s-t3"


async def test_a_turn_that_broke_off_is_brought_to_its_end() -> None:
    journal, place = MemoryJournal(), Place()
    loop = AgentLoop(LoopConfig(engine=Noting("Hello!"), journal=journal, session_id="s"))
    await loop.chat("Hi")
    hanging = AgentLoop(LoopConfig(engine=Hanging(place=place), journal=journal, session_id="s"))
    await hanging.restore()
    turn = asyncio.ensure_future(hanging.chat("And?"))
    await place.entered.wait()
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    again = AgentLoop(LoopConfig(engine=Noting("Fine."), journal=journal, session_id="s"))
    assert await again.restore() == 2
    assert texts(again.messages())[-2:] == [("user", "And?"), ("assistant", "Fine.")]


async def test_a_turn_that_failed_is_not_part_of_it() -> None:
    journal = MemoryJournal()
    loop = AgentLoop(LoopConfig(engine=Noting(EngineError("no power")), journal=journal, session_id="s"))
    with pytest.raises(EngineError):
        await loop.chat("Hi")
    again = AgentLoop(LoopConfig(engine=Noting("Hello!"), journal=journal, session_id="s"))
    assert await again.restore() == 1
    assert again.messages() == []
    assert (await again.chat("Hi")).loop_id == "s-t2"


async def test_nothing_is_found_without_a_journal_or_after_the_beginning() -> None:
    loop = AgentLoop(LoopConfig(engine=Noting("Hello!")))
    with pytest.raises(UserError, match="without a journal"):
        await loop.restore()
    begun = AgentLoop(LoopConfig(engine=Noting("Hello!"), journal=MemoryJournal()))
    await begun.chat("Hi")
    with pytest.raises(UserError, match="has begun"):
        await begun.restore()


# Who says what the model is told first


class Greeter:
    """A prompt provider."""

    def __init__(self) -> None:
        self.asked = 0

    def build_system_prompt(self) -> Message:
        self.asked += 1
        return system(f"Be kind, {self.asked}.")


def by_function(ctx: RunContext[Any]) -> str:
    return "Be kind."


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        (SystemPrompt("Be kind."), ["Be kind."] * 3),
        (by_function, ["Be kind."] * 3),
        (["Be kind.", "Be brief."], ["Be kind.\n\nBe brief."] * 3),
        (Greeter(), ["Be kind, 1.", "Be kind, 2.", "Be kind, 3."]),
    ],
    ids=["a system prompt", "a function", "several", "a provider"],
)
async def test_a_prompt_that_is_no_text_is_told_in_each_turn(prompt: Any, told: list[str]) -> None:
    journal = MemoryJournal()
    engine = ScriptedEngine("hello", '{"a": "x"}', "bye")
    loop = AgentLoop(LoopConfig(engine=engine, system_prompt=prompt, journal=journal, session_id="s"))
    await loop.chat("one")
    await loop.chat_structured("two", {"type": "object"})
    await loop.chat("three")
    assert [request.messages[0].text for request in engine.calls] == told
    assert all(request.messages[0].role is Role.SYSTEM for request in engine.calls)
    said = [message.text for message in loop.messages()]
    assert said == ["one", "hello", "two", '{"a": "x"}', "three", "bye"]
    assert [message.text for message in engine.calls[2].messages[1:]] == said[:5]
    again = AgentLoop(LoopConfig(engine=engine, system_prompt=prompt, journal=journal, session_id="s"))
    assert await again.restore() == 3
    assert again.messages() == loop.messages()


async def test_who_only_hears_an_answer_cannot_approve_it() -> None:
    held = Agent(Script("done"), output_approval=True)
    with pytest.raises(UserError, match="needs approval, and nobody could give it"):
        await run_heard(held, "go", {}, print)

"""Knowledge in runs: what the model is told, what is recorded, what is kept, and what becomes of failures."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from flyball import (
    Agent,
    AutoContext,
    InputGuardrail,
    Knowledge,
    MemoryJournal,
    MessageInterceptor,
    RunContext,
    RunResult,
    SQLiteJournal,
    SQLiteKnowledgeBase,
    StaticKnowledgeBase,
    recall,
    tool,
)
from flyball.core.errors import KnowledgeFailed, UserError
from flyball.core.events import Admitted, Delivered, Event, TurnPrepared
from flyball.core.forms.semstreams import ConstructedContext, TaskMessage
from flyball.core.messages import Message, Role, Text, assistant, system, user
from flyball.orchestrate.machine import fold
from flyball.orchestrate.task_loops import task_started
from flyball.testing import ScriptedEngine, tool_call
from tests.orchestrate.knowledge_scenarios import Broken
from tests.orchestrate.models import Script
from tests.patience import PATIENCE


class Library:
    """Knows one thing, and remembers what it was asked and told."""

    def __init__(self, known: Any = "It closes at nine.") -> None:
        self.known = known
        self.asked: list[str] = []
        self.stored: list[str] = []

    async def retrieve(self, query: str) -> str:
        self.asked.append(query)
        return self.known

    async def store(self, content: str) -> None:
        self.stored.append(content)


@tool
async def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


ROOT = Path(__file__).resolve().parents[2]
ADDING = [tool_call("add", {"x": number, "y": 1}) for number in range(3)]


def texts(message: Message) -> list[str]:
    return [part.text for part in message.parts if isinstance(part, Text)]


async def only(kind: type[Any], result: RunResult[Any]) -> list[Any]:
    return [event for event in await result.events() if isinstance(event, kind)]


# Of a run


async def test_what_is_known_of_the_prompt_joins_the_instructions_once() -> None:
    library, engine = Library(), ScriptedEngine(ADDING[0], "Nine.")
    agent = Agent(engine, tools=[add], instructions="Be brief.", features=[Knowledge(library)])
    result = await agent.run("When does the library close?")
    assert library.asked == ["When does the library close?"]
    assert texts(result.messages[0]) == ["Be brief.", "[Knowledge Context] It closes at nine."]
    assert all(call.messages[0] == result.messages[0] for call in engine.calls)
    (admitted,) = await only(Admitted, result)
    assert admitted == Admitted(admitted.at, ("[Knowledge Context] It closes at nine.",))
    assert library.stored == []


async def test_what_a_guardrail_took_out_of_the_prompt_is_not_asked() -> None:
    @InputGuardrail
    def no_names(_: RunContext[Any], prompt: str) -> str:
        return prompt.replace("Ann", "somebody")

    library = Library()
    await Agent(ScriptedEngine("yes"), features=[no_names, Knowledge(library)]).run("Is Ann in?")
    assert library.asked == ["Is somebody in?"]


async def test_a_run_that_goes_on_has_the_new_knowledge_in_the_place_of_the_old() -> None:
    library = Library("old")
    agent = Agent(ScriptedEngine("one", "two", "three"), features=[Knowledge(library)])
    first = await agent.run("One?", messages=[system("From the user."), user("Hi."), assistant("Hello.")])
    assert texts(first.messages[0]) == ["From the user.", "[Knowledge Context] old"]
    library.known = "new"
    second = await agent.run("Two?", messages=first.messages)
    assert texts(second.messages[0]) == ["From the user.", "[Knowledge Context] new"]
    library.known = ""
    third = await agent.run("Three?", messages=second.messages)
    assert texts(third.messages[0]) == texts(second.messages[0])
    assert library.asked == ["One?", "Two?", "Three?"]


async def test_a_fork_is_told_what_is_known_of_its_own_prompt() -> None:
    journal, library = MemoryJournal(), Library("old")
    agent = Agent(ScriptedEngine("one", "two"), features=[Knowledge(library)])
    await agent.run("One?", journal=journal, loop_id="one")
    library.known = "new"
    forked = await agent.fork("one", journal, turn=0, prompt="Two?")
    assert texts(forked.messages[0]) == ["[Knowledge Context] new"]
    assert library.asked == ["One?", "Two?"]


# Of a turn


@pytest.mark.parametrize("placement", ["system", "before_user"])
async def test_what_is_known_of_a_turn_is_sent_and_not_said(placement: Any) -> None:
    library, engine = Library("one"), ScriptedEngine(*ADDING, "done")
    agent = Agent(
        engine,
        tools=[add],
        instructions="Be brief.",
        features=[Knowledge(library, when="turn", placement=placement, prefix="I know: ", name="library")],
    )

    @agent.tool
    async def learn() -> str:
        library.known = "two"
        return "learned"

    engine = ScriptedEngine(ADDING[0], tool_call("learn", {}), ADDING[1], "done")
    with agent.override(model=engine):
        result = await agent.run("Add, and learn.")
    where = 0 if placement == "system" else 1
    for call, known in zip(engine.calls, ("one", "one", "two", "two"), strict=True):
        said, sent = texts(result.messages[where]), texts(call.messages[where])
        knows = f"I know: {known}"
        assert sent == ([*said, knows] if placement == "system" else [knows, *said])
        assert call.messages[:where] == result.messages[:where]
        assert call.messages[where + 1 :] == result.messages[where + 1 : len(call.messages)]
    assert library.asked == ["Add, and learn."] * 4
    prepared = await only(TurnPrepared, result)
    assert [len(event.edits) for event in prepared] == [1, 0, 1, 0], "what is as before is not written again"
    assert {event.notes for event in prepared} == {("library",)}


async def test_a_turn_is_about_what_the_user_said_last() -> None:
    library = Library()
    agent = Agent(ScriptedEngine("", "two"), features=[Knowledge(library, when="turn")])
    await agent.run("Two?", messages=[user("One?"), assistant("one")])
    assert library.asked == ["Two?", "Two?"], "what flyball asks again is no question of the user's"


async def test_interceptors_see_what_is_known() -> None:
    seen: list[str] = []

    @MessageInterceptor
    def look(_: RunContext[Any], messages: Any) -> None:
        seen.extend(texts(messages[0]))

    agent = Agent(ScriptedEngine("yes"), features=[look, Knowledge(Library("it"), when="turn")])
    await agent.run("What?")
    assert seen == ["[Knowledge Context] it"]


# What is recorded is not asked for again


@pytest.mark.parametrize("when", ["run", "turn"])
async def test_wherever_it_is_cut_off_what_was_recorded_is_not_asked_again(when: Any) -> None:
    def made(library: Library) -> Agent[Any, str]:
        return Agent(
            Script(ADDING[0], "done"),
            tools=[add],
            instructions="Be brief.",
            features=[Knowledge(library, when=when, auto_store=True)],
        )

    library = Library()
    whole = await made(library).run("Add.")
    assert (len(library.asked), library.stored) == (1 if when == "run" else 2, ["done"])
    events = await whole.events()
    kind = Admitted if when == "run" else TurnPrepared
    for length in range(1, len(events) + 1):
        journal, again = MemoryJournal(), Library()
        await journal.append(whole.loop_id, events[:length], 0)
        result = await made(again).resume(whole.loop_id, journal)
        assert result.messages == whole.messages
        assert _count(events[:length], kind) + len(again.asked) == len(library.asked)
        assert again.stored == ([] if _count(events[:length], Delivered) else ["done"])
        before = [*again.asked], [*again.stored]
        await made(again).replay(whole.loop_id, journal)
        assert (again.asked, again.stored) == before


def _count(events: list[Event], kind: type[Any]) -> int:
    return len([event for event in events if isinstance(event, kind)])


async def test_a_loop_is_not_resumed_without_its_knowledge() -> None:
    journal = MemoryJournal()
    whole = await Agent(ScriptedEngine("yes"), features=[Knowledge(Library())]).run("Tea?")
    await journal.append(whole.loop_id, (await whole.events())[:1], 0)
    with pytest.raises(UserError, match="'knowledge'"):
        await Agent(ScriptedEngine("yes"), instructions=lambda _: "Hm.").resume(whole.loop_id, journal)


# Failures


@pytest.mark.parametrize("when", ["run", "turn"])
async def test_a_knowledge_base_that_fails_fails_the_run(when: Any) -> None:
    engine = ScriptedEngine("never")
    agent = Agent(engine, features=[Knowledge(Broken(), when=when, name="library")])
    with pytest.raises(
        KnowledgeFailed, match=r"^library could not be asked: ConnectionError: the library is closed$"
    ) as caught:
        await agent.run("Tea?")
    error = caught.value
    assert (error.retryable, error.caused_by) == (True, "ConnectionError: the library is closed")
    assert error.details == {"knowledge": "library", "doing": "retrieve"}
    assert engine.calls == []


async def test_with_degrade_it_goes_on_without_and_says_so() -> None:
    both = [Knowledge(Broken(), when=when, on_error="degrade") for when in ("run", "turn")]
    result = await Agent(ScriptedEngine("yes"), features=[*both, Knowledge(Library("tea"))]).run("Tea?")
    (admitted,), (prepared,) = await only(Admitted, result), await only(TurnPrepared, result)
    told = ("knowledge could not be asked: ConnectionError: the library is closed",)
    assert (admitted.degraded, prepared.degraded, prepared.edits) == (told, told, ())
    assert texts(result.messages[0]) == ["[Knowledge Context] tea"]


@pytest.mark.parametrize("given", [b"bytes", 3, ["a list"]], ids=["bytes", "a number", "a list"])
async def test_what_is_no_text_is_no_knowledge(given: Any) -> None:
    with pytest.raises(KnowledgeFailed, match=r"retrieve\(\) gave a .*: it must give text"):
        await Agent(ScriptedEngine("never"), features=[Knowledge(Library(given))]).run("Tea?")


async def test_nothing_may_be_none_and_odd_text_is_made_sound() -> None:
    agent = Agent(ScriptedEngine("1", "2"), features=[Knowledge(Library(None)), Knowledge(Library("\ud800"))])
    result = await agent.run("Tea?")
    assert texts(result.messages[0]) == ["[Knowledge Context] \ufffd"]


async def test_a_run_that_is_cancelled_while_it_asks_is_not_degraded() -> None:
    class Slow(Library):
        async def retrieve(self, query: str) -> str:
            started.set()
            await asyncio.Event().wait()
            return "never"

    started = asyncio.Event()
    features = [Knowledge(Slow(), on_error="degrade")]
    running = asyncio.create_task(Agent(ScriptedEngine("never"), features=features).run("Tea?"))
    await started.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


# What is kept


async def test_the_answer_of_a_run_that_ends_well_is_stored() -> None:
    base, other = StaticKnowledgeBase("known"), StaticKnowledgeBase()
    agent = Agent(
        ScriptedEngine(ADDING[0], "It is one.", ""),
        tools=[add],
        retries=0,
        features=[Knowledge(base, auto_store=True), Knowledge(other)],
    )
    await agent.run("Add.")
    assert (base.stored, other.stored) == (("It is one.",), ())
    with pytest.raises(Exception, match="no acceptable answer"):
        await agent.run("Add.")
    assert base.stored == ("It is one.",), "a run that fails has nothing to say"


async def test_an_output_is_stored_as_the_model_wrote_it() -> None:
    base = StaticKnowledgeBase()
    agent = Agent(
        ScriptedEngine(tool_call("final_result", {"result": [1, 2]})),
        output=list[int],
        output_mode="tool",
        features=[Knowledge(base, auto_store=True)],
    )
    assert (await agent.run("Count.")).output == [1, 2]
    assert base.stored == ('{"result":[1,2]}',)


async def test_a_store_that_fails_is_recorded_and_the_answer_counts() -> None:
    delivered: list[str] = []

    async def deliver(_: Any, outcome: Any, output: Any) -> None:
        delivered.append(output)
        raise ValueError("no stamps")

    class Closed(Library):
        async def store(self, content: str) -> None:
            raise ConnectionError("closed")

    library = Library()
    features = [Knowledge(Closed(), auto_store=True), Knowledge(library, auto_store=True)]
    result = await Agent(ScriptedEngine("yes"), features=features).run("Tea?")
    assert (result.output, result.outcome, library.stored) == ("yes", "success", ["yes"])
    (event,) = await only(Delivered, result)
    assert event.error.message == "knowledge could not store the answer: ConnectionError: closed"
    assert event.error.kind == "KnowledgeFailed"

    result = await Agent(ScriptedEngine("yes"), deliveries=[deliver, deliver], features=features).run("Tea?")
    assert (delivered, library.stored) == (["yes", "yes"], ["yes", "yes"]), "all that must happen is tried"
    (event,) = await only(Delivered, result)
    assert event.error.message == "a delivery failed: ValueError: no stamps"


@pytest.mark.integration
def test_a_run_that_is_killed_while_it_stores_stores_again(tmp_path: Path) -> None:
    def run() -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tests.orchestrate.stored_after_a_kill", str(tmp_path)]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False, cwd=ROOT
        )

    assert run().returncode == -9
    again = run()
    assert (again.stdout, again.stderr) == ("The library closes at nine.\n", "")
    with SQLiteKnowledgeBase(tmp_path / "knowledge.db") as base:
        assert asyncio.run(base.retrieve("library")) == "The library closes at nine."

    async def kinds() -> list[str]:
        async with SQLiteJournal(tmp_path / "runs.db") as journal:
            return [type(event).__name__ for event in await journal.read("library")]

    assert asyncio.run(kinds()) == ["Started", "Admitted", "ModelAnswered", "Resumed", "Delivered", "Ended"]


# Whose knowledge


async def test_a_run_may_have_a_knowledge_base_of_its_own() -> None:
    ann, bob = Library("Ann likes tea."), Library("Bob likes milk.")
    agent = Agent(
        ScriptedEngine("tea", "milk"), features=[Knowledge(lambda ctx: ctx.deps["base"], auto_store=True)]
    )
    first = await agent.run("What do I like?", deps={"base": ann})
    second = await agent.run("What do I like?", deps={"base": bob})
    assert [texts(one.messages[0]) for one in (first, second)] == [
        ["[Knowledge Context] Ann likes tea."],
        ["[Knowledge Context] Bob likes milk."],
    ]
    assert (ann.stored, bob.stored) == (["tea"], ["milk"])


async def test_what_one_run_has_found_out_another_knows(tmp_path: Any) -> None:
    with SQLiteKnowledgeBase(tmp_path / "knowledge.db") as base:
        agent = Agent(
            ScriptedEngine("The library closes at nine.", "At nine."),
            features=[Knowledge(base, auto_store=True)],
        )
        async with SQLiteJournal(tmp_path / "runs.db") as journal:
            await agent.run("When does the library close?", journal=journal)
            result = await agent.run("And the library closes when?", journal=journal)
    assert texts(result.messages[0]) == ["[Knowledge Context] The library closes at nine."]


# What was brought along


@pytest.mark.parametrize("when", ["run", "turn"])
async def test_a_task_that_brings_its_context_needs_no_other(when: Any) -> None:
    library, journal = Library(), MemoryJournal()
    agent = Agent(
        ScriptedEngine("yes"),
        instructions="Be brief.",
        features=[Knowledge(library, when=when, auto_store=True)],
    )
    context = ConstructedContext(content="Tea is four pounds.", token_count=5)
    task = TaskMessage(task_id="t1", role="general", model="default", prompt="Tea?", context=context)
    await journal.append("t1", (task_started(task, agent.spec, 0.0),), 0)
    result = await agent.resume("t1", journal)
    assert texts(result.messages[0]) == ["Be brief.\n\nContext:\nTea is four pounds."]
    assert (library.asked, library.stored) == ([], ["yes"])
    assert result.messages[1].role is Role.USER
    assert fold(await result.events()) == result.state


# After a summary


def remembering(library: Any, **options: Any) -> tuple[Agent[Any, str], ScriptedEngine]:
    """An agent whose history is summed up before its first turn, and the model that answers."""
    engine = ScriptedEngine("Ann's.", "Ann's.")
    compacting = AutoContext(25, keep_last_n=2, summary_model=ScriptedEngine("They talked."))
    knowledge = Knowledge(library, when="compaction", placement="before_user", prefix="", **options)
    return Agent(engine, features=[compacting, knowledge]), engine


TALK = [
    user("Let us plan a party, with all our friends."),
    assistant("With pleasure, and with many guests."),
    user("The cake is Ann's, the lamp is Ben's."),
    assistant("Noted, and I shall not forget it."),
    user("The music begins at eight, in the garden."),
    assistant("At eight it is, and not a minute later."),
]


async def test_what_was_summed_up_is_recalled() -> None:
    agent, engine = remembering(recall)
    result = await agent.run("Whose is the cake?", messages=TALK)
    sent = engine.calls[0].messages
    assert "The cake" not in "".join([message.text for message in sent[:-1]]), "it was summed up"
    assert texts(sent[-1]) == ["user: The cake is Ann's, the lamp is Ben's.", "Whose is the cake?"]
    (prepared,) = [one for one in await only(TurnPrepared, result) if one.compact is None]
    assert prepared.notes == ("knowledge",)
    assert "recalled" not in result.messages[-2].text, "the history stays as it was said"


async def test_without_a_summary_nobody_is_asked() -> None:
    library = Library()
    agent, _ = remembering(library)
    await agent.run("Hello")
    assert library.asked == []
    await agent.run("Whose is the cake?", messages=TALK)
    assert library.asked == ["Whose is the cake?"]


async def test_what_is_told_is_within_its_tokens() -> None:
    agent, engine = remembering(Library("word " * 10_000), max_tokens=100)
    await agent.run("Whose is the cake?", messages=TALK)
    assert len(engine.calls[0].messages[-1].text) < 100 * 4 + 100
    engine = ScriptedEngine("So it is.")
    await Agent(engine, features=[Knowledge(Library("word " * 10_000), max_tokens=100)]).run("Hello?")
    assert len(engine.calls[0].messages[0].text) < 100 * 4 + 100
    with pytest.raises(UserError, match="max_tokens=0"):
        Knowledge(Library(), max_tokens=0)


async def test_what_was_recalled_is_not_asked_for_again_by_a_replay() -> None:
    library = Library()
    agent, _ = remembering(library)
    result = await agent.run("Whose is the cake?", messages=TALK, journal=(journal := MemoryJournal()))
    assert (await agent.replay(result.run_id, journal=journal)).output == "Ann's."
    assert len(library.asked) == 1

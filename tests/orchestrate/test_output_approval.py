"""Answers that wait for a person: none counts before it is approved, whatever brought it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import UNSET, json
from pydantic import BaseModel

from flyball import Agent, Limits, RunCondition
from flyball.core.errors import (
    AgentRunClosed,
    CancelledSignal,
    FlyballError,
    IterationLimit,
    LoopNotFound,
    RunConditionError,
    SignalRefused,
    UserError,
)
from flyball.core.events import Ended, Stage
from flyball.core.messages import Message, Retry, Role, user
from flyball.core.signals import Signal, SignalType
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.calls import awaits_approval
from flyball.orchestrate.contracts import SystemRequest, SystemResponse
from flyball.orchestrate.family import WaitingCall
from flyball.orchestrate.journal import Journal, MemoryJournal
from flyball.orchestrate.projections.explanation import explain
from flyball.orchestrate.projections.said import said_in
from flyball.orchestrate.recorded import calls_waiting, load, send_signal
from flyball.orchestrate.system import System
from flyball.testing.split import CALM, ROUGH, Chaos, SplitDriver
from tests.orchestrate.driven import WAYS, Driven
from tests.orchestrate.models import NeverAsked, Script
from tests.orchestrate.scenarios import City, add, final
from tests.orchestrate.where import Where


@pytest.fixture(params=WAYS)
def driven(request: pytest.FixtureRequest, where: Where) -> Driven:
    """A run in a task of its own."""
    return Driven(request.param, where)


async def waits(journal: Journal, loop_id: str, turn: int = 1) -> None:
    """Wait until the answer of a turn waits."""
    while True:
        events, state = await load(journal, loop_id)
        if awaits_approval(state) and state.turn == turn:
            return
        assert state.at != "done", f"it is over: {state.error}"
        await journal.wait(loop_id, len(events))


async def waiting(driven: Driven, turn: int = 1) -> None:
    await waits(driven.journal, driven.loop_id, turn)


async def shown(driven: Driven) -> Any:
    """What is shown of the answer that waits."""
    (one,) = await calls_waiting(driven.journal, driven.loop_id)
    assert (one.answer, one.wants) == (True, "approval")
    return json.decode(one.call.args_json)["answer"]


async def named(driven: Driven) -> str:
    """What the answer that waits is called."""
    (one,) = await calls_waiting(driven.journal, driven.loop_id)
    return one.call.id


def told(messages: tuple[Message, ...]) -> list[str]:
    return [part.text for message in messages for part in message.parts if isinstance(part, Retry)]


def shouting(_: object, text: str) -> str:
    return text.upper()


def late(_: object, __: object) -> str:
    return "it is late"


ANSWERS: dict[str, tuple[list[Any], dict[str, Any], Any, Any]] = {
    "text": (["Rome."], {}, "Rome.", "Rome."),
    "a call": (
        [final(name="Rome")],
        {"output": City, "output_mode": "tool"},
        {"name": "Rome", "people": 0},
        City(name="Rome"),
    ),
    "validated": (["rome"], {"validators": [shouting]}, "ROME", "ROME"),
}


@pytest.mark.parametrize(("script", "options", "seen", "output"), ANSWERS.values(), ids=ANSWERS)
async def test_an_answer_counts_once_it_is_approved(
    driven: Driven, script: list[Any], options: dict[str, Any], seen: Any, output: Any
) -> None:
    await driven.start(Agent(Script(*script), output_approval=True, **options))
    await waiting(driven)
    assert await shown(driven) == seen
    assert not driven.task.done()
    assert await driven.send("approve", call_id=await named(driven)) is Stage.COMPLETE
    assert (await driven.task).output == output


class Country(BaseModel):
    country: str
    capital: str


def of_the_city(_: object, city: City) -> Country:
    return Country(country="Italy", capital=city.name)


ITALY = Country(country="Italy", capital="Rome")
MEMBERS: dict[str, tuple[Any, dict[str, Any], str, Any]] = {
    "by its tool": (
        call("final_result_Country", {"country": "Italy", "capital": "Rome"}),
        {"output": [City, Country], "output_mode": "tool"},
        "Country",
        ITALY,
    ),
    "by its schema": (
        '{"result": {"name": "Rome"}}',
        {"output": [City, Country], "output_mode": "native"},
        "City",
        City(name="Rome"),
    ),
    "text": ("Rome.", {"output": [City, str], "output_mode": "tool"}, "text", "Rome."),
    "a validator's": (
        call("final_result_City", {"name": "Rome"}),
        {"output": [City, Country], "output_mode": "tool", "validators": [of_the_city]},
        "Country",
        ITALY,
    ),
}


@pytest.mark.parametrize(("said", "options", "kind", "output"), MEMBERS.values(), ids=MEMBERS)
async def test_which_of_several_types_an_answer_is_of_is_shown(
    driven: Driven, said: Any, options: dict[str, Any], kind: str, output: Any
) -> None:
    await driven.start(Agent(Script(said), output_approval=True, **options))
    await waiting(driven)
    (one,) = await calls_waiting(driven.journal, driven.loop_id)
    assert json.decode(one.call.args_json)["type"] == kind
    await driven.send("approve")
    assert (await driven.task).output == output


@pytest.mark.parametrize(
    ("kind", "text", "reads"),
    [
        ("reject", "Which country?", "The answer was not approved: Which country?"),
        ("reject", "", "The answer was not approved. Give another one."),
        ("feedback", "Which country?", "Which country?"),
    ],
)
async def test_who_would_not_have_it_is_given_another(
    driven: Driven, kind: str, text: str, reads: str
) -> None:
    script = Script("Rome.", "Rome, Italy.")
    await driven.start(Agent(script, output_approval=True, retries=0))
    await waiting(driven)
    first = await named(driven)
    await driven.send(kind, text)
    await waiting(driven, 2)
    assert told(script.last.messages) == [reads]
    with pytest.raises(SignalRefused, match=f"no call '{first}' waits for that, but answer-2"):
        await driven.send("approve", call_id=first)
    await driven.send("approve")
    result = await driven.task
    assert result.output == "Rome, Italy."
    assert result.usage.requests == 2


async def test_calls_beside_an_answer_that_is_refused_are_answered(driven: Driven) -> None:
    """The answer has left them unrun: the history stays valid, and the model may ask for them again."""
    script = Script([call("add", {"x": 1, "y": 1}, id="a"), final(name="Rome")], final(name="Bonn"))
    agent = Agent(script, output=City, output_mode="tool", tools=[add], output_approval=True)
    await driven.start(agent)
    await waiting(driven)
    await driven.send("reject", "another one")
    await waiting(driven, 2)
    await driven.send("approve")
    assert (await driven.task).output.name == "Bonn"


async def test_a_person_may_pause_and_cancel_what_waits(driven: Driven) -> None:
    await driven.start(Agent(Script("Rome."), output_approval=True))
    await waiting(driven)
    assert await driven.send("pause") is Stage.PAUSED
    assert await driven.send("resume") is Stage.AWAITING_APPROVAL
    await driven.send("cancel", "no more")
    with pytest.raises(CancelledSignal):
        await driven.task


async def test_a_refusal_counts_against_the_limits_and_feedback_that_cannot_be_read_ends_nothing(
    driven: Driven,
) -> None:
    await driven.start(Agent(Script("Rome."), output_approval=True, limits=Limits(max_iterations=1)))
    await waiting(driven)
    assert await driven.send("feedback", "hm") is Stage.AWAITING_APPROVAL
    await driven.send("reject", "no")
    with pytest.raises(IterationLimit):
        await driven.task


async def test_where_a_condition_has_ended_the_run_there_is_no_other_answer(driven: Driven) -> None:
    agent = Agent(Script("Rome."), output_approval=True, features=[RunCondition(late, "clock")])
    await driven.start(agent)
    await waiting(driven)
    await driven.send("reject", "no")
    with pytest.raises(RunConditionError, match="it is late"):
        await driven.task


async def test_feedback_where_a_condition_has_ended_the_run_ends_nothing(driven: Driven) -> None:
    """Nobody can read it any more: a word of thanks takes no answer away."""
    await driven.start(Agent(Script("Rome."), output_approval=True, features=[RunCondition(late, "clock")]))
    await waiting(driven)
    assert await driven.send("feedback", "Thanks!") is Stage.AWAITING_APPROVAL
    await driven.send("approve")
    assert (await driven.task).output == "Rome."


async def test_who_approves_a_childs_answer_late_approves_no_other() -> None:
    """Not that of the next child, nor that of the loop above: each has a name of its own."""
    kid = Agent(Script("A"), name="kid", output_approval=True)
    asks = [call("kid", {"prompt": "one"}), call("kid", {"prompt": "two"})]
    top = Agent(Script([asks[0]], [asks[1]], "done"), tools=[kid.as_tool()], output_approval=True)
    journal = MemoryJournal()
    task = asyncio.create_task(top.run("go", journal=journal, loop_id="top"))
    names: list[str] = []
    for shown in ("A", "A", "done"):
        one = await waiting_below(journal)
        assert json.decode(one.call.args_json) == {"answer": shown}
        for late_name in names:
            with pytest.raises(SignalRefused):
                await send_signal(journal, "top", Signal(SignalType.APPROVE, by="ben", call_id=late_name))
        names.append(one.call.id)
        await send_signal(journal, "top", Signal(SignalType.APPROVE, by="ann", call_id=one.call.id))
    assert len(set(names)) == 3
    assert (await task).output == "done"


async def waiting_below(journal: Journal) -> WaitingCall:
    """What waits at the loop `top` or under it, as soon as something does."""
    while True:
        try:
            found = await calls_waiting(journal, "top")
        except LoopNotFound:
            found = ()
        if found:
            return found[0]
        await asyncio.sleep(0)


async def test_what_an_editor_would_answer_is_approved_by_its_architects_loop() -> None:
    """It is listed there, so it is decided there, too."""
    editor = Agent(Script("edited"), name="editor", output_approval=True)
    architect = Agent(Script("drawn"), role="architect", editor=editor)
    journal = MemoryJournal()
    task = asyncio.create_task(architect.run("go", journal=journal, loop_id="top"))
    one = await waiting_below(journal)
    assert one.loop_id != "top"
    await send_signal(journal, "top", Signal(SignalType.APPROVE, by="ann", call_id=one.call.id))
    assert (await task).output == "drawn"
    _, state = await load(journal, one.loop_id)
    assert (state.at, state.answer) == ("done", "edited")


async def test_it_is_explained_and_its_end_is_recorded_after_the_word(driven: Driven) -> None:
    await driven.start(Agent(Script("Rome."), output_approval=True))
    await waiting(driven)
    events, _ = await load(driven.journal, driven.loop_id)
    explained = explain(events)
    assert explained.verdict == "It waits for somebody to approve the answer."
    assert [(one.action, one.calls) for one in explained.next] == [
        ("approve", (await named(driven),)),
        ("reject", (await named(driven),)),
    ]
    assert (explained.stage, explained.phase) == ("awaiting_approval", "validate")
    await driven.send("approve")
    await driven.task
    events, _ = await load(driven.journal, driven.loop_id)
    assert isinstance(events[-1], Ended)
    assert "the signal approve by me" in explain(events).turns[-1].decided


@pytest.mark.parametrize("chaos", [CALM, ROUGH], ids=["calm", "rough"])
async def test_a_split_loop_waits_and_goes_on_when_the_signal_is_there(chaos: Chaos) -> None:
    driver = SplitDriver(1, chaos)
    agent = Agent(Script("Rome.", "Bonn."), output_approval=True)
    with pytest.raises(AgentRunClosed):
        await agent.run("go", runtime=driver, loop_id="one")
    await send_signal(driver.journal, "one", Signal(SignalType.REJECT, id="s", text="no"))
    with pytest.raises(AgentRunClosed):
        await agent.run("go", runtime=driver, loop_id="one")
    await send_signal(driver.journal, "one", Signal(SignalType.APPROVE, id="t"))
    assert (await agent.run("go", runtime=driver, loop_id="one")).output == "Bonn."


async def test_without_anybody_to_ask_the_run_does_not_begin() -> None:
    agent = Agent(NeverAsked(), output_approval=True)
    with pytest.raises(UserError, match=r"the answer needs approval.*journal=.*run_stream"):
        await agent.run("go")


async def test_a_loop_that_waits_is_resumed_from_its_journal() -> None:
    """Whoever drove it is gone when the word comes: the next one asks no model again."""
    journal = MemoryJournal()
    task = asyncio.create_task(
        Agent(Script("Rome."), output_approval=True).run("go", journal=journal, loop_id="one")
    )
    await journal.wait("one", 0)
    await waits(journal, "one")
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await send_signal(journal, "one", "approve")
    assert (await Agent(NeverAsked(), output_approval=True).resume("one", journal)).output == "Rome."


def test_bad_options_are_told() -> None:
    with pytest.raises(FlyballError, match="output_approval is True or False"):
        Agent(NeverAsked(), output_approval="yes")  # pyright: ignore[reportArgumentType]
    assert Agent(NeverAsked(), output_approval=True).features().used == ("has_output_approval",)


async def test_a_stream_of_a_system_that_nobody_could_approve_is_refused() -> None:
    system = System(Agent(NeverAsked(), output_approval=True))
    request = SystemRequest(messages=(user("go"),))
    *_, last = [piece async for piece in system.stream(request)]
    assert isinstance(last, SystemResponse)
    assert last.error is not None
    assert "the answer needs approval" in last.error.message


class Pay(BaseModel):
    to: str
    amount: int = 1000


WRITTEN: dict[str, tuple[Any, dict[str, Any]]] = {
    "a default": (final(to="bob"), {"output_mode": "tool"}),
    "repaired": ("Sure: ```json\n{'to': 'bob', 'amount': '1000',}\n```", {"output_mode": "native"}),
    "coerced": (final(to="bob", amount="1000"), {"output_mode": "tool"}),
}


@pytest.mark.parametrize(("answer", "options"), WRITTEN.values(), ids=WRITTEN)
async def test_who_approves_is_shown_what_will_be_the_output(
    driven: Driven, answer: Any, options: dict[str, Any]
) -> None:
    """Not what the model wrote: what it leaves out, and what was put right, is approved as well."""
    await driven.start(Agent(Script(answer), output=Pay, output_approval=True, **options))
    await waiting(driven)
    assert await shown(driven) == {"to": "bob", "amount": 1000}
    await driven.send("approve")
    assert (await driven.task).output == Pay(to="bob", amount=1000)


@pytest.mark.parametrize("answer", ["The draft.", final(name="Rome")], ids=["text", "a call"])
async def test_who_goes_on_from_what_was_not_approved_is_told_so(driven: Driven, answer: Any) -> None:
    """What waited when its run ended was given to nobody: it is no answer, and the model reads that."""
    options: dict[str, Any] = {} if isinstance(answer, str) else {"output": City, "output_mode": "tool"}
    await driven.start(Agent(Script(answer), output_approval=True, **options))
    await waiting(driven)
    await driven.send("cancel", "no more")
    with pytest.raises(CancelledSignal):
        await driven.task
    _, state = await load(driven.journal, driven.loop_id)
    assert state.answer is None
    assert state.output is UNSET
    before = said_in(state)
    assert told(before) == ["The answer was not approved before the run ended: nobody was given it."]
    assert before[-1].role is Role.USER
    after = await Agent(Script("Another.")).run("And now?", messages=before)
    assert after.output == "Another."


async def test_of_which_type_the_answer_of_another_loop_was_is_not_said_of_a_forks() -> None:
    """Nor of another attempt's."""
    journal = MemoryJournal()
    typed = Agent(
        Script(call("final_result_City", {"name": "Rome"})),
        output=[City, Country],
        output_mode="tool",
        output_approval=True,
    )
    task = asyncio.create_task(typed.run("go", journal=journal, loop_id="one"))
    await journal.wait("one", 0)
    await waits(journal, "one")
    await send_signal(journal, "one", Signal(SignalType.APPROVE))
    await task
    plain = Agent(Script("Bonn.", first=2), output_approval=True)
    task = asyncio.create_task(plain.fork("one", journal, turn=1, prompt="In words.", new_loop_id="two"))
    await journal.wait("two", 0)
    await waits(journal, "two", 2)
    (one,) = await calls_waiting(journal, "two")
    assert json.decode(one.call.args_json) == {"answer": "Bonn."}
    await send_signal(journal, "two", Signal(SignalType.APPROVE))
    assert (await task).output == "Bonn."

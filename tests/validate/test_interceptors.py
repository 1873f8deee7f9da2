"""Interceptors: what they change is sent and recorded, and what was said stays."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from flyball import (
    Agent,
    AuditLog,
    InterceptResult,
    Limits,
    MemoryJournal,
    MessageInterceptor,
    RedactPII,
    ResponseInterceptor,
    RunContext,
    Signal,
    SignalType,
    send_signal,
    tool,
)
from flyball.core.codec import encode_event
from flyball.core.errors import InvalidMessage, IterationLimit, RequestDropped, RuleFailed, UserError
from flyball.core.events import AnswerReviewed, ModelAnswered, TurnPrepared
from flyball.core.messages import Message, ToolCall, assistant, user
from flyball.inference.answers import tool_call as call
from flyball.orchestrate.recorded import load
from flyball.testing.split import SplitDriver
from tests.orchestrate.models import Script


@tool
async def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


def returns(given: Any) -> Any:
    """A function that gives this, whatever it is asked."""

    def check(*_: Any) -> Any:
        return given

    return check


ADDING = [call("add", {"x": n, "y": 1}) for n in range(40)]
NUMBER = RedactPII(r"\b\d{4}\b", "####")


async def test_what_is_redacted_is_not_sent_and_stays_in_the_history() -> None:
    model = Script(ADDING[0], "done")
    result = await Agent(model, tools=[add], features=[NUMBER]).run("My PIN is 1234.")
    assert [request.messages[0].text for request in model.requests] == ["My PIN is ####."] * 2
    assert result.messages[0].text == "My PIN is 1234."
    first, second = [event for event in await result.events() if isinstance(event, TurnPrepared)]
    assert first.notes == (r"redact_pii: \b\d{4}\b was replaced",)
    assert [edit.messages[0].text for edit in first.edits] == ["My PIN is ####."]
    assert second.edits == (), "what was edited before is not recorded again"


async def test_only_what_the_user_says_is_redacted() -> None:
    model = Script("ok")
    history = [user("1111"), assistant("2222")]
    await Agent(model, instructions="3333", features=[NUMBER]).run("4444", messages=history)
    assert [message.text for message in model.last.messages] == ["3333", "####", "2222", "####"]


async def test_the_journal_of_an_agent_with_interceptors_grows_with_the_work() -> None:
    async def size(turns: int) -> int:
        driver = SplitDriver()
        agent = Agent(
            Script(*ADDING[:turns], "done"),
            tools=[add],
            features=[NUMBER],
            limits=Limits(max_iterations=None),
        )
        result = await agent.run("1234 " * 100, runtime=driver)
        return sum(len(data) for data in driver.journal.bytes[result.loop_id])

    ten, twenty, forty = await size(10), await size(20), await size(40)
    assert forty - twenty < 2.2 * (twenty - ten)


async def test_feedback_that_comes_before_a_request_is_intercepted_too() -> None:
    """Somebody pauses the loop just before the model call, and tells it something: that is looked at."""
    model, journal = Script("never", "done"), MemoryJournal()
    agent = Agent(model, features=[NUMBER])
    async with agent.iter("PIN 1234", journal=journal, loop_id="one"):
        pass
    await send_signal(journal, "one", Signal(SignalType.PAUSE))
    waiting = asyncio.ensure_future(agent.resume("one", journal))
    while (loaded := await load(journal, "one"))[1].at != "infer":
        await journal.wait("one", len(loaded[0]))
    assert (await load(journal, "one"))[1].paused
    await send_signal(journal, "one", Signal(SignalType.FEEDBACK, text="No, it is 5678."))
    await send_signal(journal, "one", Signal(SignalType.RESUME))
    assert (await waiting).output == "done"
    assert [message.text for message in model.last.messages] == ["PIN ####No, it is ####."]
    assert model.calls == 1, "what was prepared without it was never sent"


async def test_an_audit_log_sees_both_directions() -> None:
    seen: list[tuple[str, list[str]]] = []

    async def note(direction: str, messages: Sequence[Message]) -> None:
        seen.append((direction, [message.text for message in messages]))

    await Agent(Script("hello"), features=[NUMBER, AuditLog(note)]).run("hi 1234")
    assert seen == [("request", ["hi ####"]), ("response", ["hello"])]
    plain: list[str] = []
    log = AuditLog(lambda direction, _: plain.append(direction))
    await Agent(Script("hello"), features=[log]).run("hi")
    assert plain == ["request", "response"]


async def test_a_dropped_request_ends_the_run_and_says_who_dropped_it() -> None:
    model = Script("never")
    drop = MessageInterceptor(lambda *_: InterceptResult.drop("not on sundays"), "calendar")
    with pytest.raises(RequestDropped, match="'calendar' dropped the request: not on sundays") as caught:
        await Agent(model, features=[drop]).run("go")
    assert caught.value.details == {"interceptor": "calendar", "reason": "not on sundays"}
    assert not model.calls


async def test_requests_that_are_skipped_for_ever_meet_the_limit() -> None:
    skip = MessageInterceptor(lambda *_: InterceptResult.drop(skip=True), "never")
    with pytest.raises(IterationLimit):
        await Agent(Script(), features=[skip], limits=Limits(max_iterations=3)).run("go")


async def test_answers_that_are_dropped_for_ever_meet_the_limit() -> None:
    drop = ResponseInterceptor(lambda *_: InterceptResult.drop("worse than nothing"), "critic")
    with pytest.raises(IterationLimit) as caught:
        await Agent(Script(*"abc"), features=[drop], limits=Limits(max_iterations=3)).run("go")
    events = await caught.value.partial.events()
    reviewed = [event for event in events if isinstance(event, AnswerReviewed)]
    assert {event.dropped for event in reviewed} == {
        "the interceptor 'critic' dropped it: worse than nothing"
    }
    assert caught.value.partial.usage.requests == 3
    assert caught.value.partial.messages == (user("go"),), "as if it had not been given"


async def test_the_answer_as_it_came_stays_in_the_journal() -> None:
    change = ResponseInterceptor(lambda *_: InterceptResult.modify(assistant("better"), "worse"), "critic")
    result = await Agent(Script("bad"), features=[change]).run("go")
    assert result.output == result.messages[-1].text == "better"
    events = await result.events()
    assert [event.message.text for event in events if isinstance(event, ModelAnswered)] == ["bad"]
    assert [event.notes for event in events if isinstance(event, AnswerReviewed)] == [("critic: worse",)]


async def test_an_interceptor_can_take_a_call_away_and_make_another() -> None:
    def instead(_: RunContext[Any], message: Message) -> InterceptResult | None:
        if not message.tool_calls:
            return None
        return InterceptResult.modify(Message(message.role, (ToolCall("mine", "add", '{"x":1,"y":1}'),)))

    model = Script(call("launch"), "2")
    result = await Agent(model, tools=[add], features=[ResponseInterceptor(instead)]).run("go")
    assert [part.content for message in result.messages for part in message.tool_results] == [2]


@pytest.mark.parametrize(
    ("given", "kind", "told"),
    [
        (InterceptResult.modify([user("x")]), InvalidMessage, "one message of the assistant's"),
        (InterceptResult.modify([]), InvalidMessage, "one message of the assistant's"),
        ("better", UserError, "gave a str: it must give None, or InterceptResult"),
        (assistant("better"), UserError, "gave a Message"),
    ],
    ids=["no answer", "nothing", "text", "a message"],
)
async def test_what_is_no_decision_about_an_answer_is_told(given: Any, kind: Any, told: str) -> None:
    agent = Agent(Script("ok"), features=[ResponseInterceptor(lambda *_: given, "odd")])
    with pytest.raises(kind, match=told):
        await agent.run("go")


async def test_a_call_must_not_be_given_an_id_that_is_used() -> None:
    def again(ctx: RunContext[Any], message: Message) -> InterceptResult | None:
        if ctx.run_step == 1:
            return None
        return InterceptResult.modify(Message(message.role, (ToolCall("a", "add", "{}"),)))

    model = Script(ToolCall("a", "add", '{"x":1,"y":1}'), "2")
    with pytest.raises(InvalidMessage, match="gave a call the id 'a'"):
        await Agent(model, tools=[add], features=[ResponseInterceptor(again)]).run("go")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (InterceptResult.modify([]), "cannot be sent: a history that is sent ends with"),
        (InterceptResult.modify([assistant("x")]), "cannot be sent: message 0"),
        (InterceptResult.modify([user("x"), user("y")]), "cannot be sent: message 1"),
        (InterceptResult.modify([Message("user", ())]), "cannot be sent: message 0"),  # pyright: ignore[reportArgumentType]
        ([user("x")], "gave a list"),
    ],
    ids=["nothing", "an answer first", "twice", "no role", "a list"],
)
async def test_what_cannot_be_sent_is_told_and_not_sent(given: Any, told: str) -> None:
    model = Script("never")
    with pytest.raises(UserError, match=told):
        await Agent(model, features=[MessageInterceptor(lambda *_: given, "odd")]).run("go")
    assert not model.calls


@pytest.mark.parametrize(
    "given",
    [
        InterceptResult.modify("text"),  # pyright: ignore[reportArgumentType]
        InterceptResult.modify([None]),  # pyright: ignore[reportArgumentType]
        InterceptResult.drop(3),  # pyright: ignore[reportArgumentType]
    ],
    ids=["text", "nothing", "a number"],
)
@pytest.mark.parametrize("kind", [MessageInterceptor, ResponseInterceptor])
async def test_what_could_not_be_recorded_is_told(kind: Any, given: Any) -> None:
    with pytest.raises(UserError, match="the interceptor 'odd' gave InterceptResult"):
        await Agent(Script("ok"), features=[kind(returns(given), "odd")]).run("go")


async def test_a_reason_that_utf8_cannot_hold_is_recorded_all_the_same() -> None:
    drop = MessageInterceptor(lambda *_: InterceptResult.drop("\ud800!"), "odd")
    with pytest.raises(RequestDropped) as caught:
        await Agent(Script("never"), features=[drop]).run("go", runtime=SplitDriver())
    assert caught.value.details["reason"].endswith("!")


async def test_an_interceptor_that_fails_fails_the_run() -> None:
    for kind in (MessageInterceptor, ResponseInterceptor):
        with pytest.raises(RuleFailed, match="interceptor 'broken' failed: ZeroDivisionError"):
            await Agent(Script("ok"), features=[kind(lambda *_: 1 // 0, "broken")]).run("go")


@pytest.mark.parametrize(
    "make",
    [
        lambda: RedactPII("("),
        lambda: RedactPII(3),  # pyright: ignore[reportArgumentType]
        lambda: RedactPII(b"x"),  # pyright: ignore[reportArgumentType]
        lambda: RedactPII("x", 3),  # pyright: ignore[reportArgumentType]
        lambda: AuditLog("x"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_cannot_be_is_told_at_once(make: Any) -> None:
    with pytest.raises(UserError):
        make()


async def test_edits_are_small_in_the_journal() -> None:
    result = await Agent(Script("ok"), features=[NUMBER]).run("1234")
    (prepared,) = [event for event in await result.events() if isinstance(event, TurnPrepared)]
    assert set(json.loads(encode_event(prepared))) == {"event", "at", "turn", "edits", "notes"}

"""History processors: what they give is sent, made valid or refused, and told of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, ContextCompaction, HistoryProcessor, RunContext, tool
from flyball.core.errors import InvalidMessage, RuleFailed, UserError
from flyball.core.events import TurnPrepared
from flyball.core.history import check_history
from flyball.core.messages import Message, Role, assistant, system, user
from flyball.inference.answers import tool_call as call
from flyball.memory.valid import led_by_user, made_valid
from flyball.testing import ScriptedEngine
from tests.histories import histories


@tool
async def look(n: int) -> str:
    """Look."""
    return f"saw {n}: " + "a lot " * n


LOOKING = [call("look", {"n": n}, id=f"c{n}") for n in range(6)]


@given(histories())
def test_what_is_valid_comes_back_as_it_is(history: list[Message]) -> None:
    assert made_valid(history) == history
    assert led_by_user(history, history) is history


@given(histories(), st.data())
def test_every_slice_to_the_end_can_be_sent(history: list[Message], data: st.DataObject) -> None:
    given_back = history[data.draw(st.integers(0, len(history) - 1)) :]
    made = made_valid(led_by_user(given_back, history))
    check_history(made, complete=True)
    assert made[-1] == history[-1]


@given(histories(), st.data())
def test_whatever_is_left_out_no_call_is_parted_from_its_result(
    history: list[Message], data: st.DataObject
) -> None:
    kept = [message for message in history if data.draw(st.booleans())]
    made = made_valid(kept)
    assert made_valid(made) == made, "once is enough"
    if made and made[-1].role in (Role.USER, Role.TOOL):
        check_history(made, complete=True)
    else:
        check_history(made)


@given(st.lists(st.sampled_from([user("a"), assistant("b"), system("c")]), max_size=6))
def test_what_is_in_no_order_is_made_valid_or_refused(messages: list[Message]) -> None:
    made = made_valid(messages)
    late_system = any(message.role is Role.SYSTEM for message in made[1:])
    if late_system:
        with pytest.raises(InvalidMessage):
            check_history(made)
    else:
        check_history(made)


async def sent_by(processor: HistoryProcessor, *more: HistoryProcessor) -> list[list[Message]]:
    engine = ScriptedEngine(*LOOKING[1:4], "done")
    agent = Agent(engine, tools=[look], instructions="Be brief.", features=[processor, *more])
    result = await agent.run("Look around.")
    assert [message.role for message in result.messages[:2]] == ["system", "user"]
    assert len(result.messages) == 9, "what was said stays whole"
    return [list(request.messages) for request in engine.calls]


def alone(messages: Sequence[Message]) -> Sequence[Message]:
    return messages[-3:]


def in_context(ctx: RunContext[Any], messages: Sequence[Message]) -> Sequence[Message]:
    assert ctx.messages[-1] == messages[-1]
    return messages[-3:]


def with_a_default(messages: Sequence[Message], most: int = 3) -> Sequence[Message]:
    return messages[-most:]


def of_any_number(*given: Any) -> Sequence[Message]:
    return given[1][-3:]


def one_by_one(messages: Sequence[Message]) -> Iterator[Message]:
    yield from messages[-3:]


async def later(messages: Sequence[Message]) -> Sequence[Message]:
    return messages[-3:]


@pytest.mark.parametrize(
    "function",
    [alone, in_context, with_a_default, of_any_number, one_by_one, later],
    ids=lambda function: function.__name__,
)
async def test_a_function_takes_the_messages_and_perhaps_the_context(function: Callable[..., Any]) -> None:
    sent = await sent_by(HistoryProcessor(function, "last"))
    assert [len(messages) for messages in sent] == [2, 4, 6, 6], "the instructions hold for a slice too"
    for messages in sent[2:]:
        check_history(messages, complete=True)
        roles = ["system", "user", "assistant", "tool", "assistant", "tool"]
        assert [message.role for message in messages] == roles


async def test_each_sees_what_the_one_before_left() -> None:
    seen: list[int] = []

    async def counting(ctx: RunContext[Any], messages: Sequence[Message]) -> Sequence[Message]:
        seen.append(len(messages))
        return messages

    def first_two(messages: Sequence[Message]) -> Sequence[Message]:
        return messages[:2]

    await sent_by(HistoryProcessor(first_two), HistoryProcessor(counting))
    assert seen == [2, 2, 2, 2]


async def test_only_what_is_shorter_is_told() -> None:
    def shout(messages: Sequence[Message]) -> list[Message]:
        return [user("LOOK."), *messages[1:]]

    def shorter(messages: Sequence[Message]) -> Sequence[Message]:
        return messages[-2:]

    engine = ScriptedEngine(LOOKING[1], LOOKING[5], "done")
    features = [HistoryProcessor(shout), HistoryProcessor(shorter)]
    result = await Agent(engine, tools=[look], features=features).run("Look.")
    prepared = [event for event in await result.events() if isinstance(event, TurnPrepared)]
    assert [event.notes for event in prepared] == [("shout",), ("shout",), ("shout", "shorter")]
    told = [compaction for event in prepared for compaction in event.compactions]
    assert [(one.by, one.messages_before, one.messages_after) for one in told] == [
        ("shorter", 5, 3),
    ]
    assert all(one.tokens_before > 0 < one.tokens_after for one in told)


def test_fewer_tokens_are_told_where_they_are_noticeably_fewer() -> None:
    processor = HistoryProcessor(alone, "same")
    long, little_less, much_less = ([user("x" * size)] for size in (400, 384, 300))
    assert processor.compaction(long, long) is None
    assert processor.compaction(long, little_less) is None
    told = processor.compaction(long, much_less)
    assert told == ContextCompaction("history_processor", 1, 1, 100, 75, "same")
    assert processor.compaction(much_less, long) is None


def no_part() -> list[Message]:
    odd: Any = object()
    return [Message(Role.USER, (odd,))]


REFUSED: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "nothing": (lambda _: [], InvalidMessage, "'odd' gave messages that cannot be sent"),
    "no user": (lambda _: [assistant("I begin.")], InvalidMessage, "'odd' gave messages that cannot be sent"),
    "an answer last": (
        lambda messages: [*messages, assistant("And I end.")],
        InvalidMessage,
        "ends with a user or a tool",
    ),
    "a late system": (lambda messages: [*messages, system("Late.")], InvalidMessage, "cannot be sent"),
    "none": (lambda _: None, UserError, "must give a list of messages"),
    "no messages": (lambda _: ["hi"], UserError, "must give a list of messages"),
    "fails": (lambda _: 1 / 0, RuleFailed, "the history processor 'odd' failed: ZeroDivisionError"),
    "no part": (lambda _: no_part(), InvalidMessage, "cannot be sent"),
}


@pytest.mark.parametrize(("function", "error", "words"), REFUSED.values(), ids=REFUSED)
async def test_what_cannot_be_sent_is_refused_by_name(
    function: Callable[..., Any], error: type[Exception], words: str
) -> None:
    engine = ScriptedEngine("never")
    with pytest.raises(error, match=words):
        await Agent(engine, features=[HistoryProcessor(function, "odd")]).run("Hi")
    assert not engine.calls


async def test_an_estimator_that_fails_is_the_processors_failure() -> None:
    def lost(_: str) -> int:
        raise LookupError("lost")

    processor = HistoryProcessor(alone)
    processor.estimator = lost
    with pytest.raises(RuleFailed, match="the history processor 'alone' failed: LookupError: lost"):
        await Agent(ScriptedEngine("never"), features=[processor]).run(
            "Hi", messages=[user("a"), assistant("b")] * 3
        )


def test_it_is_made_of_a_function() -> None:
    with pytest.raises(UserError, match="takes a function"):
        HistoryProcessor(3)  # pyright: ignore[reportArgumentType]
    assert HistoryProcessor(max).name == "max"

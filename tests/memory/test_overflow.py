"""ContextOverflow: when it was too much, less is sent, and that is valid, however often it is tried."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import (
    Agent,
    ChangeRequest,
    ContextCompaction,
    ContextOverflow,
    Request,
    Result,
    estimate_tokens,
    tool,
)
from flyball.core.errors import ContextExceeded, MiddlewareFailed, UserError
from flyball.core.events import ModelAnswered, ModelFailed
from flyball.core.history import check_history
from flyball.core.messages import Message, Role, ToolCall, ToolResult, assistant, system, tool_results, user
from flyball.core.pin import instruction_pin
from flyball.inference.answers import tool_call as call
from flyball.inference.request import ModelInfo
from flyball.inference.stream import Finish, StreamEvent, TextDelta
from flyball.memory.overflow import LEFT_OUT
from tests.histories import histories


class Narrow:
    """Takes no more than so many tokens; says how many there were, or only that it was too much."""

    def __init__(self, window: int, *, told: bool = True, words: int = 0) -> None:
        self.window = window
        self.told = told
        self.words = words
        self.asked: list[Request] = []

    async def infer(self, request: Request) -> Result:
        self._look_at(request)
        return Result(assistant("yes"))

    async def stream(self, request: Request) -> AsyncGenerator[StreamEvent]:
        for _ in range(self.words):
            yield TextDelta(0, "word ")
        self._look_at(request)
        yield TextDelta(0, "yes")
        yield Finish()

    def model_info(self) -> ModelInfo:
        return ModelInfo("narrow", self.window)

    def _look_at(self, request: Request) -> None:
        self.asked.append(request)
        tokens = estimate_tokens(request.messages)
        if tokens > self.window:
            details: dict[str, Any] = (
                {"prompt_tokens": tokens, "context_window": self.window} if self.told else {}
            )
            raise ContextExceeded(f"{tokens} are more than {self.window}", **details)


async def asked(engine: Narrow, history: list[Message], middleware: ContextOverflow) -> Exception | None:
    try:
        await middleware.request(Request(tuple(history)), engine.infer)
    except ContextExceeded as error:
        return error
    return None


def played(engine: Narrow, history: list[Message], middleware: ContextOverflow) -> Exception | None:
    """The same without an event loop: nothing in it waits."""
    running = asked(engine, history, middleware)
    try:
        running.send(None)
    except StopIteration as ended:
        return ended.value
    raise AssertionError("it waits for something")


@given(histories(), st.integers(1, 400), st.booleans(), st.integers(1, 4))
def test_each_request_is_valid_and_shorter_than_the_one_before(
    history: list[Message], window: int, told: bool, attempts: int
) -> None:
    engine = Narrow(window, told=told)
    error = played(engine, history, ContextOverflow(attempts))
    assert engine.asked[0].messages == tuple(history)
    assert len(engine.asked) <= attempts + 1
    sizes = [estimate_tokens(request.messages) for request in engine.asked]
    assert all(later < earlier for earlier, later in pairwise(sizes))
    assert (error is None) == (sizes[-1] <= window)
    for request in engine.asked[1:]:
        check_history(request.messages, complete=True)
        assert [one for one in request.messages if one.role is Role.SYSTEM] == [
            one for one in history if one.role is Role.SYSTEM
        ]
        assert request.messages[-1].role is history[-1].role


LONG = [
    system("Be brief."),
    user("Read it all."),
    assistant("", ToolCall("a", "read")),
    tool_results([ToolResult("a", "read", "many words " * 400)]),
    assistant("", ToolCall("b", "read")),
    tool_results([ToolResult("b", "read", "few words")]),
]


def test_the_longest_results_are_cut_first() -> None:
    engine = Narrow(400)
    assert played(engine, LONG, ContextOverflow()) is None
    sent = engine.asked[-1].messages
    assert len(sent) == len(LONG)
    assert "[truncated" in sent[3].tool_results[0].text
    assert (sent[:3], sent[4:]) == (tuple(LONG[:3]), tuple(LONG[4:]))


def test_then_the_oldest_messages_are_left_out_and_the_pin_is_kept() -> None:
    talk = [system("Be brief."), user("Plan a trip.")]
    for number in range(20):
        talk += [assistant(f"Idea {number}. " * 10), user(f"No, not {number}. " * 5)]
    engine = Narrow(500)
    assert played(engine, talk, ContextOverflow()) is None
    sent = engine.asked[-1].messages
    assert sent[:2] == tuple(talk[:2])
    assert sent[2] == assistant(f"{LEFT_OUT}\n\n{instruction_pin(talk)}")
    kept = len(sent) - 3
    assert sent[3 if sent[3].text == talk[-kept].text else 4 :] == tuple(talk)[-kept:][: len(sent)]
    assert len(sent) > 6, "no more than must be is left out"


def test_a_first_message_that_is_too_long_is_cut() -> None:
    talk = [user("word " * 2000), assistant("What?"), user("Never mind.")]
    engine = Narrow(400)
    assert played(engine, talk, ContextOverflow()) is None
    sent = engine.asked[-1].messages
    assert "[truncated" in sent[0].text
    assert sent[-1] == talk[-1]


@pytest.mark.parametrize("told", [True, False])
def test_what_cannot_be_made_shorter_is_not_tried_again(told: bool) -> None:
    engine = Narrow(10, told=told)
    assert isinstance(played(engine, [user("word " * 100)], ContextOverflow()), ContextExceeded)
    assert len(engine.asked) == 1


async def test_a_stream_is_tried_again_before_its_first_piece_only() -> None:
    overflow, request = ContextOverflow(), Request(tuple(LONG))

    async def pieces(engine: Narrow) -> list[StreamEvent]:
        return [piece async for piece in overflow.stream(request, engine.stream)]

    engine = Narrow(400)
    assert [type(piece) for piece in await pieces(engine)] == [TextDelta, Finish]
    assert len(engine.asked) == 2
    broken_off = Narrow(400, words=2)
    with pytest.raises(ContextExceeded):
        await pieces(broken_off)
    assert len(broken_off.asked) == 1
    hopeless = Narrow(1)
    with pytest.raises(ContextExceeded):
        await pieces(hopeless)


@tool
async def read(page: int) -> str:
    """Read a page."""
    return f"page {page}: " + "many words " * 40


class Reading(Narrow):
    """Reads five pages, and then answers."""

    async def infer(self, request: Request) -> Result:
        await super().infer(request)
        turn = int(request.id.split("/")[-3])
        return Result(assistant("the end") if turn > 5 else assistant("", call("read", {"page": turn})))


async def test_what_was_done_is_recorded_with_the_answer_and_the_history_stays_whole() -> None:
    engine = Reading(300)
    result = await Agent(engine, tools=[read], features=[ContextOverflow()]).run("Read.", loop_id="book")
    assert result.output == "the end"
    assert len(result.messages) == 12
    answered = [event for event in await result.events() if isinstance(event, ModelAnswered)]
    around = [event.around for event in answered if event.around is not None]
    assert around
    for one in around:
        (compaction,) = one.compactions
        assert (compaction.strategy, compaction.by) == ("emergency_truncation", "context_overflow")
        assert compaction.tokens_after < compaction.tokens_before
        assert one.sent[-1].by == ("context_overflow",)


async def test_a_failure_says_what_was_tried() -> None:
    class Never(Reading):
        async def infer(self, request: Request) -> Result:
            if int(request.id.split("/")[-3]) == 4:
                self.window = 20
            return await super().infer(request)

    with pytest.raises(ContextExceeded) as caught:
        await Agent(Never(300), tools=[read], features=[ContextOverflow(2)]).run("Read.")
    assert caught.value.partial is not None
    (failed,) = [event for event in await caught.value.partial.events() if isinstance(event, ModelFailed)]
    assert failed.around is not None
    assert [compaction.messages_before for compaction in failed.around.compactions] == [7]


class Telling(ChangeRequest):
    """Says of itself what it is told to say."""

    def __init__(self, told: Any) -> None:
        super().__init__(lambda request: replace(request, messages=request.messages[-1:]), "telling")
        self.told = told

    def compaction(self, given: Request, passed: Request) -> ContextCompaction | None:
        return self.told


async def test_a_middleware_of_ones_own_may_say_what_it_left_out() -> None:
    told = ContextCompaction("by_hand", 3, 1, 9, 3)
    agent = Agent(Narrow(300), features=[Telling(told)])
    result = await agent.run("Hi", messages=[user("a"), assistant("b")])
    (answered,) = [event for event in await result.events() if isinstance(event, ModelAnswered)]
    assert answered.around is not None
    assert answered.around.compactions == (told,)


@pytest.mark.parametrize("odd", ["shorter", ContextCompaction("x", 1, 1, 1, 1.5)], ids=["text", "a fraction"])  # pyright: ignore[reportArgumentType]
async def test_what_could_not_be_recorded_is_refused(odd: Any) -> None:
    with pytest.raises(MiddlewareFailed, match=r"'telling' gave a .*, not a ContextCompaction"):
        await Agent(Narrow(300), features=[Telling(odd)]).run("Hi", messages=[user("a"), assistant("b")])


@pytest.mark.parametrize("wrong", [0, -1, 1.5, "3"], ids=repr)
def test_a_number_of_attempts_is_asked_for(wrong: Any) -> None:
    with pytest.raises(UserError, match="ContextOverflow takes a number of attempts"):
        ContextOverflow(wrong)

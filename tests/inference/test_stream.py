from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from time import process_time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import UnexpectedModelBehavior
from flyball.core.messages import FinishReason, Image, Message, Role, Text, Thinking, ToolCall
from flyball.core.usage import Usage
from flyball.inference.request import Result
from flyball.inference.stream import (
    Assembler,
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    close_stream,
    collect,
)
from tests.inference.strategies import streamed_messages

Case = tuple[Message, list[StreamEvent]]


def assembled(events: Sequence[StreamEvent]) -> Assembler:
    assembler = Assembler()
    for event in events:
        assembler.feed(event)
    return assembler


@given(streamed_messages())
def test_however_a_message_is_cut_it_is_joined_the_same(case: Case) -> None:
    message, events = case
    finish = events[-1]
    assert isinstance(finish, Finish)
    assert assembled(events).result() == Result(message, finish.request_id)


@given(streamed_messages(), st.data())
def test_looking_half_way_changes_nothing(case: Case, data: st.DataObject) -> None:
    message, events = case
    looks = data.draw(st.sets(st.integers(0, len(events))))
    assembler = Assembler()
    for number, event in enumerate(events):
        if number in looks:
            assembler.message()
        assembler.feed(event)
    assert assembler.result().message == message


@given(streamed_messages(), st.data())
def test_the_text_so_far_is_the_beginning_of_the_text(case: Case, data: st.DataObject) -> None:
    message, events = case
    so_far = assembled(events[: data.draw(st.integers(0, len(events)))]).message()
    assert so_far.role is Role.ASSISTANT
    for part in so_far.parts:
        if isinstance(part, Text):
            assert any(
                isinstance(whole, Text) and whole.text.startswith(part.text) for whole in message.parts
            )


@given(streamed_messages())
def test_stream_events_survive_being_written_down(case: Case) -> None:
    events = case[1]
    assert msgspec.json.decode(msgspec.json.encode(events), type=list[StreamEvent]) == events


@given(streamed_messages())
def test_a_stream_without_its_finish_is_no_answer(case: Case) -> None:
    message, events = case
    assembler = assembled(events[:-1])
    assert assembler.message().parts == message.parts
    with pytest.raises(UnexpectedModelBehavior, match="without a Finish") as caught:
        assembler.result()
    assert caught.value.details["body"] == message.text


@given(streamed_messages())
def test_nothing_may_follow_the_finish(case: Case) -> None:
    assembler = assembled(case[1])
    before = assembler.message()
    late: list[StreamEvent] = [
        TextDelta(0, "x"),
        ThinkingDelta(0, "x"),
        ToolCallDelta(0, "x"),
        PartStart(9, Text("x")),
        PartEnd(0),
        Finish(),
    ]
    for event in late:
        with pytest.raises(UnexpectedModelBehavior, match="after the Finish") as caught:
            assembler.feed(event)
        assert caught.value.record().caused_by is None
    assert assembler.message() == before


CALL = ToolCall("1", "add")
WRONG: list[tuple[list[StreamEvent], str]] = [
    ([ToolCallDelta(0, "{")], "before the PartStart that names the tool"),
    (
        [TextDelta(0, "a"), ToolCallDelta(0, "{")],
        "ToolCall delta for part 0 came, but that part is of kind Text",
    ),
    (
        [PartStart(0, CALL), TextDelta(0, "a")],
        "Text delta for part 0 came, but that part is of kind ToolCall",
    ),
    (
        [TextDelta(0, "a"), ThinkingDelta(0, "b")],
        "Thinking delta for part 0 came, but that part is of kind Text",
    ),
    (
        [ThinkingDelta(3, "a"), TextDelta(3, "b")],
        "Text delta for part 3 came, but that part is of kind Thinking",
    ),
    ([PartStart(0, Image("https://example.com")), TextDelta(0, "b")], "that part is of kind Image"),
    ([TextDelta(0, "a"), PartEnd(0), TextDelta(0, "b")], "that part is complete"),
    ([PartStart(0, CALL), PartEnd(0), ToolCallDelta(0, "{}")], "that part is complete"),
    ([PartStart(0, CALL), PartStart(0, Text("a"))], "started twice: as ToolCall, then as Text"),
    ([TextDelta(0, "a"), PartStart(0, Text("a"))], "started twice"),
    ([PartEnd(2)], "part 2 ended and never began"),
    ([TextDelta(0, "a"), PartEnd(0, CALL)], "began as Text and ended as ToolCall"),
]


@pytest.mark.parametrize(("events", "wrong"), WRONG)
def test_a_wrong_event_is_refused_and_says_why(events: list[StreamEvent], wrong: str) -> None:
    *good, bad = events
    assembler = assembled(good)
    before = assembler.message()
    with pytest.raises(UnexpectedModelBehavior, match=wrong) as caught:
        assembler.feed(bad)
    assert caught.value.record().caused_by is None
    assert assembler.message() == before


def test_a_part_is_seen_as_far_as_it_has_come() -> None:
    assembler = assembled(
        [TextDelta(1, "b"), PartStart(0, ToolCall("1", "add", "")), ToolCallDelta(0, '{"a"')]
    )
    assert assembler.part(0) == ToolCall("1", "add", '{"a"')
    assert assembler.part(1) == Text("b")
    assert assembler.part(2) is None
    assert assembler.message() == Message(Role.ASSISTANT, (ToolCall("1", "add", '{"a"'), Text("b")))


def test_a_call_that_starts_without_arguments_takes_those_of_its_deltas() -> None:
    assert assembled([PartStart(0, CALL), ToolCallDelta(0, '{"a": 1}')]).part(0) == ToolCall(
        "1", "add", '{"a": 1}'
    )
    assert assembled([PartStart(0, CALL), PartEnd(0)]).part(0) == CALL


def test_the_end_of_a_part_may_know_more() -> None:
    signed = Thinking("hm", signature="s")
    assert assembled([ThinkingDelta(0, "hm"), PartEnd(0, signed)]).message().parts == (signed,)


@pytest.mark.slow
def test_feeding_costs_the_same_however_long_the_stream_is() -> None:
    def cost(count: int) -> float:
        events: list[StreamEvent] = [TextDelta(0, "word ")] * count
        best = 1.0
        for _ in range(5):
            feed = Assembler().feed
            start = process_time()
            for event in events:
                feed(event)
            best = min(best, (process_time() - start) / count)
        return best

    # A factor that noise does not reach and that anything quadratic leaves far behind.
    assert cost(50_000) < 10 * cost(500)


class Source:
    """A stream that says whether it was closed."""

    def __init__(self, *events: StreamEvent) -> None:
        self._events = iter(events)
        self.closed = 0

    def __aiter__(self) -> AsyncIterator[StreamEvent]:
        return self

    async def __anext__(self) -> StreamEvent:
        for event in self._events:
            return event
        raise StopAsyncIteration

    async def aclose(self) -> None:
        self.closed += 1


async def test_collect_gives_the_result_and_closes_the_stream() -> None:
    source = Source(TextDelta(0, "a"), TextDelta(0, "b"), Finish(Usage(1, 2), "m", FinishReason.STOP, "r"))
    result = await collect(source)
    assert result == Result(
        Message(Role.ASSISTANT, (Text("ab"),), usage=Usage(1, 2), model="m", finish_reason=FinishReason.STOP),
        "r",
    )
    assert source.closed == 1


async def test_collect_closes_a_stream_that_goes_wrong() -> None:
    source = Source(TextDelta(0, "a"), ToolCallDelta(0, "b"), Finish())
    with pytest.raises(UnexpectedModelBehavior):
        await collect(source)
    assert source.closed == 1


async def test_what_cannot_be_closed_is_left_alone() -> None:
    class Plain:
        def __aiter__(self) -> AsyncIterator[StreamEvent]:
            raise NotImplementedError

    await close_stream(Plain())


@given(streamed_messages(), streamed_messages(), st.data())
def test_what_came_before_a_restart_is_void(case: Case, void: Case, data: st.DataObject) -> None:
    message, events = case
    before = void[1][: data.draw(st.integers(0, len(void[1]) - 1))]
    assert assembled([*before, Restart(), *events]).message() == message


def test_a_finished_answer_does_not_begin_again() -> None:
    with pytest.raises(UnexpectedModelBehavior, match="Restart"):
        assembled([Finish(), Restart()])


def test_empty_pieces_leave_a_call_without_arguments() -> None:
    events: list[StreamEvent] = [PartStart(0, CALL), ToolCallDelta(0, ""), PartEnd(0), Finish()]
    assert assembled(events).message().tool_calls == (CALL,)

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable

import pytest
from hypothesis import given

from flyball.core.errors import StreamRestarted, UnexpectedModelBehavior
from flyball.core.messages import Message, Text, Thinking, ToolCall
from flyball.inference.handler import feed_handler
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    StreamHandler,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    collect,
)
from tests.inference.strategies import streamed_messages


class Heard:
    """What the three callbacks heard."""

    def __init__(self) -> None:
        self.content: list[str] = []
        self.reasoning: list[str] = []
        self.calls: list[tuple[str, str]] = []
        self.handler = StreamHandler(
            self.content.append, self.reasoning.append, lambda name, args: self.calls.append((name, args))
        )


async def source(events: Iterable[StreamEvent]) -> AsyncGenerator[StreamEvent, None]:
    for event in events:
        yield event


@given(streamed_messages())
async def test_the_callbacks_hear_the_whole_answer_and_the_events_pass_unchanged(
    case: tuple[Message, list[StreamEvent]],
) -> None:
    message, events = case
    heard = Heard()
    assert [event async for event in feed_handler(heard.handler, source(events))] == events
    assert sorted("".join(heard.content)) == sorted(message.text)
    assert sorted("".join(heard.reasoning)) == sorted(message.thinking)
    assert sorted(heard.calls) == sorted((call.name, call.args_json) for call in message.tool_calls)
    assert "" not in heard.content + heard.reasoning


async def test_pieces_are_heard_as_they_come_and_calls_when_they_are_complete() -> None:
    heard = Heard()
    log: list[tuple[list[str], list[str], list[tuple[str, str]]]] = []
    events: list[StreamEvent] = [
        ThinkingDelta(0, "hm"),
        PartStart(1, Text("Hel")),
        TextDelta(1, "lo"),
        PartStart(2, ToolCall("1", "add", "")),
        ToolCallDelta(2, '{"a":'),
        ToolCallDelta(2, " 1}"),
        PartEnd(2),
        PartStart(3, ToolCall("2", "stop")),
        Finish(),
    ]
    async for _ in feed_handler(heard.handler, source(events)):
        log.append(([*heard.reasoning], [*heard.content], [*heard.calls]))
    assert log[0] == (["hm"], [], [])
    assert log[1] == (["hm"], ["Hel"], [])
    assert log[2] == (["hm"], ["Hel", "lo"], [])
    assert log[5] == log[2]
    assert log[6] == (["hm"], ["Hel", "lo"], [("add", '{"a": 1}')])
    assert log[7] == log[6]
    assert log[8] == (["hm"], ["Hel", "lo"], [("add", '{"a": 1}'), ("stop", "{}")])


async def test_parts_that_come_whole_at_their_end_are_heard_too() -> None:
    heard = Heard()
    events = [PartEnd(0, Thinking("hm")), PartEnd(1, Text("a")), PartEnd(2, ToolCall("1", "add")), Finish()]
    await collect(feed_handler(heard.handler, source(events)))
    assert (heard.reasoning, heard.content, heard.calls) == (["hm"], ["a"], [("add", "{}")])


async def test_callbacks_may_be_left_out() -> None:
    events = [TextDelta(0, "a"), ThinkingDelta(1, "b"), PartStart(2, ToolCall("1", "add")), Finish()]
    result = await collect(feed_handler(StreamHandler(), source(events)))
    assert result.content == "a"


async def test_a_callback_that_raises_ends_the_stream() -> None:
    closed = False

    async def open_source() -> AsyncGenerator[StreamEvent, None]:
        nonlocal closed
        try:
            yield TextDelta(0, "a")
            yield TextDelta(0, "b")
        finally:
            closed = True

    def refuse(text: str) -> None:
        raise ZeroDivisionError(text)

    with pytest.raises(ZeroDivisionError, match="a"):
        await collect(feed_handler(StreamHandler(refuse), open_source()))
    assert closed


async def test_events_that_make_no_answer_are_refused() -> None:
    with pytest.raises(UnexpectedModelBehavior, match="before the PartStart"):
        await collect(feed_handler(StreamHandler(), source([ToolCallDelta(0, "{")])))


async def test_an_answer_that_begins_again_is_told_to_who_was_given_some_of_it() -> None:
    heard: list[str] = []
    handler = StreamHandler(on_content=heard.append, on_restart=lambda: heard.append("again"))
    call = PartStart(1, ToolCall("a", "add"))
    events = [TextDelta(0, "one"), call, Restart(), TextDelta(0, "two"), Finish()]
    assert [event async for event in feed_handler(handler, source(events))] == events
    assert heard == ["one", "again", "two"]


async def test_who_cannot_be_told_that_an_answer_begins_again_gets_an_error() -> None:
    heard = Heard()
    for first in (TextDelta(0, "one"), ThinkingDelta(0, "hm")):
        with pytest.raises(StreamRestarted, match="on_restart"):
            await collect(feed_handler(heard.handler, source([first, Restart()])))
    unheard = [ThinkingDelta(0, "hm"), Restart(), TextDelta(0, "two"), Finish()]
    only_content = StreamHandler(on_content=heard.content.append)
    assert (await collect(feed_handler(only_content, source(unheard)))).message.text == "two"

"""Assistant's messages of all shapes, and all the ways to cut them into stream events."""

from __future__ import annotations

from hypothesis import strategies as st
from msgspec.structs import replace

from flyball.core.messages import Audio, FinishReason, Image, Message, Part, Role, Text, Thinking, ToolCall
from flyball.core.usage import Usage
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)

extras = st.none() | st.dictionaries(st.text(max_size=3), st.integers(), min_size=1, max_size=2)
texts = st.builds(Text, st.text(), extras)
thinkings = st.builds(Thinking, st.text(), st.none() | st.text(max_size=5), extras, extras)
arguments = st.sampled_from(["", "{}", "{ }", '{"a": 1}', '{"a": "\\u00e9', "[1, 2]"]) | st.text()
calls = st.builds(ToolCall, st.text(), st.text(), arguments, extras, extras)
images = st.builds(Image, st.just("https://example.com/a.png"), extra=extras)
audios = st.builds(Audio, st.just("data:audio/wav;base64,"), st.just("audio/wav"))

parts: st.SearchStrategy[Part] = st.one_of(texts, thinkings, calls, images, audios)
usages = st.builds(Usage, st.integers(0, 9), st.integers(0, 9))

messages = st.builds(
    Message,
    st.just(Role.ASSISTANT),
    st.lists(parts, max_size=4).map(tuple),
    usage=st.none() | usages,
    model=st.none() | st.text(max_size=5),
    finish_reason=st.none() | st.sampled_from(FinishReason),
    extra=extras,
)


@st.composite
def pieces(draw: st.DrawFn, text: str) -> list[str]:
    """A text cut anywhere, empty pieces included."""
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=4)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]


@st.composite
def part_events(draw: st.DrawFn, index: int, part: Part) -> list[StreamEvent]:
    """One part as an engine might send it."""
    if isinstance(part, Text | Thinking):
        first, *rest = draw(pieces(part.text))
        delta = TextDelta if isinstance(part, Text) else ThinkingDelta
        deltas: list[StreamEvent] = [delta(index, piece) for piece in rest]
        if draw(st.booleans()):
            # What only the end knows: the deltas say the text, the end says all.
            return [delta(index, first), *deltas, PartEnd(index, part)]
        start = PartStart(index, replace(part, text=first))
        return [start, *deltas, *draw(st.sampled_from([[], [PartEnd(index)]]))]
    if isinstance(part, ToolCall):
        first, *rest = draw(pieces(part.args_json))
        if first == "{}" != part.args_json:
            # "{}" at the start stands for "not known yet".
            first, rest = "", [first, *rest]
        start = PartStart(index, replace(part, args_json=first))
        return [start, *[ToolCallDelta(index, piece) for piece in rest], PartEnd(index)]
    return draw(st.sampled_from([[PartStart(index, part)], [PartEnd(index, part)]]))


@st.composite
def streams(draw: st.DrawFn, message: Message) -> list[StreamEvent]:
    """A message as a stream, cut anywhere, the events of its parts in any interleaving."""
    queues = [draw(part_events(index, part)) for index, part in enumerate(message.parts)]
    events: list[StreamEvent] = []
    while waiting := [queue for queue in queues if queue]:
        events.append(draw(st.sampled_from(waiting)).pop(0))
    return [
        *events,
        Finish(
            message.usage, message.model, message.finish_reason, draw(st.none() | st.text()), message.extra
        ),
    ]


@st.composite
def streamed_messages(draw: st.DrawFn) -> tuple[Message, list[StreamEvent]]:
    """A message, and one of its streams."""
    message = draw(messages)
    return message, draw(streams(message))

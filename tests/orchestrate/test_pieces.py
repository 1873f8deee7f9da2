"""One answer from the deltas of any number of calls: in order, once, and in the end what was recorded."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball.core.errors import EngineError
from flyball.core.events import ModelAnswered, ModelFailed
from flyball.core.messages import Message, Part, Role, Text, Thinking, ToolCall
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
)
from flyball.orchestrate.elsewhere import Delta
from flyball.orchestrate.performers import model_answered
from flyball.orchestrate.pieces import Pieces
from flyball.orchestrate.soundness import sound
from tests.inference.strategies import messages, streams


def delta(call: str, number: int, event: StreamEvent) -> Delta:
    return Delta("loop/1/1/infer/0", 1, call, number, event)


def said(text: str, *, call: str = "a", size: int = 1) -> list[Delta]:
    pieces = [text[start : start + size] for start in range(0, len(text), size)]
    return [delta(call, number, TextDelta(0, piece)) for number, piece in enumerate(pieces)]


def recorded(*parts: Part) -> ModelAnswered:
    return ModelAnswered(0.0, 1, Message(Role.ASSISTANT, parts))


def taken(pieces: Pieces, deltas: list[Delta]) -> list[StreamEvent]:
    return [event for one in deltas for event in pieces.take(one)]


def joined(events: list[StreamEvent]) -> Message:
    assembler = Assembler()
    for event in events:
        assembler.feed(event)
    return assembler.message()


def without_ids(message: Message) -> tuple[Part, ...]:
    return tuple(replace(part, id="") if isinstance(part, ToolCall) else part for part in message.parts)


@st.composite
def worlds(draw: st.DrawFn) -> tuple[Message, list[Delta], int]:
    """An answer that was recorded, deltas of the calls that were made for it, and how many those were."""
    answers = draw(st.lists(messages, min_size=1, max_size=2))
    calls = draw(st.lists(st.sampled_from(answers), max_size=3))
    deltas: list[Delta] = []
    for name, answer in enumerate(calls):
        for number, event in enumerate(draw(streams(answer))):
            times = draw(st.sampled_from([1, 1, 1, 1, 2, 0]))
            deltas += [delta(f"{name}", number, event)] * times
    if draw(st.booleans()):
        deltas = draw(st.permutations(deltas))
    return draw(st.sampled_from(answers)), deltas, len(calls)


@given(worlds())
def test_whatever_becomes_of_the_deltas_the_reader_ends_up_with_what_was_recorded(
    world: tuple[Message, list[Delta], int],
) -> None:
    message, deltas, calls = world
    pieces = Pieces()
    shown = taken(pieces, deltas)
    assert not any(isinstance(event, Finish) for event in shown), "it is not recorded yet"
    restarts = sum(isinstance(event, Restart) for event in shown)
    assert restarts <= max(calls - 1, 0)
    assert joined(shown) == joined(list(pieces.shown))
    answered = model_answered(Result(message, "r"), 1, 0.0, 0.0)
    shown += pieces.complete(answered)
    found = joined(shown)
    assert without_ids(sound(found)[0]) == without_ids(answered.message)
    assert (found.usage, found.model) == (answered.message.usage, answered.message.model)
    assert isinstance(shown[-1], Finish)
    assert shown[-1].request_id == "r"
    again = [*pieces.shown, *pieces.complete(answered)]
    assert joined(again).parts == found.parts, "who reads anew reads the same"
    assert not any(isinstance(event, Restart) for event in again)


@given(messages, st.data())
def test_in_good_weather_the_pieces_are_the_model_s_own(message: Message, data: st.DataObject) -> None:
    events = data.draw(streams(message))
    pieces = Pieces()
    shown = taken(pieces, [delta("a", number, event) for number, event in enumerate(events)])
    shown += pieces.complete(model_answered(joined_result(events), 1, 0.0, 0.0))
    assert shown[:-1] == events[:-1]
    assert isinstance(shown[-1], Finish)


def joined_result(events: list[StreamEvent]) -> Result:
    return Result(joined(events), None)


def test_deltas_survive_being_written_down() -> None:
    one = delta("a", 3, PartEnd(0, Thinking("hm", "signed")))
    assert msgspec.json.decode(msgspec.json.encode(one), type=Delta) == one


def test_a_gap_is_not_shown_over_and_filled_from_the_record() -> None:
    pieces = Pieces()
    first, _, third, *_ = said("abcd")
    assert taken(pieces, [first, third]) == [TextDelta(0, "a")]
    rest = pieces.complete(recorded(Text("abcd")))
    assert rest[:2] == [TextDelta(0, "bcd"), PartEnd(0)]


def test_a_call_that_is_made_again_and_says_the_same_goes_on_where_the_other_stopped() -> None:
    pieces = Pieces()
    assert taken(pieces, said("abcd")[:2]) == [TextDelta(0, "a"), TextDelta(0, "b")]
    assert taken(pieces, said("abcd", call="b")) == [TextDelta(0, "c"), TextDelta(0, "d")]
    assert taken(pieces, said("abcd")[2:]) == []


def test_one_that_says_something_else_is_told_and_those_before_do_not_take_it_back() -> None:
    pieces = Pieces()
    taken(pieces, said("abcd")[:2])
    other = said("axyz", call="b")
    assert taken(pieces, other[:2]) == [Restart(), TextDelta(0, "a"), TextDelta(0, "x")]
    assert taken(pieces, said("abcd")[2:]) == []
    assert taken(pieces, other[2:]) == [TextDelta(0, "y"), TextDelta(0, "z")]
    rest = pieces.complete(recorded(Text("abcd")))
    assert rest[:3] == [Restart(), TextDelta(0, "abcd"), PartEnd(0)], "the first one's answer was recorded"


def test_parts_are_completed_by_their_kind() -> None:
    pieces = Pieces()
    call, thought = ToolCall("b", "add", '{"x": 1}'), Thinking("hm, yes", "signed")
    taken(
        pieces,
        [
            delta("a", 0, ThinkingDelta(0, "hm")),
            delta("a", 1, PartStart(1, ToolCall("a", "add"))),
            delta("a", 2, ToolCallDelta(1, '{"x"')),
        ],
    )
    *rest, finish = pieces.complete(recorded(thought, call, Text("!")))
    assert rest == [
        ThinkingDelta(0, ", yes"),
        PartEnd(0, thought),
        ToolCallDelta(1, ": 1}"),
        PartEnd(1, call),  # it has another id now
        TextDelta(2, "!"),
        PartEnd(2),
    ]
    assert isinstance(finish, Finish)


def test_an_answer_that_broke_off_is_shown_as_far_as_it_had_come() -> None:
    failed = ModelFailed(0.0, 1, EngineError("gone").record(), Message(Role.ASSISTANT, (Text("abc"),)))
    pieces = Pieces()
    taken(pieces, said("abcd")[:2])
    assert pieces.complete(failed)[0] == TextDelta(0, "c")
    assert not any(isinstance(event, Finish) for event in pieces.complete(failed))
    assert Pieces().complete(replace(failed, partial=None)) == []

"""Who comes back in the middle of an answer is given the rest of it: nothing twice, nothing lost."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from flyball.adapters.http.position import Position, Return, Tally
from flyball.core.events import ModelAnswered, SignalReceived
from flyball.core.messages import Message, Part, Text, Thinking, ToolCall, assistant
from flyball.core.signals import Signal, SignalType
from flyball.inference.cut import events_of
from flyball.inference.stream import Assembler, Finish, Restart, StreamEvent, TextDelta
from tests.inference.strategies import messages, streamed_messages, streams

positions = st.builds(
    Position, st.integers(0, 10**9), st.integers(0, 10**9), st.integers(0, 99), st.integers(0, 2**32 - 1)
)


def joined(pieces: Sequence[StreamEvent]) -> Message:
    """What a reader makes of pieces: a `Restart` takes back what came before."""
    assembler = Assembler()
    for piece in pieces:
        if isinstance(piece, Restart):
            assembler = Assembler()
        else:
            assembler.feed(piece)
    return assembler.message()


def said(message: Message) -> list[tuple[str, ...]]:
    """What a message says. What else is known of it (usage, signatures) the recorded answer has."""
    return [_said(part) for part in message.parts]


def _said(part: Part) -> tuple[str, ...]:
    if isinstance(part, ToolCall):
        return "call", part.id, part.name, part.args_json
    return type(part).__name__, part.text if isinstance(part, Text | Thinking) else ""


def position_after(pieces: Sequence[StreamEvent], number: int = 3) -> Position:
    tally = Tally(number)
    for piece in pieces:
        tally.piece(piece)
    return tally.position


def rest_of(stream: Sequence[StreamEvent], start: Position) -> list[StreamEvent]:
    back = Return(start)
    return [*[told for piece in stream for told in back.take(piece)], *back.give_up()]


@given(positions)
def test_a_position_is_read_as_it_was_written(position: Position) -> None:
    again = Position.read(str(position))
    if position.characters or position.closed:
        assert again == position
    else:
        assert again == Position(position.number)


@given(st.text())
def test_what_is_no_position_is_the_beginning(text: str) -> None:
    position = Position.read(text)
    assert position == Position() or Position.read(str(position)) == position


def test_wrong_positions_are_the_beginning() -> None:
    for text in (
        "",
        "x",
        "1.2",
        "1.2.3.4.5",
        "-1",
        "1.2.3.zz",
        "٣",
        "1" * 40,
        " 1",
        "1_0",
        "1.2.3.-4",
        "0x1",
    ):
        assert Position.read(text) == Position(), text


@given(streamed_messages(), st.data())
def test_who_comes_back_is_given_the_rest(
    streamed: tuple[Message, list[StreamEvent]], data: st.DataObject
) -> None:
    _, stream = streamed
    cut = data.draw(st.integers(0, len(stream)))
    rest = rest_of(stream, position_after(stream[:cut]))
    assert not any(isinstance(piece, Restart) for piece in rest)
    assert joined([*stream[:cut], *rest]) == joined(stream)
    assert _text([*stream[:cut], *rest]) == _text(stream)


@given(streamed_messages(), st.data())
def test_an_answer_that_is_cut_otherwise_is_still_the_same(
    streamed: tuple[Message, list[StreamEvent]], data: st.DataObject
) -> None:
    message, stream = streamed
    other = data.draw(streams(message))
    cut = data.draw(st.integers(0, len(stream)))
    rest = rest_of(other, position_after(stream[:cut]))
    assert said(joined([*stream[:cut], *rest])) == said(joined(other))


@given(st.text(min_size=1), st.integers(1, 5), st.integers(1, 5), st.data())
def test_a_text_that_is_cut_otherwise_is_gone_on_with(
    text: str, one: int, another: int, data: st.DataObject
) -> None:
    first, second = list(events_of(assistant(text), one)), list(events_of(assistant(text), another))
    cut = data.draw(st.integers(0, len(first)))
    rest = rest_of(second, position_after(first[:cut]))
    assert not any(isinstance(piece, Restart) for piece in rest)
    assert _text([*first[:cut], *rest]) == text


@given(streamed_messages(), messages, st.data())
def test_another_answer_is_told_from_its_beginning(
    streamed: tuple[Message, list[StreamEvent]], other: Message, data: st.DataObject
) -> None:
    _, stream = streamed
    cut = data.draw(st.integers(0, len(stream)))
    again = data.draw(streams(other))
    rest = rest_of(again, position_after(stream[:cut]))
    assert said(joined([*stream[:cut], *rest])) == said(joined(again))


def test_what_is_shorter_than_what_was_given_is_told_anew() -> None:
    first = list(events_of(assistant("a long answer")))
    rest = rest_of(list(events_of(assistant("a long")))[:-1], position_after(first[:1]))
    assert isinstance(rest[0], Restart)
    assert _text(rest) == "a long"


def test_a_restart_takes_back_what_was_given_too() -> None:
    given_before = position_after([TextDelta(0, "one thing")])
    rest = rest_of([TextDelta(0, "one"), Restart(), TextDelta(0, "another"), Finish()], given_before)
    assert rest == [Restart(), TextDelta(0, "another"), Finish()]


def test_an_event_in_the_middle_of_an_answer_does_not_end_it() -> None:
    tally = Tally(1)
    before = tally.piece(TextDelta(0, "so f"))
    after = tally.event(2, SignalReceived(0.0, Signal(SignalType.PAUSE)))
    assert (after.characters, after.checksum) == (before.characters, before.checksum)
    assert tally.event(3, ModelAnswered(0.0, 1, assistant("so far"))) == Position(3)


def _text(pieces: Sequence[StreamEvent]) -> str:
    told = ""
    for piece in pieces:
        if isinstance(piece, Restart):
            told = ""
        elif isinstance(piece, TextDelta):
            told += piece.text
    return told

"""Calls and texts in pieces: however they are cut, the same message."""

from __future__ import annotations

from itertools import count, pairwise

from hypothesis import given
from hypothesis import strategies as st

from flyball.constraint.grammar import CallLayout
from flyball.constraint.protocol import CallParser, TextParser
from flyball.core.messages import FinishReason, Text, ToolCall
from flyball.inference.stream import Assembler, Finish

ARGUMENTS = st.sampled_from(
    ["{}", '{"city": "Rome"}', '{"a": {"b": [1, {"c": "}"}]}}', '{"t": "a \\"quoted\\" } \\\\"}']
)
CALLS = st.lists(st.tuples(st.sampled_from(["weather", "mail"]), ARGUMENTS), min_size=1, max_size=3)


def cut(text: str, points: list[int]) -> list[str]:
    places = sorted({0, len(text), *[point % (len(text) + 1) for point in points]})
    return [text[start:end] for start, end in pairwise(places)]


def read(parser: CallParser | TextParser, pieces: list[str]) -> Assembler:
    assembler = Assembler()
    for piece in pieces:
        for event in parser.feed(piece):
            assembler.feed(event)
    for event in parser.close(FinishReason.STOP):
        assembler.feed(event)
    assembler.feed(Finish())
    return assembler


@given(CALLS, st.lists(st.integers(0, 400), max_size=30))
def test_calls_are_read_alike_however_they_are_cut(calls: list[tuple[str, str]], points: list[int]) -> None:
    layout = CallLayout()
    spelled = [layout.call.replace("$name", name).replace("$arguments", args) for name, args in calls]
    numbers = count(1)
    parser = CallParser(0, layout, lambda: f"c{next(numbers)}")
    message = read(parser, cut(layout.between.join(spelled), points)).message()
    assert message.parts == tuple(
        [ToolCall(f"c{number}", name, args) for number, (name, args) in enumerate(calls, start=1)]
    )


def test_a_call_that_was_cut_off_keeps_what_it_had() -> None:
    parser = CallParser(0, CallLayout(), lambda: "c1")
    message = read(parser, ['<tool_call>\n{"name": "mail", "argum', 'ents": {"to": "An']).message()
    assert message.parts == (ToolCall("c1", "mail", '{"to": "An'),)


def test_before_a_name_there_is_no_call() -> None:
    assert read(CallParser(0, CallLayout(), lambda: "c1"), ['<tool_call>\n{"na']).message().parts == ()


@given(st.text(min_size=1, max_size=40), st.lists(st.integers(0, 400), max_size=9))
def test_text_is_read_alike_however_it_is_cut(text: str, points: list[int]) -> None:
    assert read(TextParser(0), cut(text, points)).message().parts == (Text(text),)


def test_no_text_is_an_empty_text() -> None:
    assert read(TextParser(0), []).message().parts == (Text(""),)

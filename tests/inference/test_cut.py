from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import InvalidMessage, UserError
from flyball.core.messages import Message, assistant, user
from flyball.inference.cut import events_of
from flyball.inference.request import Result
from flyball.inference.stream import Assembler, TextDelta, ThinkingDelta, ToolCallDelta
from tests.inference.strategies import messages


@given(messages, st.none() | st.integers(1, 5), st.none() | st.text())
def test_a_cut_message_joins_to_itself(message: Message, chunk: int | None, request_id: str | None) -> None:
    assembler = Assembler()
    for event in events_of(message, chunk, request_id):
        assembler.feed(event)
    assert assembler.result() == Result(message, request_id)


@given(messages, st.integers(1, 5))
def test_no_piece_is_empty_or_longer_than_asked(message: Message, chunk: int) -> None:
    for event in events_of(message, chunk):
        if isinstance(event, TextDelta | ThinkingDelta):
            assert 0 < len(event.text) <= chunk
        elif isinstance(event, ToolCallDelta):
            assert 0 < len(event.args_json) <= chunk


def test_only_an_assistant_can_be_streamed() -> None:
    with pytest.raises(InvalidMessage, match="user message"):
        events_of(user("hello"))


@pytest.mark.parametrize("chunk", [0, -1])
def test_a_piece_has_at_least_one_character(chunk: int) -> None:
    with pytest.raises(UserError, match=f"not {chunk}"):
        events_of(assistant("hello"), chunk)

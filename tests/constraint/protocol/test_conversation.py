"""A conversation as a chat template takes it."""

from __future__ import annotations

import pytest

from flyball.constraint.protocol.conversation import plain_messages, text_messages
from flyball.core.errors import UserError
from flyball.core.messages import Message, Role, Text, ToolCall, ToolResult

ASKED = Message(Role.USER, (Text("Rain in Rome?"),))
SAID = Message(Role.ASSISTANT, (Text("No."),))


def test_what_comes_last_is_added_to_the_users_last_words() -> None:
    assert text_messages((ASKED,), last="The form") == (
        {"role": "user", "content": "Rain in Rome?\n\nThe form"},
    )


def test_what_comes_last_is_the_users_turn_where_the_model_spoke_last() -> None:
    assert text_messages((ASKED, SAID), last="The form") == (
        {"role": "user", "content": "Rain in Rome?"},
        {"role": "assistant", "content": "No."},
        {"role": "user", "content": "The form"},
    )


def test_what_a_tool_said_stands_before_what_comes_last() -> None:
    call = Message(Role.ASSISTANT, (ToolCall("c", "sky", "{}"),))
    told = Message(Role.TOOL, (ToolResult("c", "sky", "blue"),))
    assert plain_messages((ASKED, call, told), more="Be brief.", last="The form") == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rain in Rome?\n\nsky: blue\n\nThe form"},
    )


def test_nothing_at_all_is_an_error() -> None:
    with pytest.raises(UserError, match="no messages"):
        text_messages(())

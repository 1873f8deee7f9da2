"""A conversation as a chat template takes it."""

from __future__ import annotations

import pytest

from flyball.constraint.protocol.conversation import plain_messages, text_messages
from flyball.core.errors import UserError
from flyball.core.messages import Message, Role, Text, ToolCall, ToolResult

ASKED = Message(Role.USER, (Text("Rain in Rome?"),))


def test_what_a_tool_said_stands_with_the_question() -> None:
    call = Message(Role.ASSISTANT, (ToolCall("c", "sky", "{}"),))
    told = Message(Role.TOOL, (ToolResult("c", "sky", "blue"),))
    assert plain_messages((ASKED, call, told), more="Be brief.") == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rain in Rome?\n\nsky: blue"},
    )


def test_nothing_at_all_is_an_error() -> None:
    with pytest.raises(UserError, match="no messages"):
        text_messages(())

"""What a flow was asked: in words, and as the conversation of the request that began it."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, cast

from flyball.core.encodable import as_text
from flyball.core.messages import Message, Role
from flyball.orchestrate.contracts.conversation import Conversation, conversation, read_conversation


def asked_in(flow_input: Any) -> str:
    """The question that a flow is to answer: its input as text, or what the user said last in a request."""
    messages = _messages_in(flow_input)
    if messages is None:
        return "" if flow_input is None else as_text(flow_input)
    said: list[str] = []
    for before, message in pairwise((None, *messages)):
        if message is not None and message.role is Role.USER:
            # What is said in several messages in a row is one question: see `conversation`.
            goes_on = before is not None and before.role is Role.USER
            said = [*(said if goes_on else ()), message.text]
    return "\n".join(said)


def conversation_in(flow_input: Any) -> Conversation | None:
    """The conversation of the request that began a flow; None where none did.

    Raises:
        InvalidRequest: it is no conversation that a model can answer.
    """
    messages = _messages_in(flow_input)
    return conversation(messages) if messages else None


def _messages_in(flow_input: Any) -> tuple[Message, ...] | None:
    """The messages of a request, where a flow's input is one."""
    given = cast("dict[str, Any]", flow_input) if isinstance(flow_input, dict) else {}
    messages: Any = given.get("messages")
    if not isinstance(messages, list) or "mode" not in given:
        return None
    return read_conversation(cast("Any", messages), "messages")

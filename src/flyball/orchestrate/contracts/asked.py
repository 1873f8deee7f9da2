"""What a flow was asked, in words: the input of one that a request began is that request."""

from __future__ import annotations

from typing import Any, cast

from flyball.core.encodable import as_text
from flyball.core.messages import Role
from flyball.orchestrate.contracts.conversation import read_conversation


def asked_in(flow_input: Any) -> str:
    """The question that a flow is to answer: its input as text, or what the user said last in a request."""
    given = cast("dict[str, Any]", flow_input) if isinstance(flow_input, dict) else {}
    messages: Any = given.get("messages")
    if isinstance(messages, list) and "mode" in given:
        spoken = [one for one in read_conversation(messages, "messages") if one.role is Role.USER]
        return spoken[-1].text if spoken else ""
    return "" if flow_input is None else as_text(flow_input)

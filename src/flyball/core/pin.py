"""The instruction pin: what the model was told to do, in few words, to be read again after a compaction."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.messages import Message, Role, Text
from flyball.core.truncation import truncate_text

PIN_TOKENS = 200
"""How long each part of the pin is at the most."""


def instruction_pin(messages: Sequence[Message]) -> str:
    """A compact reminder: the system prompts, the first task, and what the user has said last.

    Each is cut to its beginning and its end where it is long, and stands there once. It is empty where
    nothing of that was said.
    """
    told = [message for message in messages if message.role is Role.USER and _said(message)]
    parts: dict[str, str] = {}
    if messages and messages[0].role is Role.SYSTEM:
        parts["Instructions"] = _said(messages[0])
    if told:
        parts["Task"] = _said(told[0])
    if len(told) > 1 and _said(told[-1]) != parts["Task"]:
        parts["Latest instruction"] = _said(told[-1])
    lines = [f"{name}: {truncate_text(text, PIN_TOKENS)}" for name, text in parts.items() if text]
    return "\n".join(["[Still to be followed]", *lines]) if lines else ""


def _said(message: Message) -> str:
    return "\n".join([part.text for part in message.parts if type(part) is Text]).strip()

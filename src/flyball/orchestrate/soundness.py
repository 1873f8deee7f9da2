"""Making a model's message sound where it enters: text that can be written, calls that can be told apart,
and nothing that an assistant's message cannot carry.

Local models above all send doubled or empty call ids. Nothing is refused for that; what was changed is noted,
and the notes are recorded with the answer.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from flyball.core.encodable import NotEncodable, clean_text, to_json
from flyball.core.messages import Audio, FinishReason, Image, Message, Part, Role, Text, Thinking, ToolCall
from flyball.core.usage import Usage

_ASSISTANT = Role.ASSISTANT


def sound(message: Message) -> tuple[Message, tuple[str, ...]]:
    """The message made sound, and notes on what that took. An already sound message comes back as it is."""
    parts, usage, reason, model = message.parts, message.usage, message.finish_reason, message.model
    if (
        message.role is _ASSISTANT
        and (reason is None or type(reason) is FinishReason)
        and (model is None or (type(model) is str and model.isascii()))
        and (usage is None or _is_counted(usage))
        and message.extra is None
        and message.name is None
    ):
        if len(parts) == 1:
            # The common cases cost no allocation.
            part = parts[0]
            if type(part) is Text:
                if part.text and part.text.isascii():
                    return message, ()
            elif (
                type(part) is ToolCall
                and part.id
                and part.name
                and part.args_json.isascii()
                and part.id.isascii()
                and part.name.isascii()
            ):
                return message, ()
        elif not parts:
            return message, ()
    notes: list[str] = []
    message = _with_sound_envelope(message, notes)
    if message.role is not _ASSISTANT:
        notes.append(f"the answer came with the role {message.role.value!r}")
    seen: dict[str, int] = {}
    made: list[Part] = []
    for part in parts:
        if isinstance(part, ToolCall):
            made.append(_sound_call(part, seen, notes))
        elif isinstance(part, Text | Thinking):
            # A thought without words may be one that only its provider can read, and wants to have back.
            if part.text or (isinstance(part, Thinking) and (part.signature or part.provider_data)):
                made.append(_sound_text(part, notes))
        elif isinstance(part, Image | Audio):
            made.append(part)
        else:
            notes.append(f"a {type(part).__name__} part was left out: an answer cannot carry it")
    return replace(message, role=_ASSISTANT, parts=tuple(made)), tuple(notes)


def _is_counted(usage: Usage) -> bool:
    """Whether its numbers are of their types: their sum is then an int. Raises where they cannot be added."""
    return (
        type(usage) is Usage
        and usage.details is None
        and type(usage.tokens_per_second) is float
        and type(
            usage.input_tokens
            + usage.output_tokens
            + usage.reasoning_tokens
            + usage.cache_read_tokens
            + usage.cache_write_tokens
            + usage.context_tokens
            + usage.context_window
        )
        is int
    )


def _with_sound_envelope(message: Message, notes: list[str]) -> Message:
    """The message with what is not of its type left out: better without than with what cannot be read."""
    changes: dict[str, Any] = {}
    for name, kind in _ENVELOPE.items():
        value = getattr(message, name)
        if value is None:
            continue
        try:
            changes[name] = msgspec.convert(to_json(value), kind)
        except (NotEncodable, msgspec.ValidationError) as error:
            changes[name] = None
            notes.append(f"the answer's {name} was left out: {error}")
    return replace(message, **changes)


_ENVELOPE: dict[str, Any] = {
    "finish_reason": FinishReason,
    "usage": Usage,
    "model": str,
    "name": str,
    "timestamp": float,
    "extra": dict[str, Any],
}


def _sound_text(part: Text | Thinking, notes: list[str]) -> Text | Thinking:
    text = clean_text(part.text)
    if text is part.text:
        return part
    notes.append("text that UTF-8 cannot hold was replaced")
    return replace(part, text=text)


def _sound_call(call: ToolCall, seen: dict[str, int], notes: list[str]) -> ToolCall:
    """`seen` counts how often each id was wanted: ten thousand equal ones cost no more than others."""
    wanted = identifier = clean_text(call.id) or "call"
    number = seen.get(wanted, 0)
    while identifier in seen:
        number += 1
        identifier = f"{wanted}~{number}"
    seen[wanted] = max(number, 1)
    seen.setdefault(identifier, 1)
    name, args = clean_text(call.name), clean_text(call.args_json)
    if identifier == call.id and name == call.name and args == call.args_json:
        return call
    if identifier != call.id:
        notes.append(f"the call id {call.id!r} was doubled or empty and is now {identifier!r}")
    if name != call.name or args != call.args_json:
        notes.append(f"text in the call {identifier!r} that UTF-8 cannot hold was replaced")
    return replace(call, id=identifier, name=name, args_json=args)

"""The items of a Responses request: from OpenAI's to our messages.

What the model said is one message: its reasoning, its text and its calls, up to what somebody else says.
Outputs of calls that are not among the items belong to the response that the request goes on from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from flyball.adapters.http.openai.content import read_content, read_text
from flyball.adapters.http.openai.errors import Refused, unsupported
from flyball.adapters.http.openai.reading import param_of, required_text
from flyball.core.forms.fields import Fields, items, malformed
from flyball.core.messages import JSON, Image, Message, Part, Role, Text, Thinking, ToolCall, ToolResult


class Items(Struct, frozen=True):
    """What a request brings: instructions, messages, and outputs of calls by the ids that a client knows."""

    told: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    outputs: Mapping[str, ToolResult] = {}


def read_items(value: JSON, where: str) -> Items:
    """The `input` of a request: text, or items.

    Raises:
        InvalidMessage: an item is malformed.
        Refused: an item is of a kind that cannot be taken.
    """
    if isinstance(value, str):
        return Items(messages=(Message(Role.USER, (Text(value),)),))
    talk = _Talk()
    for item, at in items(value, where):
        fields = Fields(item, at)
        kind = fields.text("type") or "message"
        read = _KINDS.get(kind)
        if read is None:
            raise unsupported(param_of(fields, "type"), f"an item {kind!r} cannot be taken")
        read(fields, talk)
    talk.close()
    return Items(tuple(talk.told), tuple(talk.said), talk.outputs)


class _Talk:
    """A conversation as far as it was read."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.said: list[Message] = []
        self.outputs: dict[str, ToolResult] = {}
        self.names: dict[str, str] = {}
        self.model: list[Part] = []
        """What the model is saying."""

    def close(self) -> None:
        """Somebody else speaks: what the model said is one message. One without a word is none."""
        if any(isinstance(part, Text | ToolCall) for part in self.model):
            self.said.append(Message(Role.ASSISTANT, tuple(self.model)))
        self.model.clear()


def _message(fields: Fields, talk: _Talk) -> None:
    role = required_text(fields, "role")
    content, where = fields.any("content"), fields.place("content")
    if role == "assistant":
        if talk.model and any(isinstance(part, ToolCall) for part in talk.model):
            talk.close()
        said = read_content(content, where, only_text=True)
        talk.model += [part for part in said if isinstance(part, Text) and part.text]
        return
    talk.close()
    if role in ("system", "developer"):
        if text := read_text(content, where):
            talk.told.append(text)
    elif role == "user":
        parts = read_content(content, where)
        if not parts:
            raise Refused(
                "A user's message needs content.", param=param_of(fields, "content"), code="invalid_value"
            )
        talk.said.append(Message(Role.USER, parts))
    else:
        raise malformed(fields.place("role"), "one of user, assistant, system, developer", role)


def _reasoning(fields: Fields, talk: _Talk) -> None:
    texts: list[str] = []
    for key in ("summary", "content"):
        for value, where in fields.items(key):
            texts.append(Fields(value, where).text("text"))
    if text := "\n\n".join([text for text in texts if text]):
        talk.model.append(Thinking(text))


def _call(fields: Fields, talk: _Talk) -> None:
    call = ToolCall(
        required_text(fields, "call_id"), required_text(fields, "name"), fields.text("arguments") or "{}"
    )
    talk.names[call.id] = call.name
    talk.model.append(call)


def _output(fields: Fields, talk: _Talk) -> None:
    talk.close()
    call_id = required_text(fields, "call_id")
    parts = read_content(fields.any("output"), fields.place("output"))
    texts = [part.text for part in parts if isinstance(part, Text)]
    images = [part for part in parts if isinstance(part, Image)]
    if len(texts) + len(images) < len(parts):
        raise unsupported(param_of(fields, "output"), "a tool gives text and images")
    result = ToolResult(call_id, talk.names.get(call_id, ""), "".join(texts), images=tuple(images))
    if call_id in talk.names:
        talk.said.append(Message(Role.TOOL, (result,)))
    else:
        talk.outputs[call_id] = result


_KINDS: Mapping[str, Callable[[Fields, Any], None]] = {
    "message": _message,
    "reasoning": _reasoning,
    "function_call": _call,
    "function_call_output": _output,
}

"""Conversations in gollem's envelopes, both ways, as JSON values and as bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import json
from msgspec.structs import replace

from flyball.core.errors import InvalidMessage
from flyball.core.forms.fields import Fields, decoded, entered, items, malformed
from flyball.core.forms.gollem.notes import enveloped, kept, noted, with_note
from flyball.core.forms.gollem.parts import (
    note_of_time,
    read_request_part,
    read_response_part,
    write_request_part,
    write_response_part,
)
from flyball.core.forms.gollem.tools import usage_from, write_usage
from flyball.core.forms.times import ZERO_TIME, seconds, stamp
from flyball.core.messages import JSON, FinishReason, Message, Part, Role
from flyball.core.usage import Usage

_REQUEST = frozenset({"parts", "timestamp"})
_RESPONSE = frozenset({"parts", "usage", "model_name", "finish_reason", "timestamp"})
_NO_USAGE = Usage()


def encode_messages(messages: Iterable[Message]) -> list[dict[str, JSON]]:
    """A conversation as envelopes; messages that are not the assistant's are grouped into requests.

    Raises:
        InvalidMessage: a message has content that the form cannot hold, or a time that no calendar has.
    """
    envelopes: list[dict[str, JSON]] = []
    group: list[Message] = []
    for message in messages:
        if group and (message.role in (group[-1].role, Role.ASSISTANT) or message.extra):
            envelopes.append(_encode_request(group))
            group = []
        if message.role is Role.ASSISTANT:
            envelopes.append(encode_model_response(message))
        elif message.parts:
            group.append(message)
    return [*envelopes, _encode_request(group)] if group else envelopes


def decode_messages(envelopes: object) -> tuple[Message, ...]:
    """A conversation from envelopes.

    Raises:
        InvalidMessage: something in it is malformed.
    """
    return messages_from(entered(envelopes, "messages"), "messages")


def marshal_messages(messages: Iterable[Message]) -> bytes:
    """A conversation as JSON; raises as `encode_messages` does."""
    return json.encode(encode_messages(messages))


def unmarshal_messages(data: bytes | str) -> tuple[Message, ...]:
    """A conversation from JSON; raises as `decode_messages` does."""
    return messages_from(decoded(data, "messages"), "messages")


def messages_from(value: JSON, where: str) -> tuple[Message, ...]:
    """A conversation out of a document that was entered already."""
    messages: list[Message] = []
    for item, place in items(value, where):
        kind, data, unknown = _envelope(item, place)
        if kind == "response":
            messages.append(_decode_response(data, unknown))
            continue
        found = _decode_request(data, unknown)
        if (
            messages
            and found
            and not found[0].extra
            and messages[-1].role not in (found[0].role, Role.ASSISTANT)
        ):
            # Nothing else would tell that another request began here.
            found[0] = replace(found[0], extra=kept(None, apart=True))
        messages += found
    return tuple(messages)


def encode_request_parts(messages: Iterable[Message]) -> list[dict[str, JSON]]:
    """The parts of one request, from messages that are not the assistant's.

    Raises:
        InvalidMessage: a message is the assistant's, or has content that the form cannot hold.
    """
    parts: list[dict[str, JSON]] = []
    for message in messages:
        if message.role is Role.ASSISTANT:
            raise InvalidMessage("an assistant's message is a response, and no part of a request")
        parts += [write_request_part(message, part) for part in message.parts]
    return parts


def decode_request_parts(parts: object) -> tuple[Message, ...]:
    """The messages that the parts of one request make: one for each run of parts of the same role.

    Raises:
        InvalidMessage: a part is malformed.
    """
    return tuple(_split(items(entered(parts, "parts"), "parts")))


def encode_model_response(message: Message) -> dict[str, JSON]:
    """An assistant's message as an envelope.

    Raises:
        InvalidMessage: it is not the assistant's, or has content that the form cannot hold.
    """
    if message.role is not Role.ASSISTANT:
        raise InvalidMessage(f"a response is an assistant's message, not a {message.role} message")
    own = note_of_time(message.extra, "timestamp")
    exact = own and seconds(own, "timestamp") == message.timestamp
    data: dict[str, JSON] = {
        "parts": [write_response_part(part) for part in message.parts],
        "usage": {} if message.usage is None else write_usage(message.usage),
        "model_name": message.model or "",
        "finish_reason": str(message.finish_reason or noted(message.extra, "finish_reason")),
        "timestamp": own if exact else stamp(message.timestamp),
    }
    return enveloped("kind", "response", data, message.extra, _RESPONSE)


def decode_model_response(envelope: object) -> Message:
    """An assistant's message from an envelope.

    Raises:
        InvalidMessage: it is malformed, or a request.
    """
    kind, data, unknown = _envelope(entered(envelope, "response"), "response")
    if kind != "response":
        raise malformed("response.kind", "response", kind)
    return _decode_response(data, unknown)


def _envelope(value: JSON, where: str) -> tuple[str, Fields, dict[str, JSON] | None]:
    envelope = Fields(value, where)
    kind = envelope.text("kind")
    if kind not in ("request", "response"):
        raise malformed(envelope.place("kind"), "request or response", kind)
    return kind, Fields(envelope.any("data"), envelope.place("data")), envelope.rest()


def _decode_response(data: Fields, envelope: dict[str, JSON] | None) -> Message:
    parts = tuple([read_response_part(*item) for item in data.items("parts")])
    usage, reason = data.any("usage"), data.text("finish_reason")
    counted = None if usage is None else usage_from(usage, data.place("usage"))
    known = reason in list(FinishReason)
    model, time = data.text("model_name") or None, data.text("timestamp") or ZERO_TIME
    moment = seconds(time, data.place("timestamp"))
    return Message(
        Role.ASSISTANT,
        parts,
        timestamp=moment,
        usage=None if counted == _NO_USAGE else counted,
        model=model,
        finish_reason=FinishReason(reason) if known else None,
        extra=kept(
            data.rest(),
            envelope=envelope,
            finish_reason="" if known else reason,
            timestamp="" if time == stamp(moment) else time,
        ),
    )


def _encode_request(group: Sequence[Message]) -> dict[str, JSON]:
    first = group[0]
    data: dict[str, JSON] = {
        "parts": encode_request_parts(group),
        "timestamp": note_of_time(first.extra, "timestamp") or stamp(first.timestamp),
    }
    return enveloped("kind", "request", data, first.extra, _REQUEST)


def _decode_request(data: Fields, envelope: dict[str, JSON] | None) -> list[Message]:
    messages = _split(data.items("parts"))
    time = data.text("timestamp") or ZERO_TIME
    seconds(time, data.place("timestamp"))
    if messages:
        own = "" if time == stamp(messages[0].timestamp) else time
        messages[0] = replace(messages[0], extra=kept(data.rest(), envelope=envelope, timestamp=own))
    return messages


def _split(parts: list[tuple[JSON, str]]) -> list[Message]:
    """One message for each run of parts of the same role, at the time of its first part."""
    messages: list[Message] = []
    run: list[Part] = []
    role, moment = Role.USER, None
    for item, where in parts:
        its_role, part, time = read_request_part(item, where)
        if run and its_role is not role:
            messages.append(Message(role, tuple(run), timestamp=moment))
            run = []
        if not run:
            role, moment = its_role, seconds(time, where)
        if time != stamp(moment):
            part = replace(part, extra=with_note(part.extra, "timestamp", time))
        run.append(part)
    return [*messages, Message(role, tuple(run), timestamp=moment)] if run else messages

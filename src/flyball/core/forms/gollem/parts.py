"""gollem's parts, one by one: ten types, seven in requests and three in responses."""

from __future__ import annotations

from typing import Any, cast

from flyball.core.encodable import as_text
from flyball.core.errors import InvalidMessage
from flyball.core.forms.fields import Fields, filled, malformed, written
from flyball.core.forms.gollem.notes import enveloped, kept, noted, unknown_of
from flyball.core.forms.times import ZERO_TIME, seconds, stamp
from flyball.core.messages import (
    JSON,
    Audio,
    Document,
    Image,
    Message,
    Part,
    ResultKind,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
)

_KEYS: dict[str, frozenset[str]] = {
    "system-prompt": frozenset({"content", "timestamp"}),
    "user-prompt": frozenset({"content", "timestamp"}),
    "tool-return": frozenset({"tool_name", "content", "tool_call_id", "timestamp", "images"}),
    "retry-prompt": frozenset({"content", "tool_name", "tool_call_id", "timestamp"}),
    "image": frozenset({"url", "mime_type", "detail", "timestamp"}),
    "audio": frozenset({"url", "mime_type", "timestamp"}),
    "document": frozenset({"url", "mime_type", "title", "timestamp"}),
    "text": frozenset({"content"}),
    "tool-call": frozenset({"tool_name", "args_json", "tool_call_id", "metadata"}),
    "thinking": frozenset({"content", "signature"}),
}
_RESPONSE = ("text", "tool-call", "thinking")
_REQUEST = tuple(kind for kind in _KEYS if kind not in _RESPONSE)
# The image of a tool's result has no json tags in Go: its keys are the names of the fields.
_RESULT_IMAGE = frozenset({"URL", "MIMEType", "Detail", "Timestamp"})
_DETAILS = ("auto", "low", "high")


def read_request_part(value: JSON, where: str) -> tuple[Role, Part, str]:
    """A part of a request: the role it belongs to, the part, and its own time as it was written."""
    kind, fields, envelope = _opened(value, where, _REQUEST)
    time = fields.text("timestamp") or ZERO_TIME
    seconds(time, fields.place("timestamp"))
    if kind == "system-prompt":
        return Role.SYSTEM, Text(fields.text("content"), kept(fields.rest(), envelope=envelope)), time
    if kind == "user-prompt":
        return Role.USER, Text(fields.text("content"), kept(fields.rest(), envelope=envelope)), time
    if kind == "tool-return":
        return Role.TOOL, _tool_return(fields, envelope), time
    if kind == "retry-prompt":
        content, name, call_id = (fields.text(key) for key in ("content", "tool_name", "tool_call_id"))
        if call_id:
            extra = kept(fields.rest(), envelope=envelope)
            return Role.TOOL, ToolResult(call_id, name, content, status=ResultKind.RETRY, extra=extra), time
        return Role.USER, Retry(content, kept(fields.rest(), envelope=envelope, tool_name=name)), time
    url, mime_type = fields.text("url"), fields.text("mime_type") or None
    if kind == "image":
        detail = fields.text("detail")
        return Role.USER, _image(url, mime_type, detail, fields.rest(), envelope=envelope), time
    if kind == "audio":
        return Role.USER, Audio(url, mime_type, kept(fields.rest(), envelope=envelope)), time
    title = fields.text("title") or None
    return Role.USER, Document(url, mime_type, title, kept(fields.rest(), envelope=envelope)), time


def read_response_part(value: JSON, where: str) -> Part:
    """A part of a response."""
    kind, fields, envelope = _opened(value, where, _RESPONSE)
    if kind == "text":
        return Text(fields.text("content"), kept(fields.rest(), envelope=envelope))
    if kind == "thinking":
        content, signature = fields.text("content"), fields.text("signature") or None
        return Thinking(content, signature, extra=kept(fields.rest(), envelope=envelope))
    metadata = fields.mapping("metadata")
    if metadata is not None:
        inner = Fields(metadata, fields.place("metadata"))
        metadata = {key: inner.text(key) for key in metadata}
    name, args_json, call_id = (fields.text(key) for key in ("tool_name", "args_json", "tool_call_id"))
    extra = kept(fields.rest(), envelope=envelope)
    return ToolCall(call_id, name, args_json, provider_data=metadata, extra=extra)


def write_request_part(message: Message, part: Part) -> dict[str, JSON]:
    """A part of a request, with its own time or the message's.

    Raises:
        InvalidMessage: a request of gollem's has no such part.
    """
    kind, data = _request_data(message.role, part)
    data["timestamp"] = note_of_time(part.extra, "timestamp") or stamp(message.timestamp)
    return enveloped("type", kind, data, part.extra, _KEYS[kind])


def write_response_part(part: Part) -> dict[str, JSON]:
    """A part of a response.

    Raises:
        InvalidMessage: a response of gollem's has no such part.
    """
    if isinstance(part, Text):
        kind, data = "text", filled() | {"content": part.text}
    elif isinstance(part, Thinking):
        kind, data = "thinking", {"content": part.text} | filled(signature=part.signature)
    elif isinstance(part, ToolCall):
        metadata = {key: as_text(item) for key, item in (part.provider_data or {}).items()}
        known = {"tool_name": part.name, "args_json": part.args_json, "tool_call_id": part.id}
        kind, data = "tool-call", known | filled(metadata=metadata)
    else:
        raise _no_place(Role.ASSISTANT, part)
    return enveloped("type", kind, data, part.extra, _KEYS[kind])


def note_of_time(extra: dict[str, JSON] | None, key: str) -> str:
    """A time in the notes; empty where there is none that can be read."""
    text = noted(extra, key)
    try:
        seconds(text, key)
    except InvalidMessage:
        return ""
    return text


def _opened(value: JSON, where: str, kinds: tuple[str, ...]) -> tuple[str, Fields, dict[str, JSON] | None]:
    envelope = Fields(value, where)
    kind = envelope.text("type")
    if kind not in kinds:
        raise malformed(envelope.place("type"), f"one of {', '.join(kinds)}", kind)
    fields = Fields(envelope.any("data"), envelope.place("data"))
    return kind, fields, envelope.rest()


def _tool_return(fields: Fields, envelope: dict[str, JSON] | None) -> ToolResult:
    images: list[Image] = []
    for item, place in fields.items("images"):
        inner = Fields(item, place)
        url, mime_type, detail, time = (inner.text(key) for key in ("URL", "MIMEType", "Detail", "Timestamp"))
        seconds(time or ZERO_TIME, inner.place("Timestamp"))
        own = "" if time == ZERO_TIME else time
        images.append(_image(url, mime_type or None, detail, inner.rest(), timestamp=own))
    return ToolResult(
        fields.text("tool_call_id"),
        fields.text("tool_name"),
        fields.any("content"),
        images=tuple(images),
        extra=kept(fields.rest(), envelope=envelope),
    )


def _image(
    url: str, mime_type: str | None, detail: str, unknown: dict[str, JSON] | None, **notes: JSON
) -> Image:
    known = detail in _DETAILS
    extra = kept(unknown, detail="" if known else detail, **notes)
    return Image(url, mime_type, cast("Any", detail) if known else None, extra)


def _request_data(role: Role, part: Part) -> tuple[str, dict[str, JSON]]:
    if role is Role.SYSTEM and isinstance(part, Text):
        return "system-prompt", {"content": part.text}
    if role is Role.TOOL and isinstance(part, ToolResult):
        return _result_data(part)
    if role is Role.USER:
        if isinstance(part, Text):
            return "user-prompt", {"content": part.text}
        if isinstance(part, Retry):
            name = noted(part.extra, "tool_name")
            return "retry-prompt", {"content": part.text} | filled(tool_name=name)
        if isinstance(part, Image | Audio | Document):
            return _media_data(part)
    raise _no_place(role, part)


def _result_data(result: ToolResult) -> tuple[str, dict[str, JSON]]:
    if result.status is ResultKind.RETRY:
        if result.images:
            raise _no_place(Role.TOOL, result.images[0])
        names = filled(tool_name=result.name, tool_call_id=result.call_id)
        return "retry-prompt", {"content": result.text} | names
    data: dict[str, JSON] = {
        "tool_name": result.name,
        "content": result.content if result.error is None else result.error,
        "tool_call_id": result.call_id,
    }
    return "tool-return", data | filled(images=[_result_image(image) for image in result.images])


def _result_image(image: Image) -> dict[str, JSON]:
    known: dict[str, JSON] = {
        "URL": image.url,
        "MIMEType": image.mime_type or "",
        "Detail": image.detail or noted(image.extra, "detail"),
        "Timestamp": note_of_time(image.extra, "timestamp") or ZERO_TIME,
    }
    return written(known, unknown_of(image.extra), _RESULT_IMAGE)


def _media_data(part: Image | Audio | Document) -> tuple[str, dict[str, JSON]]:
    known: dict[str, JSON] = {"url": part.url, "mime_type": part.mime_type or ""}
    if isinstance(part, Image):
        return "image", known | filled(detail=part.detail or noted(part.extra, "detail"))
    if isinstance(part, Audio):
        return "audio", known
    return "document", known | filled(title=part.title)


def _no_place(role: Role, part: Part) -> InvalidMessage:
    return InvalidMessage(
        f"the gollem form has no place for a {type(part).__name__} part there, in a {role} message: "
        "leave it out, or use a form that has one"
    )

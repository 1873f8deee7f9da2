"""The envelope that every payload travels in: an id, the payload's type, the payload, and where it is from.

    {"id": …, "type": {"domain": "agentic", "category": "task", "version": "v1"}, "payload": {…},
     "meta": {"created_at": 1700000000000, "received_at": 1700000000000, "source": "flyball"}}

The times in `meta` are milliseconds since the epoch; text (RFC 3339) is read too. Unknown keys are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from msgspec import Struct, json

from flyball.core.errors import InvalidMessage, InvalidRequest
from flyball.core.forms.fields import Fields, decoded, written
from flyball.core.forms.semstreams.context_event import ContextEvent
from flyball.core.forms.semstreams.loop_events import (
    LoopCancelledEvent,
    LoopCompletedEvent,
    LoopCreatedEvent,
    LoopFailedEvent,
)
from flyball.core.forms.semstreams.messages import call_from, write_tool_call
from flyball.core.forms.semstreams.request import AgentRequest
from flyball.core.forms.semstreams.response import AgentResponse
from flyball.core.forms.semstreams.signals import SignalMessage, UserSignal
from flyball.core.forms.semstreams.task import TaskMessage
from flyball.core.forms.semstreams.tools import result_from, write_tool_result
from flyball.core.forms.semstreams.types import Category, PayloadType, payload_type
from flyball.core.forms.semstreams.user_message import UserMessage
from flyball.core.forms.semstreams.user_response import UserResponse
from flyball.core.forms.semstreams.validation import validate_tool_call, validate_tool_result
from flyball.core.forms.times import seconds
from flyball.core.messages import JSON, ToolCall, ToolResult

AnyPayload: TypeAlias = (
    TaskMessage
    | UserMessage
    | UserSignal
    | UserResponse
    | AgentRequest
    | AgentResponse
    | ToolCall
    | ToolResult
    | LoopCreatedEvent
    | LoopCompletedEvent
    | LoopFailedEvent
    | LoopCancelledEvent
    | ContextEvent
    | SignalMessage
)

READERS: Mapping[Category, Callable[[JSON, str], AnyPayload]] = {
    Category.TASK: TaskMessage.from_json,
    Category.USER_MESSAGE: UserMessage.from_json,
    Category.SIGNAL: UserSignal.from_json,
    Category.USER_RESPONSE: UserResponse.from_json,
    Category.REQUEST: AgentRequest.from_json,
    Category.RESPONSE: AgentResponse.from_json,
    Category.TOOL_CALL: call_from,
    Category.TOOL_RESULT: result_from,
    Category.LOOP_CREATED: LoopCreatedEvent.from_json,
    Category.LOOP_COMPLETED: LoopCompletedEvent.from_json,
    Category.LOOP_FAILED: LoopFailedEvent.from_json,
    Category.LOOP_CANCELLED: LoopCancelledEvent.from_json,
    Category.CONTEXT_EVENT: ContextEvent.from_json,
    Category.SIGNAL_MESSAGE: SignalMessage.from_json,
}
"""Who reads a payload of which category."""

_ENVELOPE = frozenset({"id", "type", "payload", "meta"})
_META = frozenset({"created_at", "received_at", "source"})


class Refusal(StrEnum):
    """Why an envelope could not be taken: `reason` in the details of the error."""

    NOT_JSON = "not_json"
    NO_ENVELOPE = "no_envelope"
    """JSON, but a key of the envelope is missing or of another kind."""
    UNKNOWN_DOMAIN = "unknown_domain"
    UNKNOWN_CATEGORY = "unknown_category"
    OTHER_VERSION = "other_version"
    BAD_PAYLOAD = "bad_payload"
    """A field of the payload is of another kind; `where` says which."""
    INVALID = "invalid"
    """The payload could be read, and lacks something; `field` says what."""


class Envelope(Struct, frozen=True):
    """A payload with its id, when it was made and received, and by whom."""

    payload: AnyPayload
    id: str
    created_at: float | None = None
    received_at: float | None = None
    source: str = ""
    meta_extra: dict[str, Any] | None = None
    extra: dict[str, Any] | None = None

    @property
    def type(self) -> PayloadType:
        """The payload's type."""
        return payload_type(self.payload)

    def write(self) -> dict[str, JSON]:
        """The envelope as JSON.

        Raises:
            InvalidMessage: the payload holds something that its form has no place for.
        """
        made, payload = self.type, self.payload
        meta: dict[str, JSON] = {
            "created_at": _milliseconds(self.created_at),
            "received_at": _milliseconds(self.received_at),
            "source": self.source,
        }
        known: dict[str, JSON] = {
            "id": self.id,
            "type": {"domain": made.domain, "category": str(made.category), "version": made.version},
            "payload": _written(payload),
            "meta": written(meta, self.meta_extra, _META),
        }
        return written(known, self.extra, _ENVELOPE)

    def validate(self) -> None:
        """Check that there is an id, and the payload.

        Raises:
            InvalidMessage: with the reason `invalid`, and the field.
        """
        if not self.id:
            raise InvalidMessage(
                "id required in an envelope, and it is empty", field="id", reason=Refusal.INVALID
            )
        try:
            _validated(self.payload)
        except (InvalidMessage, InvalidRequest) as error:
            raise _refused(error, Refusal.INVALID) from error


def read_envelope(data: bytes | str) -> Envelope:
    """The envelope in these bytes, with its payload read. What is merely missing is said by `validate`.

    Raises:
        InvalidMessage: it cannot be read; `reason` in the details is a `Refusal`, so that whoever sets it
            aside can say why.
    """
    try:
        value = decoded(data, "envelope")
    except InvalidMessage as error:
        raise _refused(error, Refusal.NOT_JSON) from error
    try:
        fields = Fields(value, "envelope")
        name = fields.text("id")
        about = Fields(fields.any("type"), fields.place("type"))
        domain, category, version = about.text("domain"), about.text("category"), about.text("version")
        meta = Fields(fields.any("meta") or {}, fields.place("meta"))
        created, received = _moment(meta, "created_at"), _moment(meta, "received_at")
        source = meta.text("source")
    except InvalidMessage as error:
        raise _refused(error, Refusal.NO_ENVELOPE) from error
    read = READERS[_category(domain, category, version)]
    try:
        payload = read(fields.any("payload"), category)
    except InvalidMessage as error:
        raise _refused(error, Refusal.BAD_PAYLOAD) from error
    return Envelope(payload, name, created, received, source, meta.rest(), fields.rest())


def write_envelope(
    payload: AnyPayload,
    *,
    id: str,  # noqa: A002 - the key's name
    at: float,
    source: str = "flyball",
    extra: dict[str, Any] | None = None,
) -> bytes:
    """A payload in its envelope, as bytes: the same each time for the same arguments.

    `extra` are keys beside those of the envelope, which others leave alone: for what the payload's form has
    no place for.

    Raises:
        InvalidMessage: the payload holds something that its form has no place for.
    """
    return json.encode(Envelope(payload, id, at, at, source, extra=extra).write())


def _category(domain: str, category: str, version: str) -> Category:
    known = PayloadType(Category.TASK)
    if domain != known.domain:
        wrong, why = f"domain should be {known.domain!r}, but is {domain!r}", Refusal.UNKNOWN_DOMAIN
    elif category not in list(Category):
        wrong = f"category should be one of {', '.join(Category)}, but is {category!r}"
        why = Refusal.UNKNOWN_CATEGORY
    elif version != known.version:
        wrong = f"version should be {known.version!r}, but is {version!r}: another release wrote it"
        why = Refusal.OTHER_VERSION
    else:
        return Category(category)
    raise InvalidMessage(f"envelope.type.{wrong}", where=f"envelope.type.{wrong.split()[0]}", reason=why)


def _refused(error: InvalidMessage | InvalidRequest, reason: Refusal) -> InvalidMessage:
    """The same error with its reason."""
    refused = InvalidMessage(error.message)
    refused.details = {**error.details, "reason": reason}
    return refused


def _moment(meta: Fields, key: str) -> float | None:
    """A time in milliseconds, or as text; 0 is none, as in Go."""
    if isinstance(meta.peek(key), str):
        return seconds(meta.text(key), meta.place(key))
    milliseconds = meta.number(key)
    return milliseconds / 1000 if milliseconds else None


def _milliseconds(moment: float | None) -> int:
    return 0 if moment is None else round(moment * 1000)


def _written(payload: AnyPayload) -> dict[str, JSON]:
    if isinstance(payload, ToolCall):
        return write_tool_call(payload)
    return write_tool_result(payload) if isinstance(payload, ToolResult) else payload.write()


def _validated(payload: AnyPayload) -> None:
    if isinstance(payload, ToolCall):
        validate_tool_call(payload)
    elif isinstance(payload, ToolResult):
        validate_tool_result(payload)
    else:
        payload.validate()

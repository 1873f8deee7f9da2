"""AgentResponse: what a model answered to the loop."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, json
from msgspec.structs import replace

from flyball.core.errors import EngineError, InvalidRequest, UnexpectedModelBehavior
from flyball.core.forms.fields import Fields, decoded, entered, filled, written
from flyball.core.forms.semstreams.messages import message_from, write_messages
from flyball.core.forms.semstreams.tools import usage_from, write_usage
from flyball.core.forms.semstreams.types import Category, PayloadType
from flyball.core.messages import JSON, FinishReason, Message, Role
from flyball.core.usage import Usage

_RESPONSE = frozenset({"request_id", "status", "message", "error", "token_usage"})
_FINISH = {
    "complete": FinishReason.STOP,
    "tool_call": FinishReason.TOOL_CALL,
    "error": FinishReason.ERROR,
}


class AgentResponse(Struct, frozen=True):
    """What a model answered: a message, calls for tools, or that it failed."""

    request_id: str
    status: str
    message: Message | None = None
    error: str = ""
    token_usage: Usage | None = None
    extra: dict[str, Any] | None = None

    @property
    def schema(self) -> PayloadType:
        """The payload's type."""
        return PayloadType(Category.RESPONSE)

    @classmethod
    def of(cls, request_id: str, message: Message) -> AgentResponse:
        """The response that carries an assistant's message. Why the model stopped becomes the status."""
        inferred = FinishReason.TOOL_CALL if message.tool_calls else FinishReason.STOP
        status = (message.finish_reason or inferred).status
        bare = replace(message, usage=None, finish_reason=None, model=None, timestamp=None)
        return cls(request_id, status, bare, token_usage=message.usage)

    @classmethod
    def failed(cls, request_id: str, error: Exception) -> AgentResponse:
        """The response that says what went wrong."""
        return cls(request_id, "error", error=str(error) or type(error).__name__)

    def answer(self) -> Message:
        """The assistant's message, with what it used and why it stopped.

        Raises:
            EngineError: the response is an error.
            UnexpectedModelBehavior: it has no message, or one that is no assistant's.
        """
        if self.status == "error":
            raise EngineError(
                self.error or "the model failed and did not say why", request_id=self.request_id
            )
        if self.message is None or self.message.role is not Role.ASSISTANT:
            raise UnexpectedModelBehavior(
                f"the response to {self.request_id!r} carries no assistant's message",
                request_id=self.request_id,
            )
        return replace(self.message, usage=self.token_usage, finish_reason=_FINISH.get(self.status))

    @classmethod
    def read(cls, document: object) -> AgentResponse:
        """The response from JSON.

        Raises:
            InvalidMessage: it is malformed.
        """
        return cls.from_json(entered(document, "response"), "response")

    @classmethod
    def from_json(cls, value: JSON, where: str) -> AgentResponse:
        """The response out of a document that was entered already; raises as `read` does."""
        fields = Fields(value, where)
        message, usage = fields.any("message"), fields.any("token_usage")
        return cls(
            fields.text("request_id"),
            fields.text("status"),
            None if message in (None, {}, {"role": ""}) else message_from(message, fields.place("message")),
            fields.text("error"),
            None if usage is None else usage_from(usage, fields.place("token_usage")),
            fields.rest(),
        )

    def write(self) -> dict[str, JSON]:
        """The response as JSON.

        Raises:
            InvalidRequest: its message is not exactly one of SemStreams' (a message with several results).
            InvalidMessage: its message has content that the form cannot hold.
        """
        known: dict[str, JSON] = {"request_id": self.request_id, "status": self.status}
        if self.message is not None:
            documents = write_messages([self.message])
            if len(documents) != 1:
                raise InvalidRequest("a response carries one message", field="message")
            known["message"] = documents[0]
        known |= filled(error=self.error)
        if self.token_usage is not None:
            known["token_usage"] = write_usage(self.token_usage)
        return written(known, self.extra, _RESPONSE)

    @classmethod
    def unmarshal_json(cls, data: bytes | str) -> AgentResponse:
        """The response from bytes; raises as `read` does."""
        return cls.from_json(decoded(data, "response"), "response")

    def marshal_json(self) -> bytes:
        """The response as bytes; raises as `write` does."""
        return json.encode(self.write())

    def validate(self) -> None:
        """Check that the status is one of the three.

        Raises:
            InvalidRequest: it is not.
        """
        if self.status not in _FINISH:
            raise InvalidRequest(
                f"status must be one of: {', '.join(_FINISH)}; it is {self.status!r}", field="status"
            )

"""A chat completion, from what was told of an answer and the response."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from msgspec import Struct

from flyball.adapters.http.openai.counting import chat_usage
from flyball.adapters.http.openai.said import Joined
from flyball.core.messages import FinishReason
from flyball.orchestrate.contracts import SystemResponse

_REASONS = {
    FinishReason.LENGTH: "length",
    FinishReason.CONTENT_FILTER: "content_filter",
}


class Envelope(Struct, frozen=True):
    """What every document of an answer says: which it is, when it was begun, whose it is.

    `backend` is the model behind the agent: its fingerprint changes when that does.
    """

    loop_id: str
    model: str
    created: int
    backend: str = ""

    @property
    def fingerprint(self) -> str:
        """`system_fingerprint`."""
        return f"fp_{sha256(f'{self.model}/{self.backend}'.encode()).hexdigest()[:12]}"

    def document(self, kind: str) -> dict[str, Any]:
        """The keys that a completion and a chunk share."""
        return {
            "id": f"chatcmpl-{self.loop_id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": self.fingerprint,
        }


def finish_reason(response: SystemResponse) -> str:
    """Why an answer ends, in OpenAI's words."""
    reason = response.finish_reason
    if reason is not None and reason in _REASONS:
        return _REASONS[reason]
    return "tool_calls" if response.calls_wanted else "stop"


def write_chat(
    envelope: Envelope, told: Joined, response: SystemResponse, metadata: dict[str, Any] | None = None
) -> dict[str, Any]:
    """ChatCompletion: an answer as a whole."""
    message: dict[str, Any] = {"role": "assistant", "content": told.text or None, "refusal": None}
    if told.thoughts:
        message["reasoning_content"] = told.thoughts
    if told.calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in told.calls
        ]
    else:
        message["content"] = told.text
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(response)}
    document = {
        **envelope.document("chat.completion"),
        "choices": [choice],
        "usage": chat_usage(response.usage),
    }
    return document if metadata is None else {**document, "metadata": metadata}

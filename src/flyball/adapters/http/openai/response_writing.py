"""A response, from what was told of an answer: its items, and the document around them."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from flyball.adapters.http.openai.counting import response_usage
from flyball.adapters.http.openai.errors import Refused
from flyball.adapters.http.openai.response_request import PREFIX
from flyball.adapters.http.openai.said import Joined, JoinedCall
from flyball.core.messages import FinishReason
from flyball.orchestrate.contracts import SystemResponse

_DEFAULTS: dict[str, Any] = {
    "instructions": None,
    "metadata": {},
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
}
_INCOMPLETE = {FinishReason.LENGTH: "max_output_tokens", FinishReason.CONTENT_FILTER: "content_filter"}


class Frame(Struct, frozen=True):
    """What every document of a response says; `part` tells the items of one loop's responses apart."""

    loop_id: str
    model: str
    created: int
    part: int = 0
    echo: dict[str, Any] = {}

    @property
    def id(self) -> str:
        """The response's id."""
        return f"{PREFIX}{self.loop_id}"

    def item_id(self, kind: str, number: int) -> str:
        """The id of an item."""
        return f"{kind}_{self.loop_id}_{self.part}_{number}"

    def document(self, status: str, output: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """Response."""
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "model": self.model,
            **_DEFAULTS,
            **self.echo,
            "status": status,
            "output": output,
            "error": None,
            "incomplete_details": None,
            "usage": None,
            **more,
        }


def ending(response: SystemResponse) -> tuple[str, dict[str, Any]]:
    """The status of a request that was answered, and what is told with it."""
    told: dict[str, Any] = {"usage": response_usage(response.usage)}
    reason = response.finish_reason
    if reason is not None and reason in _INCOMPLETE:
        return "incomplete", told | {"incomplete_details": {"reason": _INCOMPLETE[reason]}}
    return "completed", told


def failing(refused: Refused, response: SystemResponse | None) -> dict[str, Any]:
    """What is told with the status `failed`."""
    code = "server_error"
    if refused.status == 429:
        code = "rate_limit_exceeded"
    elif refused.status < 429:
        code = "invalid_prompt"
    error = {"code": code, "message": refused.message}
    return {"error": error, "usage": None if response is None else response_usage(response.usage)}


def write_response(frame: Frame, told: Joined, response: SystemResponse) -> dict[str, Any]:
    """Response: an answer as a whole."""
    output: list[dict[str, Any]] = []
    if told.thoughts:
        output.append(reasoning_item(frame.item_id("rs", 0), told.thoughts))
    if told.text or not told.calls:
        output.append(message_item(frame.item_id("msg", len(output)), told.text))
    for call in told.calls:
        output.append(call_item(frame.item_id("fc", len(output)), call))
    status, more = ending(response)
    if status == "incomplete":
        output[-1]["status"] = "incomplete"
    return frame.document(status, output, **more)


def reasoning_item(item_id: str, text: str, status: str = "completed") -> dict[str, Any]:
    """ResponseReasoningItem."""
    content = [reasoning_part(text)] if text else []
    return {"id": item_id, "type": "reasoning", "summary": [], "content": content, "status": status}


def message_item(item_id: str, text: str | None, status: str = "completed") -> dict[str, Any]:
    """ResponseOutputMessage; without text it has no content yet."""
    content = [] if text is None else [text_part(text)]
    return {"id": item_id, "type": "message", "role": "assistant", "status": status, "content": content}


def call_item(item_id: str, call: JoinedCall, status: str = "completed") -> dict[str, Any]:
    """ResponseFunctionToolCall."""
    return {
        "id": item_id,
        "type": "function_call",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": status,
    }


def text_part(text: str) -> dict[str, Any]:
    """ResponseOutputText."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def reasoning_part(text: str) -> dict[str, Any]:
    """The content of a reasoning item."""
    return {"type": "reasoning_text", "text": text}

"""A chat completion in chunks: the same answer, told as it comes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, assert_never

from flyball.adapters.http.openai.chat_writing import Envelope, finish_reason
from flyball.adapters.http.openai.counting import chat_usage
from flyball.adapters.http.openai.said import Arguments, Call, Said, Thought, Words
from flyball.orchestrate.contracts import SystemResponse


class ChatChunks:
    """Writes ChatCompletionChunks. The first says who speaks, the last why it ends; then what was used."""

    def __init__(self, envelope: Envelope, *, include_usage: bool = False) -> None:
        self._common = envelope.document("chat.completion.chunk")
        self._usage = include_usage

    def begin(self) -> list[dict[str, Any]]:
        """The first chunk."""
        return [self._chunk({"role": "assistant", "content": "", "refusal": None})]

    def write(self, said: Iterable[Said]) -> list[dict[str, Any]]:
        """The chunks of what is told."""
        return [self._chunk(_delta(one)) for one in said]

    def end(self, response: SystemResponse) -> list[dict[str, Any]]:
        """The last chunk of a request that was answered, and what was used, if that is wanted."""
        chunks = [self._chunk({}, finish_reason(response))]
        if self._usage:
            chunks.append({**self._common, "choices": [], "usage": chat_usage(response.usage)})
        return chunks

    def _chunk(self, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        chunk = {**self._common, "choices": [choice]}
        return {**chunk, "usage": None} if self._usage else chunk


def _delta(said: Said) -> dict[str, Any]:
    match said:
        case Words():
            return {"content": said.text}
        case Thought():
            return {"reasoning_content": said.text}
        case Call():
            function = {"name": said.name, "arguments": ""}
            return {
                "tool_calls": [
                    {"index": said.number, "id": said.id, "type": "function", "function": function}
                ]
            }
        case Arguments():
            return {"tool_calls": [{"index": said.number, "function": {"arguments": said.text}}]}
        case _:
            assert_never(said)

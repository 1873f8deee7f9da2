"""Answers of a Chat Completions server: random ones, whole and as the chunks of a stream."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st

_words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=20)
_args = st.sampled_from(["{}", '{"city": "Paris"}', '{"n": 1, "deep": [null]}', ""])
_calls = st.lists(
    st.tuples(st.sampled_from(["look", "find"]), _args).map(
        lambda pair: {"type": "function", "function": {"name": pair[0], "arguments": pair[1]}}
    ),
    max_size=3,
)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    """What a model may answer; there is always something."""
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | _words)}
    if draw(st.booleans()):
        message["reasoning_content"] = draw(_words)
    if draw(st.integers(0, 9)) == 0:
        message["refusal"] = draw(_words)
    calls = draw(_calls)
    if calls:
        message["tool_calls"] = [{"id": f"call_{number}", **call} for number, call in enumerate(calls)]
    elif message["content"] is None:
        message["content"] = draw(_words)
    return message


def completion(message: dict[str, Any], reason: str = "stop") -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o-2024",
        "choices": [{"index": 0, "message": message, "finish_reason": reason, "logprobs": None}],
        "usage": usage(),
    }


def usage() -> dict[str, Any]:
    return {
        "prompt_tokens": 12,
        "completion_tokens": 7,
        "total_tokens": 19,
        "prompt_tokens_details": {"cached_tokens": 4, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 3, "audio_tokens": 0},
    }


@st.composite
def chunks_of(draw: st.DrawFn, message: dict[str, Any], reason: str = "stop") -> list[dict[str, Any]]:
    """The chunks of a stream that gives a message, its texts cut anywhere."""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    for key in ("reasoning_content", "content", "refusal"):
        deltas += [{key: piece} for piece in draw(_cut(message.get(key) or ""))]
    for number, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        begin = {**call, "index": number, "function": {**function, "arguments": ""}}
        deltas.append({"tool_calls": [begin]})
        deltas += [
            {"tool_calls": [{"index": number, "function": {"arguments": piece}}]}
            for piece in draw(_cut(function["arguments"]))
        ]
    head: dict[str, Any] = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "gpt-4o-2024",
    }
    made: list[dict[str, Any]] = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    made.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
    made.append({**head, "choices": [], "usage": usage()})
    return made


@st.composite
def _cut(draw: st.DrawFn, text: str) -> list[str]:
    places = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=4))})
    return [text[one:other] for one, other in pairwise(places)]

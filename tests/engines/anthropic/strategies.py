"""Histories with all that Anthropic has a form for, and answers with all that it may give."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from flyball.core.messages import (
    Document,
    Image,
    Message,
    Part,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    data_url,
)
from tests.engines.anthropic.wire import MODEL, body
from tests.histories import histories

_WORDS = st.sampled_from(["hi", "two words", "漢字 🙂", " padded ", "a\nb", 'say "no"', "\\u0000"])
_MODELS = st.sampled_from([None, None, MODEL, "claude-sonnet-4-5-20250929", "gpt-5"])
_MORE_SAID: SearchStrategy[Part] = st.sampled_from(
    [
        Text("   "),
        Text(""),
        Image(data_url(b"\x89PNG", "image/png")),
        Image("data:image/gif,%47IF"),
        Document(data_url(b"%PDF-", "application/pdf"), title="Report"),
        Document(data_url("Ein Läufer".encode(), "text/markdown")),
        Document(data_url(b" ", "text/plain"), title="None"),
    ]
)
_MORE_THOUGHT: SearchStrategy[Part] = st.sampled_from([
    Thinking("signed", "c2ln"),
    Thinking("", "b21pdHRlZA=="),
    Thinking("", provider_data={"anthropic": {"type": "redacted_thinking", "data": "ZW5j"}}),
    Thinking(
        "",
        provider_data={
            "anthropic": {
                "type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}
            }
        },
    ),
    Text("\n"),
    Image("https://example.org/drawn.png"),
])  # fmt: skip
_IDS = st.sampled_from(["", "a" * 70, "id with spaces", "漢", "call|1", "plain"])
_ARGS = st.sampled_from(['{"at": 1}', "", "not json", "[1]", '{"cut": "of', '{"deep": {"é": [null]}}'])
_STATES = st.sampled_from([{}, {}, {"content": " "}, {"error": " "}, {"content": {"a": 1}}])


@st.composite
def rich_histories(draw: st.DrawFn) -> list[Message]:
    """Valid histories with all kinds of media, thoughts of several models, strange ids and arguments."""
    made: list[Message] = []
    ids: dict[str, str] = {}
    for plain in draw(histories(8)):
        message = plain
        parts = list(message.parts)
        if message.role is Role.USER and draw(st.booleans()):
            parts.insert(draw(st.integers(0, len(parts))), draw(_MORE_SAID))
        elif message.role is Role.ASSISTANT:
            ids = {part.id: draw(_IDS) + part.id[1:] for part in parts if type(part) is ToolCall}
            if draw(st.booleans()):
                # Ids of another engine, which counts anew in every answer.
                ids = {old: f"call_{number}" for number, old in enumerate(ids)}
            parts = [
                replace(part, id=ids[part.id], args_json=draw(_ARGS)) if type(part) is ToolCall else part
                for part in parts
            ]
            for _ in range(draw(st.integers(0, 2))):
                parts.insert(draw(st.integers(0, len(parts))), draw(_MORE_THOUGHT))
            message = replace(message, model=draw(_MODELS))
        elif message.role is Role.TOOL:
            parts = [
                replace(part, call_id=ids[part.call_id], **draw(_STATES))
                if type(part) is ToolResult
                else part
                for part in parts
            ]
        made.append(replace(message, parts=tuple(parts)))
        if draw(st.integers(0, 9)) == 0 and message.role is Role.USER:
            made.append(Message(Role.SYSTEM, (Text("From now on in verse."),)))
    return made


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(-1e9, 1e9) | _WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_WORDS, inner, max_size=2),
    max_leaves=4,
)
_OBJECTS = st.dictionaries(_WORDS, _JSON, max_size=3)
_CITATION = {
    "type": "char_location", "cited_text": "x", "document_index": 0, "document_title": None,
    "start_char_index": 0, "end_char_index": 1, "file_id": None,
}  # fmt: skip
_FOUND = {
    "type": "web_search_result", "encrypted_content": "ZW5j", "page_age": None, "title": "T", "url": "https://x",
}  # fmt: skip
_BLOCKS: SearchStrategy[dict[str, Any]] = st.one_of(
    st.fixed_dictionaries({"type": st.just("text"), "text": _WORDS | st.just(""), "citations": st.none()}),
    st.fixed_dictionaries({"type": st.just("text"), "text": _WORDS, "citations": st.just([_CITATION] * 2)}),
    st.fixed_dictionaries({
        "type": st.just("thinking"), "thinking": _WORDS | st.just(""), "signature": st.just("c2ln")
    }),
    st.just({"type": "redacted_thinking", "data": "ZW5j"}),
    st.fixed_dictionaries({
        "type": st.just("tool_use"), "id": st.just("toolu_1"), "name": st.just("look"), "input": _OBJECTS,
        "caller": st.sampled_from([None, {"type": "direct"}]), "toolset_name": st.none(),
    }),
    st.fixed_dictionaries({
        "type": st.just("server_tool_use"), "id": st.just("srvtoolu_1"), "name": st.just("web_search"),
        "input": _OBJECTS, "caller": st.none(),
    }),
    st.just({
        "type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": [_FOUND], "caller": None
    }),
)  # fmt: skip
_USAGES = st.fixed_dictionaries(
    {"input_tokens": st.integers(0, 9_000), "output_tokens": st.integers(1, 9_000)},
    optional={
        "cache_creation_input_tokens": st.none() | st.integers(0, 9),
        "cache_read_input_tokens": st.none() | st.integers(0, 9),
        "cache_creation": st.just({"ephemeral_1h_input_tokens": 3, "ephemeral_5m_input_tokens": 0}),
        "server_tool_use": st.just({"web_search_requests": 2, "web_fetch_requests": 0}),
        "output_tokens_details": st.just({"thinking_tokens": 1}),
        "service_tier": st.just("standard"),
    },
)
_ENDINGS: SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"stop_reason": "end_turn"},
        {"stop_reason": "max_tokens"},
        {"stop_reason": "stop_sequence", "stop_sequence": "END"},
        {"stop_reason": "pause_turn"},
        {"stop_reason": "model_context_window_exceeded"},
        {
            "stop_reason": "refusal",
            "stop_details": {"type": "refusal", "category": "cyber", "explanation": None},
        },
    ]
)


@st.composite
def bodies(draw: st.DrawFn) -> dict[str, Any]:
    """Answers, as the API gives them whole."""
    content = draw(st.lists(_BLOCKS, max_size=5))
    return {**body(*content), **draw(_ENDINGS), "usage": draw(_USAGES)}

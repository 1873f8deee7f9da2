"""Foreign documents for hypothesis: each system's keys as its Go code writes them, unknown ones anywhere."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.strategies import counts, finite, names

# Drawn from few values, because a document has many places, and it is the places that matter.
texts = st.sampled_from(["", "x", "Grüß Gott", '{"a": 1}', "\x00\n😀"])
filled_texts = st.sampled_from(["x", "Grüß Gott", '{"a": 1}', "\x00\n😀"])
json_values: SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 1 << 70, 2.5, "", "text", [], {}, [1, {"a": None}], {"k": [2.5, "v"], "": {}}]
)
json_objects: SearchStrategy[dict[str, Any]] = st.dictionaries(texts, json_values, max_size=2)
filled_objects: SearchStrategy[dict[str, Any]] = st.dictionaries(texts, json_values, min_size=1, max_size=2)
Document = dict[str, Any]

_nothing: Document = {}
unknowns: SearchStrategy[Document] = st.just(_nothing) | st.dictionaries(
    # One of them is what our own notes are called.
    st.sampled_from(["x", "x_note", "Content", "gollem", "", "ключ"]),
    json_values,
    max_size=2,
)


def document(always: Document, sometimes: Document | None = None) -> SearchStrategy[Document]:
    """Objects with the keys that are always written, any of those left out when empty, and unknown ones."""
    known = st.fixed_dictionaries(always, optional=sometimes or {})
    return st.tuples(unknowns, known).map(lambda two: {**two[0], **two[1]})


PAGANTIC_CALL = document({"id": texts, "name": texts, "arguments": json_objects})
_PAGANTIC = {
    "system": document({"role": st.just("system"), "content": texts}, {"name": filled_texts}),
    "user": document({"role": st.just("user"), "content": texts}, {"name": filled_texts}),
    "assistant": document(
        {"role": st.just("assistant"), "content": texts},
        {"name": filled_texts, "tool_calls": st.lists(PAGANTIC_CALL, min_size=1, max_size=3)},
    ),
    "tool": document(
        {"role": st.just("tool"), "content": texts},
        {"name": filled_texts, "tool_call_id": st.sampled_from("abc")},
    ),
}
PAGANTIC_MESSAGE = st.one_of(list(_PAGANTIC.values()))
PAGANTIC_RESULT = document({"call_id": texts, "name": texts, "content": texts, "is_error": st.booleans()})
PAGANTIC_TOOL = document({"name": texts, "description": texts, "parameters": json_objects})
PAGANTIC_USAGE = document(
    {
        "prompt_tokens": counts,
        "reasoning_tokens": counts,
        "output_tokens": counts,
        "context_tokens": counts,
        "context_window": counts,
        "tokens_per_second": finite,
    }
)

SEM_CALL = document(
    {"id": texts, "name": texts},
    {
        "arguments": filled_objects,
        "metadata": filled_objects,
        "loop_id": filled_texts,
        "trace_id": filled_texts,
    },
)
SEM_ASSISTANT = document(
    {"role": st.just("assistant")},
    {
        "content": filled_texts,
        "name": filled_texts,
        "reasoning_content": filled_texts,
        "tool_calls": st.lists(SEM_CALL, min_size=1, max_size=3),
    },
)
SEM_MESSAGE = st.one_of(
    document({"role": st.sampled_from(["system", "user"])}, {"content": filled_texts, "name": filled_texts}),
    SEM_ASSISTANT,
    document(
        {"role": st.just("tool")},
        {"content": filled_texts, "name": filled_texts, "tool_call_id": st.sampled_from("abc")},
    ),
)
SEM_RESULT = document(
    {"call_id": texts},
    {
        "name": filled_texts,
        "content": filled_texts,
        "error": filled_texts,
        "metadata": filled_objects,
        "loop_id": filled_texts,
        "trace_id": filled_texts,
        "stop_loop": st.just(value=True),
    },
)
SEM_TOOL = PAGANTIC_TOOL
SEM_CHOICE = st.one_of(
    document({"mode": st.just("auto")}),
    document({"mode": st.sampled_from(["required", "none"])}, {"function_name": filled_texts}),
    document({"mode": st.just("function"), "function_name": filled_texts}),
)
SEM_USAGE = document({"prompt_tokens": counts, "completion_tokens": counts})
SEM_REQUEST = document(
    {
        "request_id": texts,
        "loop_id": texts,
        "role": texts,
        "messages": st.lists(SEM_MESSAGE, max_size=4),
        "model": texts,
    },
    {
        "max_tokens": counts,
        "temperature": finite,
        "tools": st.lists(SEM_TOOL, min_size=1, max_size=2),
        "tool_choice": SEM_CHOICE,
    },
)
SEM_RESPONSE = document(
    {"request_id": texts, "status": texts},
    {"message": SEM_MESSAGE, "error": filled_texts, "token_usage": SEM_USAGE},
)

_instants = st.datetimes().map(lambda moment: moment.isoformat(timespec="seconds"))
_fractions = st.just("") | st.text("0123456789", min_size=1, max_size=11).map(lambda digits: f".{digits}")
_zones = st.just("Z") | st.builds(
    "{}{:02}:{:02}".format, st.sampled_from("+-"), st.integers(0, 23), st.integers(0, 59)
)
wild_times = (
    st.tuples(_instants, _fractions, _zones)
    .map("".join)
    .filter(lambda text: "0002" < text < "9999")  # within the years 1 to 9999 in every zone
)
times = (
    st.just("2025-01-15T10:30:00Z")
    | st.sampled_from(["0001-01-01T00:00:00Z", "2025-01-15T10:30:00Z", "2025-01-15T10:30:00.25Z"])
    | wild_times
)
"""Times as Go and others write them; a few that come again, so that parts have the same one."""


def part(kind: str, always: Document, sometimes: Document | None = None) -> SearchStrategy[Document]:
    """A part in its envelope."""
    return document({"type": st.just(kind), "data": document(always, sometimes)})


_result_image = document({"URL": texts, "MIMEType": texts, "Detail": texts, "Timestamp": times})
GOL_REQUEST_PART = st.one_of(
    part("system-prompt", {"content": texts, "timestamp": times}),
    part("user-prompt", {"content": texts, "timestamp": times}),
    part(
        "tool-return",
        {"tool_name": texts, "content": json_values, "tool_call_id": texts, "timestamp": times},
        {"images": st.lists(_result_image, min_size=1, max_size=2)},
    ),
    part(
        "retry-prompt",
        {"content": texts, "timestamp": times},
        {"tool_name": filled_texts, "tool_call_id": filled_texts},
    ),
    part(
        "image",
        {"url": texts, "mime_type": texts, "timestamp": times},
        {"detail": filled_texts | st.sampled_from(["auto", "low", "high"])},
    ),
    part("audio", {"url": texts, "mime_type": texts, "timestamp": times}),
    part("document", {"url": texts, "mime_type": texts, "timestamp": times}, {"title": filled_texts}),
)
GOL_RESPONSE_PART = st.one_of(
    part("text", {"content": texts}),
    part("thinking", {"content": texts}, {"signature": filled_texts}),
    part(
        "tool-call",
        {"tool_name": texts, "args_json": texts, "tool_call_id": texts},
        {"metadata": st.dictionaries(texts, texts, min_size=1, max_size=2)},
    ),
)
_positive = st.integers(1, 1 << 40)
_gol_counts: Document = {
    "input_tokens": _positive,
    "output_tokens": _positive,
    "cache_write_tokens": _positive,
    "cache_read_tokens": _positive,
    "details": st.dictionaries(names, counts, min_size=1, max_size=2),
}
GOL_USAGE = document({}, _gol_counts)
GOL_RUN_USAGE = document({"requests": counts, "tool_calls": counts}, _gol_counts)
GOL_RESPONSE = document(
    {
        "kind": st.just("response"),
        "data": document(
            {
                "parts": st.lists(GOL_RESPONSE_PART, max_size=3),
                "usage": GOL_USAGE,
                "model_name": texts,
                "finish_reason": texts | st.sampled_from(["stop", "length", "tool_call"]),
                "timestamp": times,
            }
        ),
    }
)
GOL_REQUEST = document(
    {
        "kind": st.just("request"),
        "data": document({"parts": st.lists(GOL_REQUEST_PART, min_size=1, max_size=3), "timestamp": times}),
    }
)
GOL_MESSAGES = st.lists(GOL_REQUEST | GOL_RESPONSE, max_size=4)
GOL_TOOL = document(
    {"name": texts, "parameters_schema": json_objects, "kind": st.sampled_from(["function", "output"])},
    {
        "description": filled_texts,
        "strict": st.booleans(),
        "sequential": st.just(value=True),
        "outer_typed_dict_key": filled_texts,
    },
)
GOL_CHOICE = st.one_of(
    document({"mode": st.just("auto")}),
    document({"tool_name": filled_texts}),
    document({"mode": st.sampled_from(["required", "none"])}, {"tool_name": filled_texts}),
)
GOL_SNAPSHOT = document(
    {
        "messages": GOL_MESSAGES,
        "usage": GOL_RUN_USAGE,
        "last_input_tokens": counts,
        "retries": counts,
        "run_id": texts,
        "run_step": counts,
        "run_start_time": times,
        "prompt": texts,
        "timestamp": times,
    },
    {
        "tool_retries": st.dictionaries(names, counts, min_size=1, max_size=2),
        "parent_run_id": filled_texts,
        "tool_state": filled_objects,
    },
)

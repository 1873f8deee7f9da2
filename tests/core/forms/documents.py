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

_set_times = st.sampled_from(["2025-01-15T10:30:00Z", "2025-01-15T10:30:00.25Z", "1970-01-01T00:00:00Z"])
_tags: Document = {"workflow_slug": filled_texts, "workflow_step": filled_texts}
_channel: Document = {"channel_type": filled_texts, "channel_id": filled_texts, "user_id": filled_texts}
_counts = st.integers(1, 1 << 40)
SEM_CONTEXT = document(
    {"content": texts, "token_count": counts},
    {
        "entities": st.lists(texts, min_size=1, max_size=2),
        "sources": st.lists(document({"type": texts, "id": texts}), min_size=1, max_size=2),
        "constructed_at": _set_times,
    },
)
SEM_GRAPH_CONTEXT = document(
    {},
    {
        "entities": st.lists(texts, min_size=1, max_size=2),
        "relationships": st.just(value=True),
        "depth": _counts,
        "max_tokens": _counts,
    },
)
SEM_TASK = document(
    {"task_id": texts, "role": texts, "model": texts, "prompt": texts},
    {
        "loop_id": filled_texts,
        **_tags,
        **_channel,
        "parent_loop_id": filled_texts,
        "depth": _counts,
        "max_depth": _counts,
        "context": SEM_CONTEXT,
        "context_request_id": filled_texts,
        "tools": st.lists(SEM_TOOL, min_size=1, max_size=2),
        "tool_choice": SEM_CHOICE,
        "metadata": filled_objects,
    },
)
_set_values = json_values.filter(lambda value: value is not None)
SEM_SIGNAL = document(
    {
        "signal_id": texts,
        "type": texts,
        "loop_id": texts,
        "user_id": texts,
        "channel_type": texts,
        "channel_id": texts,
        "timestamp": _set_times,
    },
    {"payload": _set_values},
)
SEM_SIGNAL_MESSAGE = document({"loop_id": texts, "type": texts, "reason": texts, "timestamp": _set_times})
SEM_ATTACHMENT = document(
    {"type": texts, "name": texts},
    {"url": filled_texts, "content": filled_texts, "mime_type": filled_texts, "size": _counts},
)
SEM_USER_MESSAGE = document(
    {
        "message_id": texts,
        "channel_type": texts,
        "channel_id": texts,
        "user_id": texts,
        "content": texts,
        "timestamp": _set_times,
    },
    {
        "attachments": st.lists(SEM_ATTACHMENT, min_size=1, max_size=2),
        "reply_to": filled_texts,
        "thread_id": filled_texts,
        "metadata": st.dictionaries(texts, texts, min_size=1, max_size=2),
        "context_request_id": filled_texts,
    },
)
SEM_USER_RESPONSE = document(
    {
        "response_id": texts,
        "channel_type": texts,
        "channel_id": texts,
        "user_id": texts,
        "type": texts,
        "content": texts,
        "timestamp": _set_times,
    },
    {
        "in_reply_to": filled_texts,
        "thread_id": filled_texts,
        "blocks": st.lists(
            document({"type": texts, "content": texts}, {"lang": filled_texts}), min_size=1, max_size=2
        ),
        "actions": st.lists(
            document({"id": texts, "type": texts, "label": texts, "signal": texts, "style": texts}),
            min_size=1,
            max_size=2,
        ),
    },
)
SEM_LOOP = document(
    {
        "id": texts,
        "task_id": texts,
        "state": texts,
        "role": texts,
        "model": texts,
        "iterations": counts,
        "max_iterations": counts,
    },
    {
        "pending_tool_results": st.dictionaries(texts, SEM_RESULT, min_size=1, max_size=2),
        "started_at": _set_times,
        "timeout_at": _set_times,
        "parent_loop_id": filled_texts,
        "depth": _counts,
        "max_depth": _counts,
        "pause_requested": st.just(value=True),
        "pause_requested_by": filled_texts,
        "state_before_pause": filled_texts,
        "cancelled_by": filled_texts,
        "cancelled_at": _set_times,
        **_channel,
        **_tags,
        "outcome": filled_texts,
        "result": filled_texts,
        "error": filled_texts,
        "completed_at": _set_times,
        "identity": filled_objects,
    },
)
SEM_STEP = document(
    {"timestamp": _set_times, "step_type": texts, "duration": counts},
    {
        "request_id": filled_texts,
        "prompt": filled_texts,
        "response": filled_texts,
        "tokens_in": _counts,
        "tokens_out": _counts,
        "tool_name": filled_texts,
        "tool_arguments": filled_objects,
        "tool_result": filled_texts,
        "messages": st.lists(SEM_MESSAGE, min_size=1, max_size=2),
        "tool_calls": st.lists(SEM_CALL, min_size=1, max_size=2),
        "model": filled_texts,
    },
)
SEM_TRAJECTORY = document(
    {
        "loop_id": texts,
        "start_time": _set_times,
        "steps": st.lists(SEM_STEP, max_size=3),
        "total_tokens_in": counts,
        "total_tokens_out": counts,
        "duration": counts,
    },
    {"end_time": _set_times, "outcome": filled_texts},
)
_loop: Document = {"loop_id": texts, "task_id": texts}
_spent: Document = {"iterations": counts, "tokens_in": counts, "tokens_out": counts}
SEM_CREATED = document(
    {**_loop, "role": texts, "model": texts, "max_iterations": counts, "created_at": _set_times},
    {**_tags, "context_request_id": filled_texts},
)
SEM_COMPLETED = document(
    {
        **_loop,
        **_spent,
        "outcome": texts,
        "role": texts,
        "result": texts,
        "model": texts,
        "completed_at": _set_times,
    },
    {**_tags, **_channel, "parent_loop": filled_texts},
)
SEM_FAILED = document(
    {
        **_loop,
        **_spent,
        "outcome": texts,
        "reason": texts,
        "error": texts,
        "role": texts,
        "model": texts,
        "failed_at": _set_times,
    },
    {**_tags, **_channel},
)
SEM_CANCELLED = document(
    {**_loop, "outcome": texts, "cancelled_by": texts, "cancelled_at": _set_times}, _tags
)
SEM_CONTEXT_EVENT = document(
    {"type": texts, "loop_id": texts, "iteration": counts},
    {"utilization": st.sampled_from([0.25, 0.9]), "tokens_saved": _counts, "summary": filled_texts},
)
SEM_PAYLOADS: dict[str, SearchStrategy[Document]] = {
    "task": SEM_TASK,
    "user_message": SEM_USER_MESSAGE,
    "signal": SEM_SIGNAL,
    "user_response": SEM_USER_RESPONSE,
    "request": SEM_REQUEST,
    "response": SEM_RESPONSE,
    "tool_call": SEM_CALL,
    "tool_result": SEM_RESULT,
    "loop_created": SEM_CREATED,
    "loop_completed": SEM_COMPLETED,
    "loop_failed": SEM_FAILED,
    "loop_cancelled": SEM_CANCELLED,
    "context_event": SEM_CONTEXT_EVENT,
    "signal_message": SEM_SIGNAL_MESSAGE,
}
"""What stands in an envelope, by the category that it is of."""
_milliseconds = st.integers(0, 4_000_000_000_000)
SEM_ENVELOPE = st.one_of(
    [
        document(
            {
                "id": texts,
                "type": st.just({"domain": "agentic", "category": category, "version": "v1"}),
                "payload": payload,
                "meta": document(
                    {"created_at": _milliseconds, "received_at": _milliseconds, "source": texts}
                ),
            }
        )
        for category, payload in SEM_PAYLOADS.items()
    ]
)


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

"""The wire, spoken by hand: documents typed from the description of SemStreams' package alone.

Each is read, found valid, and written back key for key.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given

from flyball.core.errors import InvalidMessage
from flyball.core.events import Outcome
from flyball.core.forms.semstreams import (
    Category,
    Envelope,
    LoopEntity,
    Refusal,
    TaskMessage,
    Trajectory,
    UserSignal,
    portable_message,
    read_envelope,
    read_messages,
    write_envelope,
    write_messages,
)
from flyball.core.forms.semstreams.envelope import READERS
from flyball.core.messages import Audio, Document, Image, Message, ToolCall, ToolResult
from flyball.core.signals import Signal, SignalType
from tests.core.forms.documents import SEM_ENVELOPE
from tests.strategies import messages

SPOKEN: dict[Category, str] = {
    Category.TASK: """{
        "task_id": "task_456", "role": "architect", "model": "gpt-4", "prompt": "Analyze this code for bugs.",
        "workflow_slug": "add-user-auth", "workflow_step": "design",
        "channel_type": "slack", "channel_id": "C1", "user_id": "u1",
        "parent_loop_id": "loop_1", "depth": 1, "max_depth": 3,
        "context": {"content": "main.go has 3 functions", "token_count": 7, "entities": ["main.go"],
                    "sources": [{"type": "document", "id": "main.go"}],
                    "constructed_at": "2026-03-13T08:00:00Z"},
        "context_request_id": "ctx_1",
        "tools": [{"name": "read_file", "description": "Read file contents",
                   "parameters": {"type": "object", "properties": {"path": {"type": "string"}},
                                  "required": ["path"]}}],
        "tool_choice": {"mode": "function", "function_name": "read_file"},
        "metadata": {"tenant": "blue"}}""",
    Category.USER_MESSAGE: """{
        "message_id": "m1", "channel_type": "cli", "channel_id": "tty1", "user_id": "u1", "content": "",
        "attachments": [{"type": "code", "name": "main.go", "content": "package main", "size": 12},
                        {"type": "url", "name": "docs", "url": "https://example.org",
                         "mime_type": "text/html"}],
        "reply_to": "loop_123", "thread_id": "th1", "metadata": {"team": "t"}, "context_request_id": "ctx_1",
        "timestamp": "2026-03-13T08:00:00.5Z"}""",
    Category.SIGNAL: """{
        "signal_id": "s1", "type": "reject", "loop_id": "loop_123", "user_id": "u1",
        "channel_type": "web", "channel_id": "w1", "payload": "too dangerous",
        "timestamp": "2026-03-13T08:00:01Z"}""",
    Category.USER_RESPONSE: """{
        "response_id": "r1", "channel_type": "slack", "channel_id": "C1", "user_id": "u1",
        "in_reply_to": "loop_123", "thread_id": "th1", "type": "prompt", "content": "May I?",
        "blocks": [{"type": "code", "content": "rm x", "lang": "sh"}, {"type": "text", "content": "?"}],
        "actions": [{"id": "a1", "type": "button", "label": "Yes", "signal": "approve", "style": "primary"}],
        "timestamp": "2026-03-13T08:00:02Z"}""",
    Category.REQUEST: """{
        "request_id": "req_001", "loop_id": "loop_123", "role": "general", "model": "gpt-4",
        "messages": [{"role": "system", "content": "You are a helpful assistant."},
                     {"role": "user", "content": "Analyze this code for bugs."}],
        "tools": [{"name": "read_file", "description": "Read file contents",
                   "parameters": {"type": "object"}}]}""",
    Category.RESPONSE: """{
        "request_id": "req_001", "status": "complete",
        "message": {"role": "assistant", "content": "I found 3 potential issues..."},
        "token_usage": {"prompt_tokens": 150, "completion_tokens": 200}}""",
    Category.TOOL_CALL: """{
        "id": "call_001", "name": "read_file", "arguments": {"path": "/etc/hosts"},
        "metadata": {"tenant": "blue"}, "loop_id": "loop_123", "trace_id": "tr1"}""",
    Category.TOOL_RESULT: """{
        "call_id": "call_001", "name": "read_file", "content": "127.0.0.1 localhost\\n...",
        "metadata": {"bytes": 20}, "loop_id": "loop_123", "trace_id": "tr1", "stop_loop": true}""",
    Category.LOOP_CREATED: """{
        "loop_id": "loop_123", "task_id": "task_456", "role": "general", "model": "gpt-4",
        "workflow_slug": "add-user-auth", "workflow_step": "design", "context_request_id": "ctx_1",
        "max_iterations": 20, "created_at": "2026-03-13T08:00:00Z"}""",
    Category.LOOP_COMPLETED: """{
        "loop_id": "loop_123", "task_id": "task_456", "outcome": "success", "role": "general",
        "result": "I found 3 issues...", "model": "gpt-4", "iterations": 2, "tokens_in": 150,
        "tokens_out": 200, "parent_loop": "loop_1", "workflow_slug": "add-user-auth",
        "workflow_step": "design", "completed_at": "2026-03-13T08:00:03Z",
        "channel_type": "slack", "channel_id": "C1", "user_id": "u1"}""",
    Category.LOOP_FAILED: """{
        "loop_id": "loop_123", "task_id": "task_456", "outcome": "failed", "reason": "max_iterations",
        "error": "max iterations (20) reached", "role": "general", "model": "gpt-4", "iterations": 20,
        "tokens_in": 0, "tokens_out": 0, "failed_at": "2026-03-13T08:00:03Z",
        "channel_type": "slack", "channel_id": "C1", "user_id": "u1"}""",
    Category.LOOP_CANCELLED: """{
        "loop_id": "loop_123", "task_id": "task_456", "outcome": "cancelled", "cancelled_by": "u1",
        "cancelled_at": "2026-03-13T08:00:03Z"}""",
    Category.CONTEXT_EVENT: """{
        "type": "compaction_complete", "loop_id": "loop_123", "iteration": 7, "utilization": 0.62,
        "tokens_saved": 4000, "summary": "They looked at main.go."}""",
    Category.SIGNAL_MESSAGE: """{
        "loop_id": "loop_123", "type": "cancel", "reason": "changed my mind",
        "timestamp": "2026-03-13T08:00:01Z"}""",
}

LOOP = """{
    "id": "loop_123", "task_id": "task_456", "state": "paused", "role": "editor", "model": "gpt-4",
    "iterations": 3, "max_iterations": 50,
    "pending_tool_results": {"call_001": {"call_id": "call_001", "error": "file not found"}},
    "started_at": "2026-03-13T08:00:00Z", "timeout_at": "2026-03-13T08:02:00Z", "parent_loop_id": "loop_1",
    "depth": 1, "max_depth": 3, "pause_requested": true, "pause_requested_by": "u1",
    "state_before_pause": "executing", "cancelled_by": "u2", "cancelled_at": "2026-03-13T08:01:00Z",
    "user_id": "u1", "channel_type": "cli", "channel_id": "tty1", "workflow_slug": "add-user-auth",
    "workflow_step": "design", "outcome": "cancelled", "result": "half", "error": "cancelled by u2",
    "completed_at": "2026-03-13T08:01:00Z", "identity": {"did": "did:key:z6Mk"}}"""

TRAJECTORY = """{
    "loop_id": "loop_123", "start_time": "2026-03-13T08:00:00Z", "end_time": "2026-03-13T08:00:03Z",
    "steps": [
        {"timestamp": "2026-03-13T08:00:02Z", "step_type": "model_call", "request_id": "req_001",
         "prompt": "Analyze this code...", "response": "I found 3 issues...", "tokens_in": 150,
         "tokens_out": 200, "duration": 1250, "messages": [{"role": "user", "content": "Analyze"}],
         "tool_calls": [{"id": "call_001", "name": "read_file", "arguments": {"path": "main.go"}}],
         "model": "gpt-4"},
        {"timestamp": "2026-03-13T08:00:03Z", "step_type": "tool_call", "tool_name": "read_file",
         "tool_arguments": {"path": "main.go"}, "tool_result": "package main...", "duration": 50}],
    "outcome": "complete", "total_tokens_in": 150, "total_tokens_out": 200, "duration": 3000}"""


def enveloped(category: str, payload: Any, **changes: Any) -> bytes:
    document = {
        "id": "3b241101-e2bb-4255-8caf-4136c566a962",
        "type": {"domain": "agentic", "category": category, "version": "v1"},
        "payload": payload,
        "meta": {"created_at": 1773388800000, "received_at": 1773388800001, "source": "agentic-loop"},
    }
    return msgspec.json.encode(document | changes)


def payload_of(category: Category) -> Any:
    return msgspec.json.decode(SPOKEN[category])


def test_every_category_is_spoken_and_read() -> None:
    assert list(SPOKEN) == list(Category) == list(READERS)


@pytest.mark.parametrize("category", Category)
def test_a_document_is_read_and_written_key_for_key(category: Category) -> None:
    data = enveloped(category, payload_of(category))
    read = read_envelope(data)
    read.validate()
    assert read.type.category is category
    assert (read.created_at, read.received_at, read.source) == (1773388800.0, 1773388800.001, "agentic-loop")
    assert msgspec.json.decode(msgspec.json.encode(read.write())) == msgspec.json.decode(data)


@pytest.mark.parametrize("category", Category)
def test_what_we_write_is_read_the_same(category: Category) -> None:
    payload = read_envelope(enveloped(category, payload_of(category))).payload
    data = write_envelope(payload, id="e1", at=1773388800.0)
    assert read_envelope(data) == Envelope(payload, "e1", 1773388800.0, 1773388800.0, "flyball")
    assert data == write_envelope(payload, id="e1", at=1773388800.0), "the same bytes each time"


@pytest.mark.parametrize("category", Category)
def test_nothing_but_an_empty_object_has_gos_zero_values_and_is_found_wanting(category: Category) -> None:
    read = read_envelope(enveloped(category, {}))
    with pytest.raises(InvalidMessage) as caught:
        read.validate()
    assert caught.value.details["reason"] is Refusal.INVALID
    assert caught.value.details["field"] in caught.value.message


def test_a_loop_is_read_and_written_key_for_key() -> None:
    loop = LoopEntity.unmarshal_json(LOOP)
    loop.validate()
    assert loop.pending_tool_results == {"call_001": ToolResult("call_001", "", error="file not found")}
    assert msgspec.json.decode(loop.marshal_json()) == msgspec.json.decode(LOOP)


def test_a_trajectory_is_read_and_written_key_for_key() -> None:
    trajectory = Trajectory.unmarshal_json(TRAJECTORY)
    trajectory.validate()
    assert (trajectory.step_ms, trajectory.duration, trajectory.ended) == (1300, 3000, Outcome.SUCCESS)
    assert msgspec.json.decode(trajectory.marshal_json()) == msgspec.json.decode(TRAJECTORY)


def test_payloads_are_read_as_what_they_are_in_our_words() -> None:
    call = read_envelope(enveloped("tool_call", payload_of(Category.TOOL_CALL))).payload
    assert call == ToolCall(
        "call_001",
        "read_file",
        '{"path":"/etc/hosts"}',
        metadata={"tenant": "blue"},
        loop_id="loop_123",
        trace_id="tr1",
    )
    signal = read_envelope(enveloped("signal", payload_of(Category.SIGNAL))).payload
    assert isinstance(signal, UserSignal)
    assert signal.signal == Signal(SignalType.REJECT, "s1", "u1", "too dangerous")


def test_unknown_keys_are_kept_everywhere() -> None:
    payload = payload_of(Category.TASK) | {"x": 1}
    payload["context"]["y"] = [2]
    data = enveloped(
        "task", payload, z={"a": None}, meta={"created_at": 1, "received_at": 2, "source": "", "w": 3}
    )
    read = read_envelope(data)
    assert isinstance(read.payload, TaskMessage)
    assert read.payload.extra == {"x": 1}
    assert msgspec.json.decode(msgspec.json.encode(read.write())) == msgspec.json.decode(data)


@given(SEM_ENVELOPE)
def test_every_envelope_is_written_as_it_was_read(document: dict[str, Any]) -> None:
    read = read_envelope(msgspec.json.encode(document))
    assert msgspec.json.decode(msgspec.json.encode(read.write())) == document


def test_what_a_form_has_no_place_for_travels_beside_it() -> None:
    result = ToolResult("c", "f", {"rows": 3})
    data = write_envelope(result, id="e", at=1.0, extra={"flyball": {"content": {"rows": 3}}, "id": "mine"})
    read = read_envelope(data)
    assert read.payload == ToolResult("c", "f", '{"rows":3}')
    assert (read.id, read.extra) == ("e", {"flyball": {"content": {"rows": 3}}})


@given(messages)
def test_a_portable_message_can_always_be_written(message: Message) -> None:
    portable = portable_message(message)
    assert read_messages(write_messages([portable]))
    assert portable_message(portable) is portable
    assert (portable.text == message.text) or any(
        isinstance(p, Image | Audio | Document) for p in message.parts
    )


def test_times_of_an_envelope_may_be_text_or_missing() -> None:
    meta = {"created_at": "2026-03-13T08:00:00Z", "received_at": 0}
    read = read_envelope(enveloped("tool_result", {"call_id": "c"}, meta=meta))
    assert (read.created_at, read.received_at, read.source) == (1773388800.0, None, "")
    assert read_envelope(enveloped("tool_result", {"call_id": "c"}, meta=None)).created_at is None


TASK = payload_of(Category.TASK)


@pytest.mark.parametrize(
    ("data", "reason", "said"),
    [
        (b"\xff\x00not json", Refusal.NOT_JSON, "envelope is no JSON"),
        (b"[]", Refusal.NO_ENVELOPE, "envelope should be an object, but is a list"),
        (
            b'{"id": "1", "payload": {}}',
            Refusal.NO_ENVELOPE,
            "envelope.type should be an object, but is null",
        ),
        (
            enveloped("task", TASK, id=7),
            Refusal.NO_ENVELOPE,
            "envelope.id should be text, but is a number: 7",
        ),
        (
            enveloped("task", TASK, meta={"created_at": True}),
            Refusal.NO_ENVELOPE,
            "envelope.meta.created_at should be a number",
        ),
        (
            enveloped("task", TASK, type={"domain": "core", "category": "json", "version": "v1"}),
            Refusal.UNKNOWN_DOMAIN,
            "envelope.type.domain should be 'agentic', but is 'core'",
        ),
        (enveloped("tusk", TASK), Refusal.UNKNOWN_CATEGORY, "but is 'tusk'"),
        (
            enveloped("task", TASK, type={"domain": "agentic", "category": "task", "version": "v2"}),
            Refusal.OTHER_VERSION,
            "envelope.type.version should be 'v1', but is 'v2'",
        ),
        (enveloped("task", None), Refusal.BAD_PAYLOAD, "task should be an object, but is null"),
        (
            enveloped("task", TASK | {"depth": "deep"}),
            Refusal.BAD_PAYLOAD,
            "task.depth should be a whole number, but is the text: 'deep'",
        ),
        (
            enveloped("loop_created", {"created_at": "yesterday"}),
            Refusal.BAD_PAYLOAD,
            "loop_created.created_at should be an RFC 3339 time",
        ),
        (
            enveloped("user_message", {"metadata": {"a": 1}}),
            Refusal.BAD_PAYLOAD,
            "user_message.metadata.a should be text",
        ),
        (
            enveloped("task", {"context": {"entities": [1]}}),
            Refusal.BAD_PAYLOAD,
            "task.context.entities[0] should be text",
        ),
        (
            enveloped("signal", {"timestamp": 5}),
            Refusal.BAD_PAYLOAD,
            "signal.timestamp should be a time as text",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_read_says_why(data: bytes, reason: Refusal, said: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        read_envelope(data)
    assert caught.value.details["reason"] is reason
    assert said in caught.value.message
    assert caught.value.details["where"]


def test_an_envelope_needs_an_id() -> None:
    with pytest.raises(InvalidMessage, match="id required in an envelope"):
        Envelope(ToolResult("c", "f", "x"), "").validate()

"""What the codecs promise, of any request, any answer and any stream; OpenAI's own types are the judges."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from openai.types import CreateEmbeddingResponse, Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent

from flyball.adapters.http.openai.call_ids import CallName, call_name, read_call_name
from flyball.adapters.http.openai.chat_request import chat_param, read_chat
from flyball.adapters.http.openai.chat_stream import ChatChunks
from flyball.adapters.http.openai.chat_writing import Envelope, write_chat
from flyball.adapters.http.openai.embeddings import EmbeddingRequest, read_embedding, write_embedding
from flyball.adapters.http.openai.errors import (
    Refused,
    forbidden,
    refused_by,
    unauthorized,
)
from flyball.adapters.http.openai.models import write_models
from flyball.adapters.http.openai.response_request import read_response
from flyball.adapters.http.openai.response_stream import ResponseEvents
from flyball.adapters.http.openai.response_writing import Frame, write_response
from flyball.adapters.http.openai.said import Said, Thought, Words, joined
from flyball.adapters.http.openai.telling import Diverged, How, Telling
from flyball.core import errors
from flyball.core.deferred import DeferredToolRequest
from flyball.core.errors import FlyballError, InvalidRequest, JournalConflict, JournalFull, PermissionDenied
from flyball.core.messages import FinishReason, Message, Part, Role, Text, Thinking, ToolCall
from flyball.core.usage import RunUsage
from flyball.inference.cut import events_of
from flyball.inference.stream import (
    Finish,
    PartStart,
    Restart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from flyball.orchestrate.contracts import SystemResponse
from tests.adapters.http.openai.judging import judged

LOOP = "0192f0c1a1b27c3d8e4f5a6b7c8d9e0f"
words = st.text(min_size=1, max_size=12)
names = st.sampled_from(["weather", "clock"])
arguments = st.sampled_from(["{}", '{"city":"Rome"}', '{"x": [1, 2, 3]}', '{"cut": '])
usages = st.builds(RunUsage, *[st.integers(0, 99)] * 5)


@st.composite
def answers(draw: st.DrawFn) -> tuple[Message, SystemResponse]:
    """A model's answer, and the response of a loop that ends with it."""
    parts: list[Part] = [Thinking(text) for text in draw(st.lists(words, max_size=2))]
    parts += [Text(text) for text in draw(st.lists(words, max_size=2))]
    calls = [ToolCall(f"call_{n}", draw(names), draw(arguments)) for n in range(draw(st.integers(0, 3)))]
    message = Message(Role.ASSISTANT, (*parts, *calls))
    response = SystemResponse(
        content=message.text,
        calls_wanted=tuple([DeferredToolRequest(one.name, one.id, one.args_json) for one in calls]),
        usage=draw(usages),
        loop_id=LOOP,
        finish_reason=draw(st.none() | st.sampled_from(FinishReason)),
    )
    return message, response


def pieces_of(message: Message, chunk: int | None) -> list[StreamEvent]:
    return list(events_of(message, chunk, None))


hows = st.builds(
    How,
    st.just(LOOP),
    live=st.booleans(),
    calls=st.sampled_from([(), ("weather",), ("weather", "clock")]),
    taken=st.sampled_from([(), ("call_1",)]),
)


def told(pieces: Sequence[StreamEvent], response: SystemResponse, how: How) -> list[Said]:
    telling = Telling(how)
    said = [one for piece in pieces for one in telling.feed(piece)]
    return [*said, *telling.end(response)]


# Streams


@given(answers(), hows, st.none() | st.integers(1, 5), st.integers(0, 30), st.booleans())
def test_a_stream_however_it_is_cut_is_the_answer_that_is_given_at_once(
    answer: tuple[Message, SystemResponse], how: How, chunk: int | None, stop: int, before: bool
) -> None:
    message, response = answer
    pieces = pieces_of(message, chunk)
    whole = joined(told(pieces, response, How(LOOP)))
    assert (whole.text, whole.thoughts) == (message.text, message.thinking)
    assert [one.arguments for one in whole.calls] == [one.args_json for one in message.tool_calls]
    if before:  # a call that had to be made again, after some of it had been told
        begun = [piece for piece in pieces[:stop] if not isinstance(piece, Finish)]
        if not any(isinstance(piece, PartStart | ToolCallDelta) for piece in begun):
            again = joined(told([*begun, Restart(), *pieces], response, how))
            assert (again.text, again.calls) == (whole.text, whole.calls)
    assert joined(told(pieces, response, how)) == whole


@given(answers(), hows, st.integers(1, 5), st.booleans())
def test_what_is_written_is_what_the_client_knows(
    answer: tuple[Message, SystemResponse], how: How, chunk: int, usage: bool
) -> None:
    message, response = answer
    said = told(pieces_of(message, chunk), response, how)
    envelope = Envelope(LOOP, "general", 5, "m")
    completion = judged(ChatCompletion, write_chat(envelope, joined(said), response, {"a": "b"}))
    writer = ChatChunks(envelope, include_usage=usage)
    chunks = [
        judged(ChatCompletionChunk, one)
        for one in (*writer.begin(), *writer.write(said), *writer.end(response))
    ]
    deltas = [one.choices[0].delta for one in chunks if one.choices]
    assert "".join([one.content or "" for one in deltas]) == (completion.choices[0].message.content or "")
    assert [one.choices[0].finish_reason for one in chunks if one.choices][-1] == completion.choices[
        0
    ].finish_reason
    assert (chunks[-1].usage == completion.usage) is usage
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        for one in delta.tool_calls or ():
            calls.setdefault(one.index, []).append(one.function.arguments or "")
    made: list[Any] = completion.choices[0].message.tool_calls or []
    assert ["".join(texts) for _, texts in sorted(calls.items())] == [one.function.arguments for one in made]

    frame = Frame(LOOP, "general", 5, 0, read_response({"model": "general", "input": "hi"}).echo)
    whole = judged(Response, write_response(frame, joined(said), response))
    writing = ResponseEvents(frame)
    events = [
        judged(ResponseStreamEvent, one)
        for one in (*writing.begin(), *writing.write(said), *writing.end(response))
    ]
    assert [one.sequence_number for one in events] == list(range(len(events)))
    last = events[-1].response
    assert last.output_text == whole.output_text
    assert [item for item in last.output if item.type == "function_call"] == [
        item for item in whole.output if item.type == "function_call"
    ]
    if not any(isinstance(one, Words) for one in said[_first_call(said) :]):
        assert last == whole
    done = [one.item for one in events if one.type == "response.output_item.done"]
    assert sorted(item.id for item in done) == sorted(item.id for item in last.output)


def _first_call(said: list[Said]) -> int:
    return next((n for n, one in enumerate(said) if not isinstance(one, Thought | Words)), len(said))


def test_turns_before_the_last_are_thoughts() -> None:
    one = pieces_of(Message(Role.ASSISTANT, (Thinking("a"), Text("b"), ToolCall("c", "own"))), None)
    two = pieces_of(Message(Role.ASSISTANT, (Thinking("d"), Text("e"))), None)
    response = SystemResponse(content="e")
    whole = joined(told([*one, *two], response, How(LOOP)))
    assert (whole.thoughts, whole.text) == ("a\n\nb\n\nd", "e")
    loose = joined(told([*one, *two], response, How(LOOP, loose=True)))
    assert (loose.thoughts, loose.text) == ("a", "b\n\ne")


def test_an_answer_that_goes_on_with_other_words_cannot_be_taken_back() -> None:
    telling = Telling(How(LOOP, live=True))
    assert telling.feed(TextDelta(0, "Rain")) == [Words("Rain")]
    assert telling.feed(Restart()) == []
    assert telling.feed(TextDelta(0, "Ra")) == []
    assert telling.feed(TextDelta(0, "in, all")) == [Words(", all")]
    assert telling.feed(Restart()) == []
    with pytest.raises(Diverged):
        telling.feed(TextDelta(0, "Snow"))
    with pytest.raises(Diverged):
        telling.end(SystemResponse(content="Snow"))
    telling = Telling(How(LOOP, live=True, calls=("weather",)))
    telling.feed(PartStart(0, ToolCall("c", "weather", '{"a"')))
    telling.feed(ToolCallDelta(0, ": 1}"))
    wanted = (DeferredToolRequest("weather", "c", '{"b": 1}'),)
    for response in (SystemResponse(calls_wanted=wanted), SystemResponse()):
        with pytest.raises(Diverged):
            telling.end(response)
    with pytest.raises(Diverged):
        telling.feed(Restart())


def test_thoughts_come_before_the_answer() -> None:
    telling = Telling(How(LOOP, live=True))
    assert telling.feed(ThinkingDelta(0, "hm")) == [Thought("hm")]
    assert telling.feed(TextDelta(1, "a")) == [Words("a")]
    assert telling.feed(ThinkingDelta(2, "hm")) == []


# Requests

_KEYS = """
model messages input role content type text tools function name parameters tool_choice stream stream_options
n stop temperature response_format json_schema schema image_url url tool_calls id arguments tool_call_id
metadata user seed reasoning effort previous_response_id call_id output format instructions allowed_tools
mode input_audio data file file_data encoding_format dimensions include_usage
"""
_WORDS = """
m user assistant tool system text function json_schema auto required image_url input_text message
function_call function_call_output reasoning allowed_tools data:image/png;base64,aGk= object hi resp_x
input_audio file base64
"""
keys = st.sampled_from(_KEYS.split())
leaves = st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.sampled_from(["", *_WORDS.split()])
documents = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)
_PARTS = {"content": documents, "tool_calls": documents, "tool_call_id": leaves, "type": leaves}
_ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
message_documents = st.lists(st.fixed_dictionaries({"role": _ROLES}, optional=_PARTS), max_size=4)


def body_of(more: dict[str, Any], messages: list[Any]) -> Any:
    return {**more, "model": "m", "messages": messages, "input": messages}


bodies: st.SearchStrategy[Any] = documents | st.builds(
    body_of, st.dictionaries(keys, documents, max_size=4), message_documents
)


@given(bodies)
def test_any_body_is_a_request_or_is_refused(body: Any) -> None:
    for read in (read_chat, read_response, read_embedding):
        refused = refusal(read, body)
        if refused is not None:
            assert refused.status == 400
            assert refused.document["error"]["message"]
            msgspec.json.encode(refused.document)


def refusal(read: Callable[[object], Any], body: object) -> Refused | None:
    try:
        read(body)
    except Refused as refused:
        return refused
    return None


def test_a_request_is_read() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    asked = read_chat(
        {
            "model": "general",
            "messages": [
                {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
                {"role": "user", "content": "Rain?", "name": "ann"},
                {"role": "assistant", "content": "", "tool_calls": None},
                {"role": "assistant", "content": "Let me", "reasoning_content": "hm"},
                {
                    "role": "assistant",
                    "content": [{"type": "text", "text": " see."}],
                    "tool_calls": [
                        {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
                    ],
                },
                {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "rain"}]},
                {"role": "system", "content": "In Rome."},
            ],
            "stop": "x",
            "presence_penalty": 0.5,
            "frequency_penalty": 0,
            "reasoning_effort": "low",
            "response_format": {"type": "json_object"},
            "tools": [{"type": "function", "function": {"name": "f", "strict": True}}],
            "parallel_tool_calls": False,
            "stream": True,
            "stream_options": {"include_usage": True, "live": True},
            "safety_identifier": "s",
            "logprobs": False,
        }
    )
    told, *rest = asked.request.messages
    assert [part.text for part in told.parts if isinstance(part, Text)] == ["Be brief.", "In Rome."]
    assert [one.role.value for one in rest] == ["user", "assistant", "tool"]
    assert (rest[1].thinking, rest[1].text) == ("hm", "Let me see.")
    (definition,) = asked.request.caller_tools
    assert (definition.parameters, definition.strict, definition.sequential) == (schema, True, True)
    assert asked.request.hints.options == {"presence_penalty": 0.5}
    assert (asked.stream, asked.include_usage, asked.live) == (True, True, True)
    assert asked.request.metadata == {"safety_identifier": "s"}
    assert asked.request.check() == asked.request


# Ids


@given(st.text(min_size=1), st.text(min_size=1))
def test_a_calls_name_is_read_as_it_was_written(loop_id: str, call_id: str) -> None:
    name = call_name(loop_id, call_id)
    assert read_call_name(name) == CallName(loop_id, call_id)
    assert set(name) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


@given(st.text() | st.from_regex(r"[a-f0-9-]{1,20}"))
def test_other_names_are_nobodys(name: str) -> None:
    found = read_call_name(name)
    assert found is None or call_name(found.loop_id, found.call_id) == name


# Errors


def every_error() -> list[type[FlyballError]]:
    kinds = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, FlyballError)]
    return sorted(kinds, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", every_error(), ids=lambda kind: kind.__name__)
def test_every_error_has_a_status_that_the_client_knows(kind: type[FlyballError]) -> None:
    refused = refused_by(kind("it broke", field="caller_tools[1].parameters", retry_after=2.5), chat_param)
    assert refused.status in (400, 403, 404, 409, 422, 429, 500, 502, 503, 504)
    error = refused.document["error"]
    assert set(error) == {"message", "type", "param", "code"}
    hidden = kind.code.startswith("ORCHESTRATION_JOURNAL_") and kind is not JournalConflict
    if kind is JournalFull:
        assert error["message"] == "there is no room for more: the quota is used up, and has to be raised"
    elif hidden or kind is PermissionDenied:
        assert error["message"] == "the server's journal could not be used: its log says why"
    else:
        assert error["message"] == "it broke"
    assert refused.headers["retry-after"] == "2.5"
    assert error["param"] == ("tools[1].function.parameters" if refused.status == 400 else None)


def test_other_refusals() -> None:
    assert refused_by(ValueError("secret")).document["error"]["message"] == "The server failed unexpectedly."
    assert (unauthorized().status, forbidden().status) == (401, 403)
    given_one = Refused("no")
    assert refused_by(given_one) is given_one
    field = refused_by(InvalidRequest("no", field="output.schema"), chat_param).param
    assert field == "response_format.json_schema.schema"


# The others


def test_the_other_documents() -> None:
    for one in write_models(["a", "b"])["data"]:
        judged(Model, one)
    request = EmbeddingRequest("m", ("a", "b"))
    made = judged(CreateEmbeddingResponse, write_embedding(request, [(1.0, 0.0), (0.0, 1.0)]))
    assert [one.embedding for one in made.data] == [[1.0, 0.0], [0.0, 1.0]]
    assert replace(request, base64=True).base64

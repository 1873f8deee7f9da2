"""Our own client and our own server speak of the same: what one writes the other reads."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from flyball.adapters.http.openai.chat_request import read_chat
from flyball.adapters.http.openai.chat_stream import ChatChunks
from flyball.adapters.http.openai.chat_writing import Envelope, write_chat
from flyball.adapters.http.openai.response_request import read_response
from flyball.adapters.http.openai.response_stream import ResponseEvents
from flyball.adapters.http.openai.response_writing import Frame, write_response
from flyball.adapters.http.openai.said import Joined, Said, joined
from flyball.core.messages import Message, Role
from flyball.core.usage import Usage
from flyball.engines.openai.chat.decode import ChatReader, chat_result
from flyball.engines.openai.chat.encode import chat_body
from flyball.engines.openai.dialect import LM_STUDIO
from flyball.engines.openai.responses.decode import ResponsesReader, responses_result
from flyball.engines.openai.responses.encode import responses_body
from flyball.inference.request import Request
from flyball.inference.stream import Assembler
from flyball.orchestrate.contracts import SystemResponse
from tests.adapters.http.openai.test_codecs import LOOP, answers, hows, pieces_of, told
from tests.engines.rich_histories import NOTE, PDF, PNG, WEB, rich_histories

# Requests


def as_request(history: list[Message] | tuple[Message, ...]) -> Request:
    return Request(id="r", messages=tuple(history))


def said_something(history: list[Message]) -> bool:
    """Whether each of the model's messages has a word or a call: others are not told again."""
    return all(one.text or one.tool_calls for one in history if one.role is Role.ASSISTANT)


@given(rich_histories().filter(said_something))
def test_a_chat_that_our_engine_sends_is_read(history: list[Message]) -> None:
    body = chat_body(as_request(history), "m", LM_STUDIO, stream=False)
    read = read_chat(body).request
    again = chat_body(as_request(read.messages), "m", LM_STUDIO, stream=False)
    assert words(again["messages"]) == words(body["messages"])
    assert again == chat_body(as_request(read_chat(again).request.messages), "m", LM_STUDIO, stream=False)


def words(messages: list[dict[str, Any]]) -> list[Any]:
    """What messages say, whoever says it in how many of them."""
    found: list[Any] = []
    for message in messages:
        content = message.get("content") or ""
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        found += [part for part in parts if part.get("text") != ""]
        found += message.get("tool_calls", ())
    return sorted([msgspec.json.encode(one, order="sorted") for one in found])


@given(rich_histories(media=(PNG, WEB, PDF, NOTE)).filter(said_something))
def test_a_response_that_our_engine_asks_for_is_read(history: list[Message]) -> None:
    body = responses_body(as_request(history), "m", thinks=False, stream=False)
    read = read_response(body)
    assert not read.items.outputs
    calls = [one.name for message in history for one in message.tool_calls]
    assert len([one for message in read.request.messages for one in message.tool_calls]) == len(calls)
    texts = "".join([message.text for message in history if message.role is Role.ASSISTANT])
    assert "".join([one.text for one in read.request.messages if one.role is Role.ASSISTANT]) == texts


# Answers


def check(message: Message, whole: Joined, usage: Usage) -> None:
    assert message.text == whole.text
    assert message.thinking == whole.thoughts
    made = [(one.id, one.name) for one in message.tool_calls]
    assert made == [(one.id, one.name) for one in whole.calls]
    assert message.usage is not None
    assert (message.usage.input_tokens, message.usage.output_tokens) == (
        usage.input_tokens,
        usage.output_tokens,
    )


@given(answers(), hows, st.integers(1, 5))
def test_our_engine_reads_what_is_written(
    answer: tuple[Message, SystemResponse], how: Any, chunk: int
) -> None:
    message, response = answer
    said: list[Said] = told(pieces_of(message, chunk), response, how)
    whole = joined(said)
    envelope, frame = Envelope(LOOP, "general", 5), Frame(LOOP, "general", 5)

    completion = msgspec.json.encode(write_chat(envelope, whole, response))
    check(chat_result(completion, {}, "openai", "m").message, whole, response.usage)
    writer = ChatChunks(envelope, include_usage=True)
    chunks = [*writer.begin(), *writer.write(said), *writer.end(response)]
    check(joined_by(ChatReader({}, "openai", "m"), chunks), whole, response.usage)

    document = msgspec.json.encode(write_response(frame, whole, response))
    check(responses_result(document, {}, "openai", "m").message, whole, response.usage)
    writing = ResponseEvents(frame)
    events = [*writing.begin(), *writing.write(said), *writing.end(response)]
    check(joined_by(ResponsesReader({}, "openai", "m"), events), whole, response.usage)


def joined_by(reader: Any, documents: list[dict[str, Any]]) -> Message:
    assembler = Assembler()
    for document in documents:
        for event in reader.feed(msgspec.json.encode(document)):
            assembler.feed(event)
    for event in reader.close():
        assembler.feed(event)
    return assembler.message()

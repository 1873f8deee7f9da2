"""What is read from a foreign document is written as it stood, key by key, unknown ones included.

The documents are as the systems' own code writes them. Other documents are normalised: after the first time
nothing changes any more. And whatever comes in, the readers give a value or InvalidMessage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import InvalidMessage
from flyball.core.forms import gollem, pagantic, semstreams
from flyball.core.messages import Message
from tests.core.forms import documents
from tests.effort import examples
from tests.strategies import json_values


class Form(NamedTuple):
    documents: st.SearchStrategy[Any]
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]


def one(write: Callable[[list[Message]], list[dict[str, Any]]]) -> Callable[[Message], dict[str, Any]]:
    """The writer of one message that becomes one document."""

    def written(message: Message) -> dict[str, Any]:
        (document,) = write([message])
        return document

    return written


def several(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=5)


FORMS = {
    "pagantic message": Form(documents.PAGANTIC_MESSAGE, pagantic.read_message, one(pagantic.write_messages)),
    "pagantic messages": Form(
        several(documents.PAGANTIC_MESSAGE), pagantic.read_messages, pagantic.write_messages
    ),
    "pagantic call": Form(documents.PAGANTIC_CALL, pagantic.read_tool_call, pagantic.write_tool_call),
    "pagantic result": Form(documents.PAGANTIC_RESULT, pagantic.read_tool_result, pagantic.write_tool_result),
    "pagantic tool": Form(
        documents.PAGANTIC_TOOL, pagantic.read_tool_definition, pagantic.write_tool_definition
    ),
    "pagantic usage": Form(documents.PAGANTIC_USAGE, pagantic.read_usage, pagantic.write_usage),
    "semstreams message": Form(
        documents.SEM_MESSAGE, semstreams.read_message, one(semstreams.write_messages)
    ),
    "semstreams messages": Form(
        several(documents.SEM_MESSAGE), semstreams.read_messages, semstreams.write_messages
    ),
    "semstreams call": Form(documents.SEM_CALL, semstreams.read_tool_call, semstreams.write_tool_call),
    "semstreams result": Form(
        documents.SEM_RESULT, semstreams.read_tool_result, semstreams.write_tool_result
    ),
    "semstreams tool": Form(
        documents.SEM_TOOL, semstreams.read_tool_definition, semstreams.write_tool_definition
    ),
    "semstreams choice": Form(
        documents.SEM_CHOICE, semstreams.read_tool_choice, semstreams.write_tool_choice
    ),
    "semstreams usage": Form(documents.SEM_USAGE, semstreams.read_usage, semstreams.write_usage),
    "semstreams request": Form(
        documents.SEM_REQUEST, semstreams.AgentRequest.read, semstreams.AgentRequest.write
    ),
    "semstreams response": Form(
        documents.SEM_RESPONSE, semstreams.AgentResponse.read, semstreams.AgentResponse.write
    ),
    **{
        f"semstreams {struct.NAME}": Form(strategy, struct.read, struct.write)
        for struct, strategy in (
            (semstreams.ConstructedContext, documents.SEM_CONTEXT),
            (semstreams.GraphContextSpec, documents.SEM_GRAPH_CONTEXT),
            (semstreams.TaskMessage, documents.SEM_TASK),
            (semstreams.UserSignal, documents.SEM_SIGNAL),
            (semstreams.SignalMessage, documents.SEM_SIGNAL_MESSAGE),
            (semstreams.UserMessage, documents.SEM_USER_MESSAGE),
            (semstreams.UserResponse, documents.SEM_USER_RESPONSE),
            (semstreams.LoopEntity, documents.SEM_LOOP),
            (semstreams.Trajectory, documents.SEM_TRAJECTORY),
            (semstreams.LoopCreatedEvent, documents.SEM_CREATED),
            (semstreams.LoopCompletedEvent, documents.SEM_COMPLETED),
            (semstreams.LoopFailedEvent, documents.SEM_FAILED),
            (semstreams.LoopCancelledEvent, documents.SEM_CANCELLED),
            (semstreams.ContextEvent, documents.SEM_CONTEXT_EVENT),
        )
    },
    "gollem messages": Form(documents.GOL_MESSAGES, gollem.decode_messages, gollem.encode_messages),
    "gollem response": Form(
        documents.GOL_RESPONSE, gollem.decode_model_response, gollem.encode_model_response
    ),
    "gollem parts": Form(
        several(documents.GOL_REQUEST_PART), gollem.decode_request_parts, gollem.encode_request_parts
    ),
    "gollem tool": Form(documents.GOL_TOOL, gollem.read_tool_definition, gollem.write_tool_definition),
    "gollem choice": Form(documents.GOL_CHOICE, gollem.read_tool_choice, gollem.write_tool_choice),
    "gollem usage": Form(documents.GOL_USAGE, gollem.read_usage, gollem.write_usage),
    "gollem run usage": Form(documents.GOL_RUN_USAGE, gollem.read_run_usage, gollem.write_run_usage),
    "gollem snapshot": Form(documents.GOL_SNAPSHOT, gollem.decode_run_snapshot, gollem.encode_run_snapshot),
}
each_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)


def plain(value: Any) -> Any:
    """Through bytes and back, as it would travel."""
    return msgspec.json.decode(msgspec.json.encode(value))


@pytest.mark.hypothesis
@each_form
def test_reading_then_writing_gives_the_same_document(form: Form) -> None:
    @examples(60)
    @given(form.documents)
    def same(document: Any) -> None:
        assert plain(form.write(form.read(document))) == plain(document)

    same()


@pytest.mark.hypothesis
@each_form
def test_what_was_read_can_be_journaled_and_is_written_the_same_afterwards(form: Form) -> None:
    @examples(20)
    @given(form.documents)
    def same(document: Any) -> None:
        value = form.read(document)
        kind: Any = type(value)  # pyright: ignore[reportUnknownVariableType]
        if isinstance(value, tuple):
            kind = tuple[Message, ...]
        back = msgspec.json.decode(msgspec.json.encode(value), type=kind)
        assert back == value
        assert plain(form.write(back)) == plain(document)

    same()


REFUSED = object()


def read_or_refuse(read: Callable[[Any], Any], document: Any) -> Any:
    """What the reader gives, or that it refused, with a place; any other exception fails the test."""
    refusal: InvalidMessage | None = None
    try:
        return read(document)
    except InvalidMessage as error:
        refusal = error
    assert refusal.details["where"]
    assert refusal.details["where"].split(".")[0] in str(refusal)
    return REFUSED


SPOILERS: list[Any] = ["", "x", None, 0, -1, True, [], {}, [None], "function", "tool"]


def paths(value: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places in a document."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inner = list(value.items())  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    elif isinstance(value, list):
        inner = list(enumerate(value))  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [here, *[path for key, item in inner for path in paths(item, (*here, key))]]


@st.composite
def damaged(draw: st.DrawFn, form: Form) -> Any:
    """A document with one place changed to something else, or taken out."""
    document = plain(draw(form.documents))
    path = draw(st.sampled_from(paths(document)))
    other: Any = draw(json_values | st.sampled_from(SPOILERS))
    if not path:
        return other
    here = document
    for step in path[:-1]:
        here = here[step]
    if draw(st.booleans()):
        here[path[-1]] = other
    else:
        del here[path[-1]]
    return document


@pytest.mark.hypothesis
@each_form
def test_a_damaged_document_is_refused_or_normalised_once(form: Form) -> None:
    @examples(80)
    @given(damaged(form))
    def refused_or_normalised(document: Any) -> None:
        value = read_or_refuse(form.read, document)
        if value is REFUSED:
            return
        once = plain(form.write(value))
        assert plain(form.write(form.read(once))) == once

    refused_or_normalised()


ANYTHING = [form.read for form in FORMS.values()] + [semstreams.ModelConfig.read]


@examples(60)
@given(json_values)
def test_arbitrary_json_gives_a_value_or_is_refused(document: Any) -> None:
    for read in ANYTHING:
        read_or_refuse(read, document)


@pytest.mark.parametrize(
    "document",
    [None, 3, "text", [], {}, [None], [[]], [{}], [3], {"role": 3}, {"role": ["user"]}, {"kind": {}}, {1: 2}],
    ids=repr,
)
def test_odd_json_gives_a_value_or_is_refused(document: Any) -> None:
    for read in ANYTHING:
        read_or_refuse(read, document)


def test_what_is_no_json_is_refused_and_lone_surrogates_are_mended() -> None:
    deep: Any = []
    for _ in range(5_000):
        deep = [deep]
    for read in ANYTHING:
        for value in (object(), {"x": object()}, deep, {"x": deep}):
            with pytest.raises(InvalidMessage):
                read(value)
    message = pagantic.read_message({"role": "user", "content": "\ud800", "x": float("nan")})
    assert (message.text, message.extra) == ("\ufffd", {"x": "nan"})


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    "read",
    [
        gollem.unmarshal_messages,
        gollem.unmarshal_snapshot,
        semstreams.AgentRequest.unmarshal_json,
        semstreams.AgentResponse.unmarshal_json,
        semstreams.TaskMessage.unmarshal_json,
        semstreams.read_envelope,
    ],
)
def test_bytes_that_are_no_json_are_refused(read: Callable[[bytes], Any]) -> None:
    for data in (b"", b"{", b"\xff", b'"\xff"', b"[" * 100_000, b"nope"):
        with pytest.raises(InvalidMessage):
            read(data)

    @given(st.binary(max_size=20))
    def refused(data: bytes) -> None:
        try:
            read(data)
        except InvalidMessage:
            pass

    refused()

"""The contracts at the boundary: what is said is read back as it was said, and what is wrong is named."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball.core.deferred import DeferredToolRequest
from flyball.core.errors import (
    FailureCategory,
    InvalidRequest,
    SchemaMalformed,
    SchemaRequired,
    SystemError,  # noqa: A004 - pagantic's name for it
)
from flyball.core.messages import (
    FinishReason,
    Image,
    Message,
    ResultKind,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_result,
    tool_results,
    user,
)
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.core.usage import RunUsage
from flyball.orchestrate.contracts import (
    ExecutionHints,
    Mode,
    OutputContract,
    SystemRequest,
    SystemResponse,
    ToolCallRecord,
    ValidationResult,
)
from flyball.orchestrate.contracts.conversation import conversation

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}

# What may stand in a contract

words = st.text(max_size=5)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner, max_size=2),
    max_leaves=4,
)
objects = st.dictionaries(words, values, min_size=1, max_size=2)
unknown = st.none() | st.dictionaries(words.map(lambda word: f"x-{word}"), values, min_size=1, max_size=2)
texts = st.text(min_size=1, max_size=5)

turns = st.lists(
    st.sampled_from(
        [
            (user("hi"), assistant("hello")),
            (user(["look", Image("https://example.com/a.png")]), assistant("nice")),
            (user("think"), Message(Role.ASSISTANT, (Thinking("hm", "signed"), Text("done")))),
            (
                user("go"),
                assistant("", ToolCall("1", "look", '{"x":1}'), ToolCall("2", "look")),
                tool_results([ToolResult("1", "look", "a"), ToolResult("2", "look", error="b")]),
                assistant("found"),
            ),
            (
                user("cut"),
                assistant("", ToolCall("3", "look", '{"x":')),
                tool_result("3", "look", {"y": [1]}),
            ),
        ]
    ),
    max_size=3,
).map(lambda chosen: tuple(message for turn in chosen for message in turn))


def joined(first: list[Message], before: tuple[Message, ...], last: Message) -> tuple[Message, ...]:
    return (*first, *before, last)


messages = st.builds(
    joined,
    st.lists(st.just(system("Be brief.")), max_size=1),
    turns,
    texts.map(user) | st.just(user(["a", "b"])),
)

hints = st.builds(
    ExecutionHints,
    max_tokens=st.none() | st.integers(1, 9),
    timeout=st.none() | st.floats(0.5, 100.0),
    temperature=st.none() | st.floats(0.0, 2.0),
    top_p=st.none() | st.floats(0.1, 1.0),
    seed=st.none() | st.integers(0, 9),
    stop=st.lists(st.sampled_from(["a", "\n"]), max_size=2).map(tuple),
    reasoning_effort=st.sampled_from([None, "low"]),
    options=st.none() | objects,
    extra=unknown,
)
caller_tools = st.builds(
    ToolDefinition,
    texts,
    st.sampled_from([{}, SCHEMA]),
    texts,
    strict=st.none() | st.booleans(),
    sequential=st.booleans(),
    extra=unknown,
)
outputs = st.builds(
    OutputContract,
    schema=st.sampled_from([None, {}, SCHEMA]),
    grammar=st.none() | st.just('root ::= "yes"'),
    repair_allowed=st.booleans(),
    strict_validation=st.booleans(),
    extra=unknown,
)
requests = st.builds(
    SystemRequest,
    request_id=words,
    session_id=words,
    trace_id=words,
    messages=messages,
    mode=st.sampled_from(Mode),
    hints=hints,
    output=st.none() | outputs,
    tools=st.lists(texts, max_size=2).map(tuple),
    caller_tools=st.lists(caller_tools, max_size=2).map(tuple),
    tool_choice=st.sampled_from(
        [None, ToolChoice("required", auto_reset=True), ToolChoice("function", "look")]
    ),
    metadata=st.none() | objects,
    extra=unknown,
)
calls = st.builds(
    ToolCallRecord,
    name=texts,
    arguments=objects | texts,
    result=values,
    error=st.none() | texts,
    duration=st.none() | st.floats(0.0, 9.0),
    call_id=words,
    turn=st.integers(0, 9),
    status=st.sampled_from(ResultKind),
    code=st.none() | texts,
    extra=unknown,
)
errors = st.builds(
    SystemError,
    code=texts,
    category=st.sampled_from(FailureCategory),
    message=words,
    retryable=st.booleans(),
    details=st.none() | objects,
    caused_by=st.none() | texts,
    kind=words,
)
counts = st.integers(0, 99)
usages = st.builds(
    RunUsage,
    input_tokens=counts,
    output_tokens=counts,
    reasoning_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    context_tokens=counts,
    context_window=counts,
    tokens_per_second=st.floats(0.0, 99.0),
    details=st.none() | st.dictionaries(words, counts, min_size=1, max_size=2),
    extra=unknown,
    requests=counts,
    tool_calls=counts,
)
reports = st.builds(
    ValidationResult,
    passed=counts,
    failed=counts,
    repairs=counts,
    violations=st.lists(words, max_size=2).map(tuple),
    warnings=st.lists(words, max_size=2).map(tuple),
    extra=unknown,
)
responses = st.builds(
    SystemResponse,
    request_id=words,
    session_id=words,
    trace_id=words,
    content=words,
    structured_output=values,
    tool_calls_made=st.lists(calls, max_size=2).map(tuple),
    calls_wanted=st.lists(st.builds(DeferredToolRequest, texts, texts, texts, texts), max_size=2).map(tuple),
    confidence=st.none() | st.floats(0.0, 1.0),
    confidence_source=st.sampled_from(["", "voting", "validation", "retrieval"]),
    validation_result=st.none() | reports,
    usage=usages,
    error=st.none() | errors,
    loop_id=words,
    model=words,
    finish_reason=st.none() | st.sampled_from(FinishReason),
    extra=unknown,
)


# There and back


@given(requests)
def test_a_request_is_read_as_it_was_written(request: SystemRequest) -> None:
    written = request.to_json()
    assert SystemRequest.from_json(written) == request
    assert SystemRequest.from_json(json.loads(json.dumps(written))) == request


@given(responses)
def test_a_response_is_read_as_it_was_written(response: SystemResponse) -> None:
    written = response.to_json()
    assert SystemResponse.from_json(written) == response
    assert SystemResponse.from_json(json.loads(json.dumps(written))) == response


def test_a_request_as_json() -> None:
    request = SystemRequest(
        request_id="r",
        session_id="s",
        trace_id="t",
        messages=(user("hi"),),
        mode=Mode.STRUCTURED,
        hints=ExecutionHints(max_tokens=9, temperature=0.0),
        output=OutputContract(schema=SCHEMA),
        tools=("look",),
    )
    assert request.to_json() == {
        "request_id": "r",
        "session_id": "s",
        "trace_id": "t",
        "messages": [{"role": "user", "content": "hi"}],
        "mode": "structured",
        "hints": {"max_tokens": 9, "temperature": 0.0},
        "output": {"schema": SCHEMA, "grammar": None, "repair_allowed": True, "strict_validation": False},
        "tools": ["look"],
    }


def test_a_response_as_json_has_every_key_of_the_contract() -> None:
    error = SystemError("TOOL_TIMEOUT", FailureCategory.TOOL, "too slow")
    written = SystemResponse(usage=RunUsage(input_tokens=3, output_tokens=4), error=error).to_json()
    assert set(written) >= {
        "request_id",
        "session_id",
        "content",
        "structured_output",
        "tool_calls_made",
        "confidence",
        "confidence_source",
        "validation_result",
        "token_usage",
        "error",
    }
    usage = written["token_usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"]) == (3, 4, 7)
    assert written["error"] == {
        "code": "TOOL_TIMEOUT",
        "category": "tool_failure",
        "retryable": False,
        "message": "too slow",
        "details": None,
        "caused_by": None,
    }


def test_what_nobody_knows_is_kept_where_it_stood() -> None:
    document = {
        "messages": [{"role": "user", "content": "hi", "colour": "red"}],
        "hints": {"timeout": 3, "patience": 1},
        "output": {"schema": SCHEMA, "shape": "round"},
        "context": {"retriever": "docs"},
    }
    request = SystemRequest.from_json(document)
    assert request.extra == {"context": {"retriever": "docs"}}
    assert request.hints.extra == {"patience": 1}
    assert request.output is not None
    assert request.output.extra == {"shape": "round"}
    assert request.messages[0].extra == {"colour": "red"}
    written = request.to_json()
    assert written["context"] == {"retriever": "docs"}
    assert written["hints"] == {"timeout": 3.0, "patience": 1}
    assert written["messages"] == document["messages"]


def test_an_extra_never_poses_as_a_known_key() -> None:
    request = SystemRequest(messages=(user("hi"),), extra={"mode": "plan", "else": 1})
    assert request.to_json()["mode"] == "chat"
    assert request.to_json()["else"] == 1


def test_messages_that_are_not_flat_are_written_with_their_parts() -> None:
    seen = user(["look", Image("https://example.com/a.png")])
    written = SystemRequest(messages=(seen,)).to_json()["messages"]
    assert [part["kind"] for part in written[0]["parts"]] == ["text", "image"]
    mixed = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}, *written]
    read = SystemRequest.from_json({"messages": mixed})
    assert read.messages == (user("hi"), assistant("yes"), seen)


def test_flat_tool_messages_are_joined() -> None:
    document = {
        "messages": [
            {"role": "user", "content": "go"},
            {
                "role": "assistant",
                "content": "",
                "tool_calls": [{"id": "1", "name": "a"}, {"id": "2", "name": "a"}],
            },
            {"role": "tool", "content": "x", "tool_call_id": "1", "name": "a"},
            {"role": "tool", "content": "y", "tool_call_id": "2", "name": "a"},
        ]
    }
    request = SystemRequest.from_json(document).check()
    assert [len(message.parts) for message in request.messages] == [1, 2, 2]


# Hints


def test_zero_is_unset_in_what_others_wrote_but_for_the_temperature() -> None:
    document: dict[str, Any] = {"max_tokens": 0, "timeout": 0, "temperature": 0, "top_p": 0.0, "options": {}}
    request = SystemRequest.from_json({"messages": [], "hints": document})
    assert request.hints == ExecutionHints(temperature=0.0)


def test_hints_are_settings_untouched() -> None:
    given_hints = ExecutionHints(
        max_tokens=9, timeout=3.0, temperature=0.0, top_p=0.5, options={"seed": 1, "nested": {"a": [None]}}
    )
    assert given_hints.settings() == ModelSettings(
        max_tokens=9, temperature=0.0, top_p=0.5, options={"seed": 1, "nested": {"a": [None]}}
    )
    assert ExecutionHints(max_tokens=0, top_p=0.0).settings() == ModelSettings()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_tokens", -1),
        ("timeout", -0.1),
        ("timeout", math.inf),
        ("temperature", math.nan),
        ("temperature", -0.5),
        ("top_p", 1.5),
    ],
)
def test_hints_that_cannot_be_followed(name: str, value: Any) -> None:
    request = SystemRequest(messages=(user("hi"),), hints=ExecutionHints(**{name: value}))
    with pytest.raises(InvalidRequest, match=rf"hints\.{name} should be at least 0.*but is") as caught:
        request.check()
    assert caught.value.details["field"] == f"hints.{name}"


# What is wrong is named


@pytest.mark.parametrize(
    ("document", "field", "told"),
    [
        ([], "request", "an object"),
        ({"messages": {}}, "messages", "a list"),
        ({"messages": [3]}, "messages[0]", "an object"),
        ({"messages": [{"role": "nobody"}]}, "messages[0].role", "one of system, user, assistant, tool"),
        ({"messages": [{"role": "user", "parts": [{"kind": "nothing"}]}]}, "messages[0]", "nothing"),
        ({"messages": [], "mode": "talk"}, "mode", "one of chat, structured, plan, redundant"),
        ({"messages": [], "mode": 3}, "mode", "one of chat"),
        ({"messages": [], "request_id": 3}, "request_id", "text"),
        ({"messages": [], "hints": {"max_tokens": "many"}}, "hints.max_tokens", "a whole number"),
        ({"messages": [], "hints": []}, "hints", "an object"),
        ({"messages": [], "output": {"schema": "none"}}, "output.schema", "an object"),
        ({"messages": [], "output": {"repair_allowed": "yes"}}, "output.repair_allowed", "true or false"),
        ({"messages": [], "tools": ["look", 3]}, "tools[1]", "text"),
        ({"messages": [], "metadata": "none"}, "metadata", "an object"),
        ({"messages": [], "metadata": {"a": object()}}, "request", "no JSON"),
    ],
)
def test_a_malformed_document(document: object, field: str, told: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        SystemRequest.from_json(document)
    assert caught.value.code == "CONFIG_INVALID_REQUEST"
    assert told in caught.value.message
    assert caught.value.details["field"] == field


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"tool_calls_made": [{"name": 3}]}, "tool_calls_made[0]"),
        ({"token_usage": {"prompt_tokens": "3"}}, "usage.prompt_tokens"),
        ({"token_usage": {"details": {"a": "b"}}}, "token_usage.details"),
        ({"error": {"category": "bad_luck"}}, "error.category"),
        ({"finish_reason": "bored"}, "finish_reason"),
        ({"validation_result": {"violations": [3]}}, "validation_result.violations[0]"),
    ],
)
def test_a_malformed_response(document: object, field: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        SystemResponse.from_json(document)
    assert caught.value.details["field"] == field


@given(values)
def test_whatever_comes_in_is_a_request_or_refused(document: Any) -> None:
    for kind in (SystemRequest, SystemResponse):
        try:
            kind.from_json(document)
        except InvalidRequest as error:
            refused = error
        else:
            continue
        assert refused.details["field"]


HI = SystemRequest(messages=(user("hi"),))


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"messages": ()}, "messages", "empty"),
        ({"messages": "hi"}, "messages", "array"),
        ({"messages": (Message(Role.USER),)}, "messages[0]", "at least one part"),
        ({"messages": (user("a"), Message(Role.USER, (Thinking("hm"),)))}, "messages[1]", "cannot carry"),
        ({"messages": (user("a"), assistant("b"))}, "messages", "ends with a user or a tool message"),
        ({"messages": (assistant("b"), user("a"))}, "messages", "cannot follow nothing"),
        ({"messages": (user("a"), assistant("b"), system("c"), user("d"))}, "messages", "cannot follow"),
        ({"messages": (user("a"), assistant("", ToolCall("1", "x")), user("b"))}, "messages", "not answered"),
        ({"messages": (user("\ud800"),)}, "messages", "surrogates"),
        ({"mode": "talk"}, "mode", "talk"),
        ({"request_id": 3}, "request_id", "Expected `str`"),
        ({"tools": ("look", "")}, "tools", "empty name"),
        ({"tools": (3,)}, "tools[0]", "Expected `str`"),
        ({"metadata": {"a": object()}}, "metadata", "cannot be written as JSON"),
        ({"hints": ExecutionHints(max_tokens=2.5)}, "hints.max_tokens", "Expected `int"),  # pyright: ignore[reportArgumentType]
        ({"hints": ExecutionHints(options={"a": {1, object()}})}, "hints", "cannot be written as JSON"),
    ],
)
def test_a_request_that_cannot_be_served(changes: dict[str, Any], field: str, told: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        replace(HI, **changes).check()
    assert caught.value.details["field"] == field
    assert told in caught.value.message


@pytest.mark.parametrize("mode", [Mode.STRUCTURED, Mode.REDUNDANT])
@pytest.mark.parametrize("output", [None, OutputContract(grammar='root ::= "yes"')])
def test_a_mode_that_needs_a_schema(mode: Mode, output: OutputContract | None) -> None:
    with pytest.raises(
        SchemaRequired, match=rf"{mode.value} needs a JSON Schema in output\.schema"
    ) as caught:
        replace(HI, mode=mode, output=output).check()
    assert caught.value.code == "CONFIG_SCHEMA_REQUIRED"


@pytest.mark.parametrize(
    "schema", [{"type": "thing"}, {"properties": 3}, {"type": "object", "required": "a"}]
)
def test_a_schema_that_is_none(schema: dict[str, Any]) -> None:
    with pytest.raises(SchemaMalformed, match=r"output\.schema") as caught:
        replace(HI, output=OutputContract(schema=schema)).check()
    assert caught.value.code == "CONFIG_SCHEMA_MALFORMED"
    assert caught.value.details["field"] == "output.schema"


@given(requests)
def test_a_checked_request_is_the_same_request(request: SystemRequest) -> None:
    if request.mode in (Mode.PLAN, Mode.REDUNDANT):
        request = replace(request, caller_tools=(), tool_choice=None)
    tools = [replace(one, name=f"tool_{n}") for n, one in enumerate(request.caller_tools) if one.parameters]
    request = replace(request, caller_tools=tuple(tools))
    try:
        assert request.check() == request
    except SchemaRequired:
        assert request.mode in (Mode.STRUCTURED, Mode.REDUNDANT)


def test_a_check_brings_values_to_their_types() -> None:
    loose = SystemRequest(messages=[user("hi")], mode="chat", tools=["look"])  # pyright: ignore[reportArgumentType]
    checked = loose.check()
    assert checked == replace(HI, tools=("look",))
    assert checked.mode is Mode.CHAT


# The conversation


def test_the_last_user_message_is_the_prompt() -> None:
    talk = conversation((system("Be brief."), user("a"), assistant("b"), user("c")))
    assert talk.instructions == ("Be brief.",)
    assert talk.history == (user("a"), assistant("b"))
    assert talk.prompt == (Text("c"),)


def test_a_conversation_may_go_on_from_tool_results() -> None:
    history = (user("a"), assistant("", ToolCall("1", "x")), tool_result("1", "x", "y"))
    talk = conversation(history)
    assert (talk.history, talk.prompt) == (history, None)


def test_what_one_speaker_says_in_a_row_is_taken_together() -> None:
    first, second = tool_result("1", "x", "y"), tool_result("2", "x", "z")
    talk = conversation(
        (
            system("A."),
            system("B."),
            user("a"),
            assistant("", ToolCall("1", "x"), ToolCall("2", "x")),
            first,
            second,
            user("b"),
            user("c"),
        )
    )
    assert talk.instructions == ("A.", "B.")
    assert talk.history[-1] == Message(Role.TOOL, (*first.parts, *second.parts))
    assert talk.prompt == (Text("b"), Text("c"))


def test_the_defaults_of_a_response() -> None:
    response = SystemResponse()
    assert response.ok
    assert response.validation_result is None
    assert response.confidence is None
    assert response.token_usage == RunUsage()

"""AgentRequest, AgentResponse, ModelConfig: their keys, their checks, and what they mean in our words."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball.core.errors import EngineError, InvalidMessage, InvalidRequest, UnexpectedModelBehavior
from flyball.core.forms.semstreams import (
    AgentRequest,
    AgentResponse,
    Attachment,
    Category,
    ModelConfig,
    PayloadType,
    ResponseAction,
    ResponseBlock,
    UserMessage,
    UserResponse,
    payload_type,
)
from flyball.core.messages import (
    FinishReason,
    Message,
    Role,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_results,
    user,
)
from flyball.core.settings import SEMSTREAMS, ModelSettings
from flyball.core.task import AgentRole
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.core.usage import Usage
from tests.core.forms.documents import texts
from tests.core.forms.ours import calls, flat_histories
from tests.strategies import counts, maybe

TOOL = ToolDefinition("graph_query", {"type": "object"}, "Query the graph")
DOCUMENT: dict[str, Any] = {
    "request_id": "req-789",
    "loop_id": "loop-ghi",
    "role": "general",
    "messages": [
        {"role": "system", "content": "Be brief"},
        {"role": "user", "content": "Query the graph"},
    ],
    "model": "gpt-4",
    "max_tokens": 4096,
    "temperature": 0.2,
    "tools": [{"name": "graph_query", "description": "Query the graph", "parameters": {"type": "object"}}],
    "tool_choice": {"mode": "function", "function_name": "graph_query"},
}


def request(**changes: Any) -> AgentRequest:
    return msgspec.structs.replace(AgentRequest.read(DOCUMENT), **changes)


def test_a_request_in_our_words() -> None:
    ours = AgentRequest.of(
        "req-789",
        [system("Be brief"), user("Query the graph")],
        SEMSTREAMS,
        [TOOL],
        ToolChoice("function", "graph_query"),
        loop_id="loop-ghi",
        model="gpt-4",
    )
    assert AgentRequest.read(DOCUMENT) == ours
    assert ours.write() == DOCUMENT
    assert ours.settings == SEMSTREAMS
    assert AgentRequest.unmarshal_json(ours.marshal_json()) == ours
    assert msgspec.json.decode(ours.marshal_json()) == DOCUMENT


@given(
    flat_histories(calls(), thinks=True),
    st.builds(ModelSettings, max_tokens=maybe(st.integers(1, 99)), temperature=maybe(st.floats(0, 2))),
    texts,
)
def test_our_requests_come_back(history: list[Message], settings: ModelSettings, model: str) -> None:
    ours = AgentRequest.of("r", history, settings, [TOOL], ToolChoice("required"), model=model)
    back = AgentRequest.unmarshal_json(ours.marshal_json())
    assert back == ours
    assert (back.messages, back.settings) == (tuple(history), settings)


def test_the_bare_request_has_the_keys_that_go_always_writes() -> None:
    assert AgentRequest("r", ()).write() == {
        "request_id": "r",
        "loop_id": "",
        "role": "general",
        "messages": [],
        "model": "",
    }


def test_a_temperature_of_zero_is_kept_and_zero_tokens_are_unset() -> None:
    asked = request(temperature=0.0, max_tokens=0)
    assert asked.write()["temperature"] == 0.0
    assert AgentRequest.read(asked.write()).settings == ModelSettings(temperature=0.0)
    assert AgentRequest.of("r", [], ModelSettings(temperature=1.0, thinking_budget=9)).temperature is None


def test_several_results_become_several_messages_and_one_again() -> None:
    history = (
        assistant("", ToolCall("a", "f"), ToolCall("b", "f")),
        tool_results([ToolResult("a", "f", "1"), ToolResult("b", "f", "2")]),
    )
    document = AgentRequest("r", history).write()
    assert [message["role"] for message in document["messages"]] == ["assistant", "tool", "tool"]
    assert AgentRequest.read(document).messages == history


@pytest.mark.parametrize("role", AgentRole)
def test_a_complete_request_of_each_role_is_valid(role: AgentRole) -> None:
    request(role=role.value).validate()


@pytest.mark.parametrize(
    ("changes", "field", "said"),
    [
        ({"request_id": ""}, "request_id", "request_id required"),
        ({"messages": ()}, "messages", "messages cannot be empty"),
        ({"role": "oracle"}, "role", "invalid role: oracle"),
        ({"role": ""}, "role", "invalid role: "),
    ],
)
def test_what_is_missing_in_a_request_is_named(changes: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        request(**changes).validate()
    assert caught.value.details["field"] == field
    assert str(caught.value).startswith(said)


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"messages": {}}, "request.messages"),
        ({"messages": [{"role": "user"}, {"role": "x"}]}, "request.messages[1].role"),
        ({"tools": [{"name": 3}]}, "request.tools[0].name"),
        ({"tool_choice": "auto"}, "request.tool_choice"),
        ({"max_tokens": "many"}, "request.max_tokens"),
        ({"temperature": True}, "request.temperature"),
        ({"request_id": 1}, "request.request_id"),
    ],
)
def test_what_is_malformed_in_a_request_is_placed(changes: dict[str, Any], where: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        AgentRequest.read(DOCUMENT | changes)
    assert caught.value.details["where"] == where


def test_a_response_carries_an_answer() -> None:
    message = msgspec.structs.replace(
        assistant("Here is the design"), usage=Usage(150, 200), finish_reason=FinishReason.STOP
    )
    response = AgentResponse.of("req-1", message)
    assert response.write() == {
        "request_id": "req-1",
        "status": "complete",
        "message": {"role": "assistant", "content": "Here is the design"},
        "token_usage": {"prompt_tokens": 150, "completion_tokens": 200},
    }
    assert AgentResponse.unmarshal_json(response.marshal_json()).answer() == message


@pytest.mark.parametrize(
    ("message", "status"),
    [
        (assistant("x"), "complete"),
        (assistant("", ToolCall("c", "f")), "tool_call"),
        (msgspec.structs.replace(assistant("x"), finish_reason=FinishReason.LENGTH), "complete"),
        (msgspec.structs.replace(assistant("x"), finish_reason=FinishReason.ERROR), "error"),
    ],
)
def test_the_status_says_why_the_model_stopped(message: Message, status: str) -> None:
    assert AgentResponse.of("r", message).status == status


def test_a_failure() -> None:
    response = AgentResponse.failed("r", EngineError("Model timeout"))
    assert response.write() == {"request_id": "r", "status": "error", "error": "Model timeout"}
    with pytest.raises(EngineError, match="Model timeout"):
        response.answer()
    assert AgentResponse.failed("r", ValueError()).error == "ValueError"
    with pytest.raises(EngineError, match="did not say why"):
        AgentResponse("r", "error").answer()


def test_the_empty_message_that_go_writes_beside_an_error_is_none() -> None:
    document = {
        "request_id": "r",
        "status": "error",
        "message": {"role": ""},
        "error": "no",
        "token_usage": {"prompt_tokens": 0, "completion_tokens": 0},
    }
    response = AgentResponse.read(document)
    assert (response.message, response.token_usage) == (None, Usage())
    assert response.write() == {key: value for key, value in document.items() if key != "message"}


@pytest.mark.parametrize("message", [None, user("hi")])
def test_an_answer_is_an_assistant_s(message: Message | None) -> None:
    with pytest.raises(UnexpectedModelBehavior):
        AgentResponse("r", "complete", message).answer()


def test_a_response_carries_one_message() -> None:
    two = tool_results([ToolResult("a", "f", "1"), ToolResult("b", "f", "2")])
    with pytest.raises(InvalidRequest):
        AgentResponse("r", "complete", two).write()


@pytest.mark.parametrize("status", ["complete", "tool_call", "error"])
def test_valid_statuses(status: str) -> None:
    AgentResponse("r", status).validate()


@pytest.mark.parametrize("status", ["", "done"])
def test_invalid_statuses(status: str) -> None:
    with pytest.raises(InvalidRequest, match="complete, tool_call, error") as caught:
        AgentResponse("r", status).validate()
    assert caught.value.details["field"] == "status"


@pytest.mark.parametrize(
    ("config", "filled"),
    [
        (ModelConfig(), ModelConfig(0.2, 4096)),
        (ModelConfig(0.7, 2048), ModelConfig(0.7, 2048)),
        (ModelConfig(temperature=0.7), ModelConfig(0.7, 4096)),
        (ModelConfig(max_tokens=1, extra={"x": 1}), ModelConfig(0.2, 1, {"x": 1})),
    ],
)
def test_defaults(config: ModelConfig, filled: ModelConfig) -> None:
    assert config.with_defaults() == filled


@given(st.floats(0.1, 2) | st.just(0.0), counts, st.none() | st.just({"x": 1}))
def test_configs_come_back(temperature: float, tokens: int, extra: dict[str, Any] | None) -> None:
    config = ModelConfig(temperature, tokens, extra)
    assert ModelConfig.read(config.write()) == config
    assert all(config.write().values())
    assert config.settings == ModelSettings(max_tokens=tokens or None, temperature=temperature or None)


def test_the_types_of_payloads() -> None:
    assert request().schema == PayloadType(Category.REQUEST, "agentic", "v1")
    assert AgentResponse("r", "complete").schema == PayloadType(Category.RESPONSE)
    assert payload_type(ToolCall("c", "f")) == PayloadType(Category.TOOL_CALL)
    assert payload_type(ToolResult("c", "f")) == PayloadType(Category.TOOL_RESULT)


def test_the_constants() -> None:
    assert {category.value for category in Category} == {
        "task", "user_message", "signal", "user_response", "request", "response", "tool_call", "tool_result",
        "loop_created", "loop_completed", "loop_failed", "loop_cancelled", "context_event", "signal_message",
    }  # fmt: skip
    assert {role.value for role in AgentRole} == {
        "architect", "editor", "general", "qualifier", "developer", "reviewer",
    }  # fmt: skip
    assert {role.value for role in Role} == {"system", "user", "assistant", "tool"}


@pytest.mark.parametrize(
    "payload",
    [
        UserMessage(
            message_id="1",
            channel_type="cli",
            channel_id="c",
            user_id="u",
            attachments=(Attachment(type="zip", name="n"),),
        ),
        UserResponse(
            response_id="1",
            channel_type="cli",
            channel_id="c",
            type="text",
            blocks=(ResponseBlock(type="zz"),),
        ),
        *[
            UserResponse(response_id="1", channel_type="cli", channel_id="c", type="text", actions=(action,))
            for action in (
                ResponseAction(id="a", type="zz", signal="approve"),
                ResponseAction(id="a", type="button", signal="approve", style="zz"),
            )
        ],
    ],
)
def test_parts_are_of_the_kinds_that_there_are(payload: UserMessage | UserResponse) -> None:
    with pytest.raises(InvalidMessage, match="must be one of"):
        payload.validate()

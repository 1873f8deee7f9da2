"""OpenAI's engine over real sockets: the promises of every engine, keys, addresses, runs from end to end."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from flyball import Agent, NativeOutput, tool
from flyball.core.errors import (
    ConfigurationFailure,
    EngineError,
    MissingKey,
    ModelHTTPError,
    ModelUnavailable,
    UnexpectedModelBehavior,
    UserError,
)
from flyball.core.events import ModelFailed
from flyball.core.messages import FinishReason, user
from flyball.core.tools import ToolDefinition
from flyball.engines.openai import OpenAIEngine, engine_for
from flyball.inference.engine import Engine
from flyball.inference.model_string import parse_model
from flyball.inference.permission import forbid_model_requests
from flyball.inference.request import OutputObject, Request
from flyball.inference.stream import Finish, TextDelta, collect
from flyball.orchestrate.journal import MemoryJournal
from flyball.testing.conformance import EngineConformance
from tests.engines.loopback import Answer, Loopback, Received, as_json, sse
from tests.engines.openai.answers import completion, usage

HELLO = Request((user("Hello"),))
CHUNK: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4o-2024"}


def chat(got: Received) -> Answer:
    """Repeats the prompt, whole or word by word."""
    body = got.json
    text = f"You said: {body['messages'][-1]['content']}"
    if not body.get("stream"):
        return as_json(completion({"role": "assistant", "content": text}), x_request_id="req_1")
    words: list[dict[str, Any]] = [
        {**CHUNK, "choices": [{"index": 0, "delta": {"content": f"{word} "}, "finish_reason": None}]}
        for word in text[:-1].split(" ")
    ]
    words[-1]["choices"][0]["delta"]["content"] = text.rpartition(" ")[2]
    end: dict[str, Any] = {
        **CHUNK,
        "model": "gpt-4o-2024",
        "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
    }
    return sse(*words, end, {**CHUNK, "model": "gpt-4o-2024", "choices": [], "usage": usage()}, chunk=11)


def responses(got: Received) -> Answer:
    body = got.json
    item: dict[str, Any] = {
        "type": "message",
        "id": "m",
        "content": [{"type": "output_text", "text": f"You said: {body['input'][-1]['content']}"}],
    }
    whole = {
        "id": "r",
        "model": "gpt-5-2025",
        "status": "completed",
        "output": [item],
        "usage": {"input_tokens": 3},
    }
    if not body.get("stream"):
        return as_json(whole)
    text: str = item["content"][0]["text"]
    deltas = [
        {
            "type": "response.output_text.delta",
            "output_index": 0,
            "content_index": 0,
            "delta": text[at : at + 5],
        }
        for at in range(0, len(text), 5)
    ]
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    return sse(*deltas, done, {"type": "response.completed", "response": whole}, ended=False, chunk=9)


class Conformance(EngineConformance):
    api: Any = "chat"

    @pytest.fixture(autouse=True)
    async def _serve(self) -> AsyncGenerator[None]:
        handler = chat if self.api == "chat" else responses
        async with (
            Loopback(handler) as self.server,
            Loopback(lambda _: Answer([], end="stall")) as self.silent,
            Loopback(lambda _: as_json({"error": {"message": "no key"}}, 401)) as self.refusing,
        ):
            yield

    def _engine(self, server: Loopback) -> OpenAIEngine:
        return OpenAIEngine("gpt-5", api=self.api, base_url=f"{server.url}/v1", api_key="sk-key-1")

    def make_engine(self) -> Engine:
        return self._engine(self.server)

    def make_stalled_engine(self) -> Engine:
        return self._engine(self.silent)

    def make_failing_engine(self) -> Engine:
        return self._engine(self.refusing)


class TestChat(Conformance):
    api = "chat"


class TestResponses(Conformance):
    api = "responses"


def local(at: Loopback, server: str = "llama-cpp", **more: Any) -> OpenAIEngine:
    return OpenAIEngine("m", server=server, base_url=f"{at.url}/v1", **more)


# What goes over the wire


async def test_the_vendors_client_sends_the_same() -> None:
    async with Loopback(chat) as server:
        theirs = AsyncOpenAI(api_key="sk-key-1", base_url=f"{server.url}/v1", max_retries=0)
        await theirs.chat.completions.create(model="gpt-4o", messages=[{"role": "user", "content": "Hello"}])
        await theirs.close()
        ours = OpenAIEngine("gpt-4o", api="chat", base_url=f"{server.url}/v1", api_key="sk-key-1")
        await ours.infer(HELLO)
        await ours.aclose()
    one, other = server.received
    assert (one.path, one.json) == (other.path, other.json)
    for name in ("authorization", "content-type"):
        assert one.headers[name] == other.headers[name]


async def test_the_vendors_client_sends_the_same_to_responses() -> None:
    async with Loopback(responses) as server:
        theirs = AsyncOpenAI(api_key="sk-key-1", base_url=f"{server.url}/v1", max_retries=0)
        await theirs.responses.create(
            model="gpt-4o", input=[{"role": "user", "content": "Hello"}], store=False
        )
        await theirs.close()
        ours = OpenAIEngine("gpt-4o", base_url=f"{server.url}/v1", api_key="sk-key-1")
        await ours.infer(HELLO)
        await ours.aclose()
    one, other = server.received
    assert (one.path, one.json) == (other.path, other.json)


async def test_a_server_that_does_not_stream_gives_the_same_answer() -> None:
    async with Loopback(lambda _: as_json(completion({"content": "hi"}))) as server:
        engine = local(server)
        assert await collect(engine.stream(HELLO)) == await engine.infer(HELLO)


async def test_a_stream_that_breaks_has_given_what_came() -> None:
    def broken(_: Received) -> Answer:
        told = sse({**CHUNK, "choices": [{"delta": {"content": "Hel"}}]}, ended=False)
        return Answer(told.body, headers=told.headers, end="reset")

    async with Loopback(broken) as server:
        engine, came = local(server), list[str]()
        with pytest.raises(EngineError, match="broke"):  # noqa: PT012 - what came before belongs to it
            async for event in engine.stream(HELLO):
                if isinstance(event, TextDelta):
                    came.append(event.text)
        assert came == ["Hel"]
        journal = MemoryJournal()
        async with Agent(engine).run_stream("Hello", journal=journal, loop_id="broken") as run:
            with pytest.raises(EngineError):
                [text async for text in run.text()]
    [failed] = [event for event in await journal.read("broken") if isinstance(event, ModelFailed)]
    assert failed.partial is not None
    assert failed.partial.text == "Hel"


async def test_failures_carry_what_programs_need() -> None:
    answer = as_json({"error": {"message": "Slow down"}}, 429, retry_after="7", x_request_id="req_7")
    async with Loopback(lambda _: answer) as server:
        with pytest.raises(ModelHTTPError) as caught:
            await local(server, api_key="sk-secret-1").infer(HELLO)
    error = caught.value
    assert (error.status_code, error.retry_after, error.retryable) == (429, 7.0, True)
    assert error.details["request_id"] == "req_7"


async def test_redirects_are_not_followed() -> None:
    async with Loopback(
        lambda _: Answer(b"", 307, {"Location": "https://elsewhere.example/v1?k=1"})
    ) as server:
        with pytest.raises(EngineError, match=r"https://elsewhere\.example/v1,") as caught:
            await local(server).infer(HELLO)
    assert not caught.value.retryable


async def test_real_calls_are_refused_where_they_are_forbidden() -> None:
    async with Loopback(chat) as server:
        with forbid_model_requests(), pytest.raises(ConfigurationFailure, match="switched off"):
            await local(server).infer(HELLO)
        assert server.received == []


# Where and who


@pytest.mark.parametrize(
    ("model", "variables", "path", "header"),
    [
        ("openai:gpt-5", {"OPENAI_BASE_URL": "{}/v1", "OPENAI_API_KEY": "s1"}, "/v1/responses", "Bearer s1"),
        (
            "azure:dep", {"AZURE_OPENAI_ENDPOINT": "{}/", "AZURE_OPENAI_API_KEY": "az-1"},
            "/openai/v1/responses", "az-1",
        ),
        (
            "openrouter:a/b", {"OPENROUTER_BASE_URL": "{}/api/v1", "OPENROUTER_API_KEY": "or-1"},
            "/api/v1/chat/completions", "Bearer or-1",
        ),
        ("ollama:qwen3", {"OLLAMA_HOST": "{}"}, "/v1/chat/completions", None),
        ("vllm:q", {"VLLM_BASE_URL": "{}/v1", "VLLM_API_KEY": "v-1"}, "/v1/chat/completions", "Bearer v-1"),
        ("llama-cpp:q", {"LLAMA_CPP_BASE_URL": "{}/v1"}, "/v1/chat/completions", None),
        ("lm-studio:q", {"LM_STUDIO_BASE_URL": "{}/v1"}, "/v1/chat/completions", None),
    ],
)  # fmt: skip
async def test_servers_by_name(
    model: str, variables: dict[str, str], path: str, header: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def either(got: Received) -> Answer:
        return responses(got) if got.path.endswith("/responses") else chat(got)

    async with Loopback(either) as server:
        for name, value in variables.items():
            monkeypatch.setenv(name, value.format(server.url))
        engine = engine_for(parse_model(model))
        await engine.infer(HELLO)
    got = server.received[0]
    assert got.path == path
    assert (got.headers.get("authorization") or got.headers.get("api-key")) == header
    assert engine.model_info().provider == model.partition(":")[0]


async def test_azures_older_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    async with Loopback(chat) as server:
        engine = OpenAIEngine("dep", server="azure", api="chat", base_url=server.url, api_key="az-key")
        await engine.infer(HELLO)
    assert server.received[0].path == "/openai/deployments/dep/chat/completions?api-version=2024-10-21"


async def test_an_address_and_the_model_that_is_there() -> None:
    def either(got: Received) -> Answer:
        return as_json({"data": [{"id": "loaded"}]}) if got.path == "/v1/models" else chat(got)

    async with Loopback(either) as server:
        engine = engine_for(parse_model(f"{server.url}/v1"))
        await engine.infer(HELLO)
        await collect(engine.stream(HELLO))
    assert [got.json["model"] for got in server.received[1:]] == ["loaded", "loaded"]
    assert "authorization" not in server.received[0].headers


async def test_a_server_without_models() -> None:
    async with Loopback(lambda _: as_json({"data": []})) as server:
        with pytest.raises(ModelUnavailable, match="has no model"):
            await engine_for(parse_model(f"{server.url}/v1")).infer(HELLO)
    async with Loopback(lambda _: Answer(b"<html>")) as server:
        with pytest.raises(UnexpectedModelBehavior, match="no JSON"):
            await engine_for(parse_model(f"{server.url}/v1")).infer(HELLO)


def test_what_is_missing_is_said() -> None:
    with pytest.raises(MissingKey, match="OPENAI_API_KEY"):
        engine_for(parse_model("openai:gpt-5"))
    with pytest.raises(ConfigurationFailure, match="AZURE_OPENAI_ENDPOINT"):
        engine_for(parse_model("azure:dep"))
    with pytest.raises(ConfigurationFailure, match="no server is called 'oolama'"):
        OpenAIEngine("m", server="oolama")
    api: Any = "completions"
    with pytest.raises(UserError, match="'chat' or 'responses'"):
        OpenAIEngine("m", server="vllm", api=api)


async def test_credentials_that_change() -> None:
    tokens = iter(("one", "two"))

    async def current() -> dict[str, str]:
        return {"Authorization": f"Bearer {next(tokens)}"}

    async with Loopback(chat) as server:
        engine = OpenAIEngine("dep", server="azure", api="chat", base_url=server.url, credentials=current)
        await engine.infer(HELLO)
        await collect(engine.stream(HELLO))
    assert [got.headers["authorization"] for got in server.received] == ["Bearer one", "Bearer two"]


async def test_vectors() -> None:
    rows = [{"index": 1, "embedding": [0.0, 1.0]}, {"index": 0, "embedding": [1.0, 0.0]}]
    async with Loopback(lambda _: as_json({"data": rows})) as server:
        engine = local(server)
        assert await engine.embed(["a", "b"]) == [[1.0, 0.0], [0.0, 1.0]]
        assert await engine.embed([]) == []
    assert server.received[0].json == {"model": "m", "input": ["a", "b"]}


# Whole runs


class Forecast(BaseModel):
    city: str
    rain: bool


@tool
def weather(city: str) -> str:
    """Weather in a city."""
    return f"It rains in {city}."


def forecaster(got: Received) -> Answer:
    """Asks for two tools at once, then answers, in the form that is wanted."""
    body = got.json
    roles = [message["role"] for message in body["messages"]]
    if "tool" not in roles:
        functions = [{"name": "weather", "arguments": f'{{"city": "{city}"}}'} for city in ("Paris", "Rome")]
        message: dict[str, Any] = {
            "content": None,
            "tool_calls": [
                {"id": f"call_{number}", "type": "function", "function": function}
                for number, function in enumerate(functions)
            ],
        }
    else:
        message = {"content": '{"city": "Paris", "rain": true}'}
    if not body.get("stream"):
        return as_json(completion(message))
    delta = {**message}
    if "tool_calls" in message:
        delta["tool_calls"] = [{**call, "index": at} for at, call in enumerate(message["tool_calls"])]
    end: dict[str, Any] = {**CHUNK, "choices": [{"delta": {}, "finish_reason": "stop"}]}
    return sse(
        {**CHUNK, "choices": [{"delta": delta}]}, end, {**CHUNK, "choices": [], "usage": usage()}, chunk=13
    )


@pytest.mark.parametrize("server_name", ["openai", "vllm", "llama-cpp"])
async def test_a_run_with_tools_and_a_typed_answer(server_name: str) -> None:
    async with Loopback(forecaster) as server:
        engine = local(server, server=server_name, api="chat", api_key="sk-key-1")
        agent = Agent(engine, output=NativeOutput(Forecast), tools=[weather])
        plain = await agent.run("Will it rain?")
        async with agent.run_stream("Will it rain?") as run:
            texts = [text async for text in run.text()]
            streamed = run.result
        await engine.aclose()
    assert plain.output == streamed.output == Forecast(city="Paris", rain=True)
    assert "".join(texts).endswith('{"city": "Paris", "rain": true}')
    assert [message.parts for message in plain.messages] == [message.parts for message in streamed.messages]
    assert plain.usage.tool_calls == 2
    asked = [(bool(got.json.get("tools")), "response_format" in got.json) for got in server.received]
    if server_name == "llama-cpp":
        # It takes tools or a form: the calls, the turn with tools that calls nothing, and the answer.
        assert asked == [(True, False), (True, False), (False, True)] * 2
        assert plain.usage.input_tokens == 3 * usage()["prompt_tokens"]
    else:
        assert asked == [(True, True)] * 4


async def test_two_steps_only_where_both_are_wanted() -> None:
    async with Loopback(chat) as server:
        engine = local(server)
        await engine.infer(Request(HELLO.messages, output=OutputObject({"type": "object"})))
        await engine.infer(Request(HELLO.messages, (ToolDefinition("f", {"type": "object"}),)))
        finish = [event async for event in engine.stream(HELLO)][-1]
    assert len(server.received) == 3
    assert isinstance(finish, Finish)
    assert finish.finish_reason is FinishReason.STOP

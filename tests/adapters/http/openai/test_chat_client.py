"""The official client, unchanged, talks to agents over Chat Completions."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from pydantic import BaseModel

from flyball import ExecutionPlan, Limits, MemoryJournal, PlanStep, StaticPlanner, System, tool
from flyball.adapters.http.openai.call_ids import call_name
from flyball.core.errors import ContextExceeded, EngineError, JournalUnreachable, ModelHTTPError
from flyball.core.messages import FinishReason, Image, Message, Role, Text, Thinking
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call
from flyball.inference.scripted import ScriptedEngine
from flyball.validate.guardrails import InputGuardrail
from tests.adapters.http.openai.asgi import KEY, App, Here, serve


class City(BaseModel):
    name: str
    people: int


class GetWeather(BaseModel):
    """The weather in a city."""

    city: str


@tool
async def look() -> str:
    """Look out."""
    return "grey"


def said(*parts: Any, usage: Usage | None = None, reason: FinishReason | None = None) -> Message:
    return Message(Role.ASSISTANT, parts, usage=usage, finish_reason=reason)


def client(url: str, **options: Any) -> AsyncOpenAI:
    options.setdefault("api_key", KEY)
    return AsyncOpenAI(base_url=url, max_retries=0, **options)


def system(*answers: Any, chunk: int | None = 3, **options: Any) -> System:
    options.setdefault("journal", MemoryJournal())
    return System(ScriptedEngine(*answers, chunk=chunk), **options)


WEATHER = openai.pydantic_function_tool(GetWeather)
ROME = tool_call("GetWeather", {"city": "Rome"}, "call_a")
OSLO = tool_call("GetWeather", {"city": "Oslo"}, "call_b")
ASK: Any = [{"role": "user", "content": "Rain?"}]


async def test_a_chat() -> None:
    usage = Usage(10, 4, reasoning_tokens=2, cache_read_tokens=3)
    answer = said(Thinking("hm"), Text("Rain."), usage=usage)
    app = App(Here({"general": system(answer)}))
    async with serve(app) as url, client(url) as to:
        completion = await to.chat.completions.create(
            model="general",
            messages=[{"role": "system", "content": "Be brief."}, *ASK],
            temperature=0.5,
            max_completion_tokens=100,
            stop=["x"],
            seed=3,
            metadata={"who": "ann"},
            user="u1",
            extra_body={"unknown": {"x": 1}},
        )
    message = completion.choices[0].message
    assert (message.role, message.content, message.refusal, message.tool_calls) == (
        "assistant",
        "Rain.",
        None,
        None,
    )
    assert message.model_extra == {"reasoning_content": "hm"}
    assert completion.choices[0].finish_reason == "stop"
    assert completion.model == "general"
    assert completion.usage is not None
    assert (
        completion.usage.prompt_tokens,
        completion.usage.completion_tokens,
        completion.usage.total_tokens,
    ) == (10, 4, 14)
    assert completion.usage.prompt_tokens_details is not None
    assert completion.usage.prompt_tokens_details.cached_tokens == 3
    assert completion.usage.completion_tokens_details is not None
    assert completion.usage.completion_tokens_details.reasoning_tokens == 2
    engine: Any = app.serving.system("general").agent.config.model  # pyright: ignore[reportOptionalMemberAccess]
    (request,) = engine.calls
    assert [one.text for one in request.messages] == ["Be brief.", "Rain?"]
    settings = request.settings
    assert (settings.temperature, settings.max_tokens, settings.stop, settings.seed) == (0.5, 100, ("x",), 3)


async def test_a_chat_in_chunks() -> None:
    answer = said(Thinking("hm, let me see"), Text("Rain, all day long."), usage=Usage(10, 4))
    async with serve(App(Here({"general": system(answer)}))) as url, client(url) as to:
        stream = await to.chat.completions.create(
            model="general", messages=ASK, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    texts = [delta.content for delta in deltas if delta.content]
    assert len(texts) > 3, "it is told as it comes"
    assert "".join(texts) == "Rain, all day long."
    thoughts = [(delta.model_extra or {}).get("reasoning_content") or "" for delta in deltas]
    assert "".join(thoughts) == "hm, let me see"
    assert deltas[0].role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.total_tokens == 14
    assert len({chunk.id for chunk in chunks}) == 1


async def test_the_stream_helper_joins_the_same() -> None:
    async with (
        serve(App(Here({"general": system("Rain, all day.")}))) as url,
        client(url) as to,
        to.chat.completions.stream(model="general", messages=ASK) as stream,
    ):
        kinds = [event.type async for event in stream]
        completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == "Rain, all day."
    assert kinds.count("content.delta") > 2
    assert kinds[-1] == "content.done"


async def test_a_typed_answer() -> None:
    made = system('{"name": "Rome", "people": 3}', chunk=None)
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        parsed = await to.chat.completions.parse(model="general", messages=ASK, response_format=City)
    assert parsed.choices[0].message.parsed == City(name="Rome", people=3)


async def test_a_typed_answer_in_a_stream() -> None:
    made = system('{"name": 3}', '{"name": "Rome", "people": 3}')
    async with (
        serve(App(Here({"general": made}))) as url,
        client(url) as to,
        to.chat.completions.stream(model="general", messages=ASK, response_format=City) as stream,
    ):
        async for _ in stream:
            pass
        completion = await stream.get_final_completion()
    assert completion.choices[0].message.parsed == City(name="Rome", people=3)


async def test_an_answer_that_breaks_its_form() -> None:
    schema = {"name": "city", "schema": City.model_json_schema(), "strict": True}
    strict: Any = {"type": "json_schema", "json_schema": schema}
    loose: Any = {"type": "json_schema", "json_schema": {**schema, "strict": False}}
    for form, answers in ((strict, ['{"name": 3}'] * 2), (loose, ['{"name": 4}'] * 2)):
        async with serve(App(Here({"general": system(*answers)}))) as url, client(url) as to:
            asking = to.chat.completions.create(model="general", messages=ASK, response_format=form)
            if form is loose:
                assert (await asking).choices[0].message.content == '{"name": 4}'
                continue
            with pytest.raises(openai.UnprocessableEntityError) as caught:
                await asking
            assert caught.value.code == "CONSTRAINT_SCHEMA_INVALID"


async def test_an_answer_that_is_cut_off() -> None:
    texts = ['{"name": "Ro', '{"name": "R', "Ra"]
    made = system(*[said(Text(text), reason=FinishReason.LENGTH) for text in texts])
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        with pytest.raises(openai.LengthFinishReasonError):
            await to.chat.completions.parse(model="general", messages=ASK, response_format=City)
        completion = await to.chat.completions.create(model="general", messages=ASK)
    assert completion.choices[0].finish_reason == "length"


# Tools


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("kept", [True, False], ids=["with a journal", "without one"])
async def test_calls_go_to_the_client_and_their_results_come_back(streamed: bool, kept: bool) -> None:
    answers = (said(Text("Let me see."), ROME, OSLO, reason=FinishReason.TOOL_CALL), "Rain everywhere.")
    made = system(*answers, journal=MemoryJournal()) if kept else System(ScriptedEngine(*answers, chunk=4))
    messages: list[Any] = list(ASK)
    async with serve(App(Here({"general": made}))) as url, client(url) as to:

        async def ask() -> Any:
            if not streamed:
                return await to.chat.completions.create(model="general", messages=messages, tools=[WEATHER])
            async with to.chat.completions.stream(
                model="general", messages=messages, tools=[WEATHER]
            ) as stream:
                async for _ in stream:
                    pass
                return await stream.get_final_completion()

        first = (await ask()).choices[0]
        assert first.finish_reason == "tool_calls"
        assert first.message.content == "Let me see."
        calls = first.message.tool_calls
        assert [(one.function.name, one.function.arguments) for one in calls] == [
            ("GetWeather", '{"city":"Rome"}'),
            ("GetWeather", '{"city":"Oslo"}'),
        ]
        messages.append(first.message.model_dump(exclude_none=True))
        messages += [{"role": "tool", "tool_call_id": one.id, "content": "rain"} for one in calls]
        last = (await ask()).choices[0]
    assert (last.message.content, last.finish_reason) == ("Rain everywhere.", "stop")
    if kept and made.journal is not None:
        assert len(await made.journal.loops()) == 1, "the loop was gone on with"


async def test_the_agents_own_tools_are_not_the_clients() -> None:
    answers = (said(Text("I look."), tool_call("look")), ROME, said(Text("Grey, "), Text("and rain.")))
    made = system(*answers, tools=[look])
    messages: list[Any] = list(ASK)
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        first = await to.chat.completions.create(model="general", messages=messages, tools=[WEATHER])
        message = first.choices[0].message
        assert message.content is None
        assert (message.model_extra or {})["reasoning_content"] == "I look."
        assert message.tool_calls is not None
        (call,) = message.tool_calls
        messages.append(message.model_dump(exclude_none=True))
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "rain"})
        stream = await to.chat.completions.create(
            model="general", messages=messages, tools=[WEATHER], stream=True
        )
        text = "".join([chunk.choices[0].delta.content or "" async for chunk in stream])
    assert text == "Grey, and rain."
    assert made.journal is not None
    (loop_id,) = await made.journal.loops()
    assert (await made.replay(loop_id)).tool_calls_made[0].name == "look"


@pytest.mark.parametrize("changed", ["tools", "question", "settings"])
async def test_another_question_is_another_loop(changed: str) -> None:
    made = system(ROME, "Rain.")
    messages: list[Any] = list(ASK)
    more: dict[str, Any] = {}
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        first = await to.chat.completions.create(model="general", messages=messages, tools=[WEATHER])
        message = first.choices[0].message
        assert message.tool_calls is not None
        messages.append(message.model_dump(exclude_none=True))
        messages.append({"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "rain"})
        if changed == "question":
            messages[0] = {"role": "user", "content": "Snow?"}
        elif changed == "settings":
            more["temperature"] = 0.1
        if changed != "tools":
            more["tools"] = [WEATHER]
        create: Any = to.chat.completions.create
        last = await create(model="general", messages=messages, **more)
    assert last.choices[0].message.content == "Rain."
    assert made.journal is not None
    assert len(await made.journal.loops()) == 2


async def test_pictures_sounds_and_files() -> None:
    app = App(Here({"general": system("Seen.")}))
    parts: Any = [
        {"type": "text", "text": "See."},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk=", "detail": "low"}},
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}},
        {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}},
    ]
    async with serve(app) as url, client(url) as to:
        await to.chat.completions.create(model="general", messages=[{"role": "user", "content": parts}])
    engine: Any = app.serving.system("general").agent.config.model  # pyright: ignore[reportOptionalMemberAccess]
    (message,) = engine.calls[0].messages
    assert [type(part).__name__ for part in message.parts] == ["Text", "Image", "Audio", "Document"]
    assert message.parts[1] == Image("data:image/png;base64,aGk=", detail="low")


# What goes wrong


def failing(error: Exception) -> System:
    return system(error)


@pytest.mark.parametrize(
    ("made", "kind", "code"),
    [
        (
            lambda: failing(ModelHTTPError("slow down", status_code=429, retry_after=3)),
            openai.RateLimitError,
            "rate_limit_exceeded",
        ),
        (
            lambda: failing(ModelHTTPError("bad key", retryable=False, status_code=401)),
            openai.InternalServerError,
            "INFERENCE_ENGINE_ERROR",
        ),
        (
            lambda: failing(EngineError("down", retryable=True)),
            openai.InternalServerError,
            "INFERENCE_ENGINE_ERROR",
        ),
        (lambda: failing(ContextExceeded("too long")), openai.BadRequestError, "context_length_exceeded"),
        (
            lambda: system("never", features=[InputGuardrail(_refuse)]),
            openai.BadRequestError,
            "content_policy_violation",
        ),
        (
            lambda: system(tool_call("look"), tools=[look], limits=Limits(max_iterations=1)),
            openai.InternalServerError,
            "ORCHESTRATION_ITERATION_LIMIT",
        ),
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_failures_are_the_clients_exceptions(made: Any, kind: Any, code: str, streamed: bool) -> None:
    async with serve(App(Here({"general": made()}))) as url, client(url) as to:

        async def ask() -> None:
            answer: Any = await to.chat.completions.create(model="general", messages=ASK, stream=streamed)
            async for _ in answer:
                pass

        with pytest.raises(openai.APIError if streamed else kind) as caught:
            await ask()
    assert caught.value.code == code


def _refuse(_: Any, prompt: Any) -> None:
    raise ValueError("not that")


async def test_what_is_not_there_is_not_found() -> None:
    async with serve(App(Here({"general": system("hi")}))) as url:
        async with client(url) as to:
            with pytest.raises(openai.NotFoundError) as caught:
                await to.chat.completions.create(model="nobody", messages=ASK)
            assert (caught.value.code, caught.value.param) == ("model_not_found", "model")
        async with client(url, api_key="wrong") as to:
            with pytest.raises(openai.AuthenticationError):
                await to.models.list()


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"n": 2}, "n"),
        ({"logprobs": True}, "logprobs"),
        ({"temperature": 3}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"modalities": ["audio"]}, "modalities[0]"),
        ({"extra_body": {"functions": [{"name": "f"}]}}, "functions"),
        ({"tools": [{"type": "custom", "custom": {"name": "x"}}]}, "tools[0].type"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        (
            {
                "tools": [
                    {
                        "type": "function",
                        "function": {"name": "a", "parameters": {"type": "object", "required": 3}},
                    }
                ]
            },
            "tools[0].function.parameters",
        ),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "no"}}},
            "tool_choice.function.name",
        ),
        ({"tool_choice": "required"}, "tool_choice"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": 3}}}},
            "response_format.json_schema.schema",
        ),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "tool", "tool_call_id": "x", "content": ""}]}, "messages[0].tool_call_id"),
        (
            {
                "messages": [
                    {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "ftp://x"}}]}
                ]
            },
            "messages[0].content[0].image_url.url",
        ),
        (
            {"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]},
            "messages",
        ),
    ],
)
async def test_what_cannot_be_is_refused_by_its_name(fields: dict[str, Any], param: str) -> None:
    made = system("never")
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        asked: dict[str, Any] = {"model": "general", "messages": ASK, **fields}
        with pytest.raises(openai.BadRequestError) as caught:
            await to.chat.completions.create(**asked)
    assert caught.value.param == param, caught.value
    assert caught.value.type == "invalid_request_error"
    assert made.journal is not None
    assert not await made.journal.loops()


async def test_the_choice_of_tools() -> None:
    made = system(ROME, "no", ROME, ROME, chunk=None)
    engine: Any = made.agent.config.model
    other: Any = {"type": "function", "function": {"name": "other"}}
    allowed: Any = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [WEATHER]}}
    named: Any = {"type": "function", "function": {"name": "GetWeather"}}
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        for choice in ("required", "none", named, allowed):
            await to.chat.completions.create(
                model="general",
                messages=ASK,
                tools=[WEATHER, other],
                tool_choice=choice,
                parallel_tool_calls=False,
            )
    offered = [
        ([one.name for one in request.tools], request.tool_choice and request.tool_choice.mode)
        for request in engine.calls
    ]
    both = ["GetWeather", "other"]
    assert offered == [(both, "required"), ([], None), (both, "function"), (["GetWeather"], "required")]
    assert all(one.sequential for request in engine.calls for one in request.tools)


# Other agents


async def test_text_as_it_comes_if_the_client_wants_it_so() -> None:
    answers = (said(Text("I look."), tool_call("look")), "Grey, all day.")
    form: Any = {"type": "json_object"}
    app = App(Here({"general": system(*answers, tools=[look]), "typed": system('{"a": 1}')}))
    async with serve(app) as url, client(url) as to:
        options: Any = {"live": True}
        for model, more in (("general", {}), ("typed", {"response_format": form})):
            create: Any = to.chat.completions.create
            stream = await create(model=model, messages=ASK, stream=True, stream_options=options, **more)
            texts = [chunk.choices[0].delta.content or "" async for chunk in stream]
            assert len([text for text in texts if text]) > 2
            assert "".join(texts) == ("I look.\n\nGrey, all day." if model == "general" else '{"a": 1}')


async def test_an_answer_that_is_asked_for_again_cannot_be_taken_back() -> None:
    options: Any = {"live": True}
    form: Any = {"type": "json_object"}
    async with serve(App(Here({"general": system("no", '{"a": 1}')}))) as url, client(url) as to:
        stream = await to.chat.completions.create(
            model="general", messages=ASK, stream=True, stream_options=options, response_format=form
        )
        with pytest.raises(openai.APIError, match="begun again"):
            _ = [chunk async for chunk in stream]


async def test_an_agent_with_tools_gives_typed_answers() -> None:
    made = system(tool_call("look"), '{"name": "Rome", "people": 3}', tools=[look])
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        parsed = await to.chat.completions.parse(model="general", messages=ASK, response_format=City)
    assert parsed.choices[0].message.parsed == City(name="Rome", people=3)


async def test_a_system_that_plans() -> None:
    plan = ExecutionPlan((PlanStep("advise", "infer"),))
    made = system("Rain.", "Rain.", planner=StaticPlanner({}, default=plan))
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        whole = await to.chat.completions.create(model="general", messages=ASK)
        assert whole.choices[0].message.content == "Rain."
        stream = await to.chat.completions.create(model="general", messages=ASK, stream=True)
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in stream]) == "Rain."
        with pytest.raises(openai.BadRequestError) as caught:
            await to.chat.completions.create(model="general", messages=ASK, tools=[WEATHER])
        assert caught.value.param == "tools"
        loop_id = whole.id.removeprefix("chatcmpl-")
        with pytest.raises(openai.BadRequestError):
            await to.responses.create(model="general", input="x", previous_response_id=f"resp_{loop_id}")


async def test_a_client_that_goes_away_leaves_the_loop() -> None:
    journal = MemoryJournal()
    made = system("word " * 400, chunk=1, journal=journal)
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        stream = await to.chat.completions.create(model="general", messages=ASK, stream=True)
        async for _ in stream:
            break
        await stream.close()
    assert len(await journal.loops()) == 1


async def test_a_journal_that_fails_is_the_servers_failure() -> None:
    class Broken(MemoryJournal):
        async def read(self, loop_id: str, start: int = 0) -> Any:
            raise JournalUnreachable("gone")

    made = system(ROME, journal=Broken())
    name = call_name("loop", "c")
    call = {"id": name, "type": "function", "function": {"name": "GetWeather", "arguments": "{}"}}
    messages: Any = [
        *ASK,
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": name, "content": "rain"},
    ]
    async with serve(App(Here({"general": made}))) as url, client(url) as to:
        with pytest.raises(openai.InternalServerError) as caught:
            await to.chat.completions.create(model="general", messages=messages, tools=[WEATHER])
        assert caught.value.status_code == 503

"""The official client, unchanged, talks to agents over the Responses API; and asks for models and vectors."""

from __future__ import annotations

import base64
from array import array
from typing import Any

import openai
import pytest

from flyball import HashedEmbedder, MemoryJournal, System, tool
from flyball.core.errors import EngineError
from flyball.core.messages import FinishReason, Text, Thinking
from flyball.core.usage import Usage
from flyball.inference.answers import tool_call
from flyball.orchestrate.recorded import send_signal
from tests.adapters.http.openai.asgi import App, Here, serve
from tests.adapters.http.openai.test_chat_client import City, client, said, system

PLACE = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER: Any = {"type": "function", "name": "weather", "parameters": PLACE, "strict": False}
ROME = tool_call("weather", {"city": "Rome"}, "call_a")
OSLO = tool_call("weather", {"city": "Oslo"}, "call_b")


@tool
async def look() -> str:
    """Look out."""
    return "grey"


def app_of(made: System) -> App:
    return App(Here({"general": made}, HashedEmbedder()))


async def test_a_response() -> None:
    answer = said(Thinking("hm"), Text("Rain."), usage=Usage(10, 4, 2, 3))
    made = system(answer)
    async with serve(app_of(made)) as url, client(url) as to:
        response = await to.responses.create(
            model="general",
            instructions="Be brief.",
            input="Rain?",
            max_output_tokens=50,
            temperature=0.4,
            metadata={"who": "ann"},
            store=False,
            reasoning={"effort": "low"},
        )
    assert (response.output_text, response.status, response.model) == ("Rain.", "completed", "general")
    assert [item.type for item in response.output] == ["reasoning", "message"]
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.output_tokens) == (10, 4)
    assert response.usage.output_tokens_details.reasoning_tokens == 2
    assert (response.instructions, response.max_output_tokens, response.metadata) == (
        "Be brief.",
        50,
        {"who": "ann"},
    )
    engine: Any = made.agent.config.model
    assert [one.text for one in engine.calls[0].messages] == ["Be brief.", "Rain?"]
    assert engine.calls[0].settings.reasoning_effort == "low"


async def test_a_response_in_events() -> None:
    answer = said(Thinking("hm, let me see"), Text("Rain, all day long."), usage=Usage(10, 4))
    async with serve(app_of(system(answer))) as url, client(url) as to:
        stream = await to.responses.create(model="general", input="Rain?", stream=True)
        events = [event async for event in stream]
    kinds = [event.type for event in events]
    assert kinds[:5] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.reasoning_text.delta",
    ]
    assert kinds[-4:] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert kinds.count("response.output_text.delta") > 3


async def test_the_stream_helper_joins_the_same() -> None:
    made = system(said(Thinking("hm"), Text("See."), ROME, OSLO))
    async with (
        serve(app_of(made)) as url,
        client(url) as to,
        to.responses.stream(model="general", input="Rain?", tools=[WEATHER]) as stream,
    ):
        async for _ in stream:
            pass
        response = await stream.get_final_response()
    assert [item.type for item in response.output] == [
        "reasoning",
        "message",
        "function_call",
        "function_call",
    ]
    assert response.output_text == "See."


async def test_typed_answers() -> None:
    answers = ['{"name": "Rome", "people": 3}'] * 2
    async with serve(app_of(system(*answers))) as url, client(url) as to:
        parsed = await to.responses.parse(model="general", input="Which?", text_format=City)
        assert parsed.output_parsed == City(name="Rome", people=3)
        async with to.responses.stream(model="general", input="Which?", text_format=City) as stream:
            async for _ in stream:
                pass
            assert (await stream.get_final_response()).output_parsed == City(name="Rome", people=3)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("by", ["previous", "input"])
async def test_calls_and_their_outputs(streamed: bool, by: str) -> None:
    made = system(
        said(Text("Let me see."), tool_call("look")), said(Text("And."), ROME, OSLO), "Rain.", tools=[look]
    )
    async with serve(app_of(made)) as url, client(url) as to:

        async def ask(given: Any, **more: Any) -> Any:
            if not streamed:
                create: Any = to.responses.create
                return await create(model="general", input=given, tools=[WEATHER], **more)
            async with to.responses.stream(model="general", input=given, tools=[WEATHER], **more) as stream:
                async for _ in stream:
                    pass
                return await stream.get_final_response()

        first = await ask("Rain?")
        calls = [item for item in first.output if item.type == "function_call"]
        assert [one.arguments for one in calls] == ['{"city":"Rome"}', '{"city":"Oslo"}']
        assert first.output_text == "And."
        outputs = [
            {"type": "function_call_output", "call_id": one.call_id, "output": "rain"} for one in calls
        ]
        if by == "previous":
            last = await ask(outputs, previous_response_id=first.id)
        else:
            items = [item.model_dump(exclude_none=True) for item in first.output]
            last = await ask([{"role": "user", "content": "Rain?"}, *items, *outputs])
    assert last.output_text == "Rain."
    assert made.journal is not None
    assert len(await made.journal.loops()) == 1, "the loop was gone on with"
    assert {item.id for item in first.output}.isdisjoint([item.id for item in last.output])


@pytest.mark.parametrize("streamed", [False, True])
async def test_outputs_may_be_sent_again(streamed: bool) -> None:
    made = system(ROME, OSLO, "Rain.", tools=[look])
    async with serve(app_of(made)) as url, client(url) as to:

        async def give(output: str, call: Any) -> Any:
            given: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": output}]
            more: Any = {"model": "general", "input": given, "previous_response_id": first.id}
            if not streamed:
                create: Any = to.responses.create
                return await create(tools=[WEATHER], **more)
            telling: Any = to.responses.stream(tools=[WEATHER], **more)
            async with telling as stream:
                return await stream.get_final_response()

        first = await to.responses.create(model="general", input="Rain?", tools=[WEATHER])
        (rome,) = first.output
        second, again = await give("rain", rome), await give("rain", rome)
        assert (again.id, again.output) == (second.id, second.output)
        (oslo,) = second.output
        third, again = await give("sun", oslo), await give("sun", oslo)
        assert (again.output_text, again.output) == ("Rain.", third.output)
        with pytest.raises(openai.BadRequestError, match="has another result already"):
            await give("snow", oslo)
        with pytest.raises(openai.BadRequestError, match="No tool call found"):
            await give("rain", oslo.model_copy(update={"call_id": "call_nobody"}))
    assert made.journal is not None
    assert len(await made.journal.loops()) == 1
    engine: Any = made.agent.config.model
    assert len(engine.calls) == 3, "nothing was asked twice"


async def test_a_conversation_by_previous_responses() -> None:
    made = system("Hello Ann.", "Ann.", tools=[look])
    async with serve(app_of(made)) as url, client(url) as to:
        first = await to.responses.create(model="general", input="I am Ann.", instructions="Be kind.")
        last = await to.responses.create(model="general", input="Who am I?", previous_response_id=first.id)
        assert (last.output_text, last.previous_response_id) == ("Ann.", first.id)
        assert last.id != first.id
    engine: Any = made.agent.config.model
    assert [one.text for one in engine.calls[1].messages] == ["I am Ann.", "Hello Ann.", "Who am I?"]


async def test_outputs_with_something_to_say() -> None:
    made = system([ROME, tool_call("look")], "Rain.", tools=[look])
    async with serve(app_of(made)) as url, client(url) as to:
        first = await to.responses.create(model="general", input="Rain?", tools=[WEATHER])
        (call,) = first.output
        assert call.type == "function_call"
        given: Any = [
            {"type": "function_call_output", "call_id": call.call_id, "output": "rain"},
            {"role": "user", "content": "In Oslo, too?"},
        ]
        last = await to.responses.create(model="general", input=given, previous_response_id=first.id)
        assert last.output_text == "Rain."
        assert last.id != first.id
    engine: Any = made.agent.config.model
    assert [one.role.value for one in engine.calls[1].messages] == ["user", "assistant", "tool", "user"]
    assert [one.text for one in engine.calls[1].messages[2].tool_results] == ["rain", "grey"]


async def test_a_response_is_asked_for_again_and_cancelled() -> None:
    made = system("Rain.", ROME)
    async with serve(app_of(made)) as url, client(url) as to:
        first = await to.responses.create(model="general", input="Rain?")
        again = await to.responses.retrieve(first.id)
        assert (again.id, again.output, again.status) == (first.id, first.output, "completed")
        waits = await to.responses.create(model="general", input="Rain?", tools=[WEATHER])
        assert (await to.responses.retrieve(waits.id)).output == waits.output
        assert (await to.responses.cancel(waits.id)).status == "cancelled"
        with pytest.raises(openai.BadRequestError):
            await to.responses.cancel(first.id)
        with pytest.raises(openai.NotFoundError):
            await to.responses.retrieve("resp_nobody")
        with pytest.raises(openai.BadRequestError) as caught:
            await to.responses.create(model="general", input="x", previous_response_id="resp_nobody")
        assert caught.value.code == "previous_response_not_found"


async def test_a_response_that_was_cut_off_is_incomplete() -> None:
    made = system(*[said(Text("Ra"), reason=FinishReason.LENGTH)] * 2)
    async with serve(app_of(made)) as url, client(url) as to:
        response = await to.responses.create(model="general", input="Rain?")
        assert response.incomplete_details is not None
        assert (response.status, response.incomplete_details.reason) == ("incomplete", "max_output_tokens")
        stream = await to.responses.create(model="general", input="Rain?", stream=True)
        assert [event.type async for event in stream][-1] == "response.incomplete"


async def test_a_failure_in_a_stream_is_told_in_it() -> None:
    made = system(said(Text("I look."), tool_call("look")), EngineError("down"), tools=[look])
    async with serve(app_of(made)) as url, client(url) as to:
        stream = await to.responses.create(model="general", input="Rain?", stream=True)
        *_, last = [event async for event in stream]
    assert last.type == "response.failed"
    assert last.response.error is not None
    assert (last.response.error.code, last.response.error.message) == ("server_error", "down")


IMPOSSIBLE: list[tuple[dict[str, Any], str]] = [
    ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
    ({"tools": [{"type": "file_search", "vector_store_ids": []}]}, "tools[0].type"),
    ({"background": True}, "background"),
    ({"conversation": "c"}, "conversation"),
    ({"input": []}, "input"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
    ({"input": [{"type": "function_call_output", "call_id": "x", "output": "y"}]}, "input"),
    (
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": {"type": 3}}}},
        "text.format.schema",
    ),
    ({"max_output_tokens": 0}, "max_output_tokens"),
    ({"previous_response_id": "x"}, "previous_response_id"),
    ({"tools": [{**WEATHER, "name": "a b"}]}, "tools[0].name"),
]


@pytest.mark.parametrize(("fields", "param"), IMPOSSIBLE)
async def test_what_cannot_be_is_refused_by_its_name(fields: dict[str, Any], param: str) -> None:
    asked: dict[str, Any] = {"model": "general", "input": "Rain?", **fields}
    async with serve(app_of(system("never"))) as url, client(url) as to:
        with pytest.raises(openai.BadRequestError) as caught:
            await to.responses.create(**asked)
    assert caught.value.param == param, caught.value


async def test_outputs_that_do_not_fit() -> None:
    made = system([ROME, OSLO], "Rain.")
    async with serve(app_of(made)) as url, client(url) as to:
        first = await to.responses.create(model="general", input="Rain?", tools=[WEATHER])
        call: Any = first.output[0]
        one: Any = {"type": "function_call_output", "call_id": call.call_id, "output": "rain"}
        other: Any = {**one, "call_id": "x"}
        for given, code in (([one], "missing_tool_output"), ([other], "invalid_value")):
            with pytest.raises(openai.BadRequestError) as caught:
                await to.responses.create(model="general", input=given, previous_response_id=first.id)
            assert (caught.value.param, caught.value.code) == ("input", code)


async def test_a_response_under_way_cannot_be_gone_on_from() -> None:
    journal = MemoryJournal()
    made = system("Rain.", journal=journal)
    async with serve(app_of(made)) as url, client(url) as to:
        first = await to.responses.create(model="general", input="Rain?")
        loop_id = first.id.removeprefix("resp_")
        events = await journal.read(loop_id)
        await journal.append("under-way", [*events[:1]], 0)
        with pytest.raises(openai.ConflictError):
            await to.responses.create(model="general", input="x", previous_response_id="resp_under-way")
        assert (await to.responses.retrieve("resp_under-way")).status == "in_progress"
        await send_signal(journal, "under-way", "cancel")


# Models and vectors


async def test_models() -> None:
    async with serve(app_of(system("hi"))) as url, client(url) as to:
        assert [one.id async for one in to.models.list()] == ["general"]
        assert (await to.models.retrieve("general")).owned_by == "flyball"
        with pytest.raises(openai.NotFoundError):
            await to.models.retrieve("nobody")


async def test_embeddings() -> None:
    async with serve(app_of(system("hi"))) as url, client(url) as to:
        given = await to.embeddings.create(model="vectors", input=["rain", "snow"])
        floats = await to.embeddings.create(model="vectors", input="rain", encoding_format="float")
        raw = await to.embeddings.with_raw_response.create(
            model="vectors", input="rain", encoding_format="base64"
        )
        assert [one.index for one in given.data] == [0, 1]
        assert given.data[0].embedding == pytest.approx(floats.data[0].embedding, abs=1e-6)
        numbers = array("f")
        told: Any = raw.http_response.json()["data"][0]["embedding"]
        numbers.frombytes(base64.b64decode(told))
        assert list(numbers) == pytest.approx(floats.data[0].embedding, abs=1e-6)
        assert given.usage.prompt_tokens > 0
        size = len(floats.data[0].embedding)
        await to.embeddings.create(model="vectors", input="rain", dimensions=size)
        bad: list[tuple[dict[str, Any], str]] = [
            ({"dimensions": size + 1}, "dimensions"),
            ({"input": [1, 2]}, "input"),
            ({"input": [[1, 2]]}, "input"),
            ({"input": ""}, "input"),
            ({"input": []}, "input"),
        ]
        for fields, param in bad:
            asked: dict[str, Any] = {"model": "vectors", "input": "rain", **fields}
            with pytest.raises(openai.BadRequestError) as caught:
                await to.embeddings.create(**asked)
            assert caught.value.param == param
        with pytest.raises(openai.NotFoundError):
            await to.embeddings.create(model="nobody", input="rain")

"""What the embedded engine does with a real model."""

from __future__ import annotations

import asyncio
import json
import threading
from pathlib import Path

import pytest
from msgspec.structs import replace

from flyball.constraint.protocol import AnswerParser, PlainProtocol, Rendered, text_messages
from flyball.core.errors import (
    ContextExceeded,
    GrammarMalformed,
    ModelRequestsForbidden,
    UserError,
)
from flyball.core.messages import FinishReason, Image, Thinking, ToolCall, assistant, system, user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.engines.llama_cpp.faults import LONGEST_TOKEN
from flyball.inference.permission import forbid_model_requests
from flyball.inference.profile import profile_for
from flyball.inference.request import OutputObject, Request
from flyball.inference.stream import PartEnd, PartStart, StreamEvent, TextDelta, ToolCallDelta, collect
from flyball.models import SMALL
from tests.engines.llama_cpp.asking import LONG, ask, idle, long_prompt, until
from tests.patience import PATIENCE

FRANCE = "What is the capital of France?"


async def test_it_answers_and_says_what_that_took(engine: LlamaCppEngine) -> None:
    result = await engine.infer(ask(FRANCE, 20))
    assert "Paris" in result.content
    assert result.message.model == SMALL.name
    assert result.finish_reason is FinishReason.STOP
    usage = result.usage
    assert usage.input_tokens > 5
    assert 1 < usage.output_tokens <= 20
    assert usage.context_tokens == usage.input_tokens + usage.output_tokens
    assert usage.context_window == 2048
    assert usage.tokens_per_second > 0


async def test_a_streamed_answer_comes_in_pieces_and_is_the_same(engine: LlamaCppEngine) -> None:
    request = ask(FRANCE, 20)
    await engine.infer(request)  # from now on it finds the prompt read, and does the same sums
    events = [event async for event in engine.stream(request)]
    pieces = [event.text for event in events if isinstance(event, TextDelta)]
    assert len(pieces) > 2
    assert "".join(pieces) == (await engine.infer(request)).content


async def test_what_two_prompts_share_is_read_once(engine: LlamaCppEngine) -> None:
    rules = system("You are the keeper of a lighthouse. " * 6)
    settings = ModelSettings(max_tokens=2, temperature=0.0)
    first = await engine.infer(Request((rules, user("Hello")), settings=settings))
    second = await engine.infer(Request((rules, user("Good morning")), settings=settings))
    assert second.usage.cache_read_tokens > 40
    assert second.usage.cache_read_tokens < second.usage.input_tokens
    assert first.usage.input_tokens > 40


async def test_settings_reach_the_model(engine: LlamaCppEngine) -> None:
    cut = await engine.infer(ask("Tell me a story.", 3))
    assert cut.finish_reason is FinishReason.LENGTH
    assert cut.usage.output_tokens == 3
    stopped = await engine.infer(
        replace(ask(FRANCE), settings=ModelSettings(temperature=0.0, max_tokens=20, stop=("Paris",)))
    )
    assert stopped.content == "The capital of France is "
    assert stopped.finish_reason is FinishReason.STOP
    warm = ModelSettings(max_tokens=12, temperature=1.5, top_p=0.9, seed=7)
    again = [await engine.infer(Request((user("Invent a word."),), settings=warm)) for _ in range(2)]
    assert again[0].content == again[1].content


async def test_a_grammar_holds_the_model(engine: LlamaCppEngine) -> None:
    result = await engine.infer(ask("What is your favourite colour?", grammar='root ::= "mauve" | "ochre"'))
    assert result.content in {"mauve", "ochre"}
    assert result.finish_reason is FinishReason.STOP


async def test_a_schema_holds_the_model(engine: LlamaCppEngine) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 12}, "size": {"enum": ["small", "large"]}},
        "required": ["city", "size"],
        "additionalProperties": False,
    }
    result = await engine.infer(ask("Describe Paris.", 40, output=OutputObject(schema)))
    answer = json.loads(result.content)
    assert answer.keys() == {"city", "size"}
    assert answer["size"] in {"small", "large"}


async def test_a_conversation_is_sent_whole(engine: LlamaCppEngine) -> None:
    history = (user("My name is Zebedee."), assistant("Hello Zebedee."), user("What is my name?"))
    prompt = await engine.prompt_of(Request(history))
    places = [prompt.index(message.text) for message in history]
    assert places == sorted(places)
    assert (await engine.infer(Request(history, settings=ModelSettings(max_tokens=4)))).content


async def test_calls_beyond_the_slots_wait_their_turn(engine: LlamaCppEngine) -> None:
    results = await asyncio.gather(*[engine.infer(ask(f"Count to {count}.", 4)) for count in range(2, 7)])
    assert all(result.content for result in results)
    assert engine.open_calls == 0


async def test_as_many_calls_as_slots_are_answered_together(engine: LlamaCppEngine) -> None:
    streams = [engine.stream(ask(f"Tell me about {what}.", 400, options=LONG)) for what in ("tea", "ink")]
    try:
        for stream in streams:
            await anext(stream)
        assert await engine.busy_slots() == 2
        assert engine.open_calls == 2
    finally:
        for stream in streams:
            await stream.aclose()
    await until(lambda: idle(engine))


async def test_vectors_of_like_texts_are_alike(engine: LlamaCppEngine) -> None:
    one, like, other = await engine.embed(
        ["The cat sat on the mat.", "A cat is sitting on a mat.", "Quarterly revenue rose by 4%."]
    )

    def alike(a: list[float], b: list[float]) -> float:
        return sum(x * y for x, y in zip(a, b, strict=True))

    assert alike(one, one) == pytest.approx(1.0, abs=1e-3)
    assert alike(one, like) > alike(one, other)
    assert await engine.embed([]) == []
    with pytest.raises(ContextExceeded) as caught:
        await engine.embed([long_prompt(3000)])
    assert caught.value.details["prompt_tokens"] > 3000 > caught.value.details["context_window"]


async def test_texts_can_be_counted_and_prompts_be_seen(engine: LlamaCppEngine) -> None:
    assert len(await engine.tokenize("hello world")) == 2
    prompt = await engine.prompt_of(Request((system("Be brief."), user("Hello"))))
    assert prompt.index("Be brief.") < prompt.index("Hello")
    assert prompt.endswith("assistant\n")


async def test_a_prompt_that_cannot_fit_is_refused_before_anything_is_loaded(tiny: Path) -> None:
    engine = LlamaCppEngine(tiny, context=256)
    length = 256 * LONGEST_TOKEN + 1
    with pytest.raises(ContextExceeded, match=f"has {length:,} characters and tiny takes 256 ") as caught:
        await engine.infer(Request((user("x" * length),)))
    assert caught.value.details["prompt_tokens"] == caught.value.details["context_window"] == 256
    assert engine._host.running is None  # pyright: ignore[reportPrivateUsage]


async def test_a_prompt_that_is_too_long_is_told_with_numbers(engine: LlamaCppEngine) -> None:
    with pytest.raises(ContextExceeded, match="shorten the history") as caught:
        await engine.infer(ask(long_prompt(2500)))
    assert caught.value.details["prompt_tokens"] > 2500
    assert caught.value.details["context_window"] == 2048
    assert caught.value.code == "INFERENCE_CONTEXT_EXCEEDED"


async def test_a_grammar_that_is_none_is_told(engine: LlamaCppEngine) -> None:
    with pytest.raises(GrammarMalformed, match="line 1, column 1: there is no rule 'root'"):
        await engine.infer(ask("Hello", grammar='answer ::= "a"'))
    with pytest.raises(GrammarMalformed, match=r"line 1, column 10: this .* is not closed"):
        await engine.infer(ask("Hello", grammar="root ::= ("))
    hosts = (engine._host, engine._embedder)  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(GrammarMalformed, match=r"llama\.cpp"):
        await LlamaCppEngine(SMALL, protocol=Unchecked(), hosts=hosts).infer(ask("Hello"))
    assert (await engine.infer(ask("Hello"))).content


class Unchecked(PlainProtocol):
    """A protocol that gives llama.cpp a grammar which is none."""

    def render(self, request: Request, choice: str | None = None) -> Rendered:
        return Rendered(text_messages(request.messages), "root ::= (")


async def test_what_the_server_does_not_take_is_told(engine: LlamaCppEngine) -> None:
    with pytest.raises(UserError, match="cannot take this request"):
        await engine.infer(ask("Hello", options={"temperature": "hot"}))


async def test_no_model_is_asked_where_that_is_forbidden(engine: LlamaCppEngine) -> None:
    with forbid_model_requests():
        for forbidden in (
            engine.infer(ask("Hello")),
            engine.embed(["Hello"]),
            engine.tokenize("Hello"),
            engine.load(),
        ):
            with pytest.raises(ModelRequestsForbidden):
                await forbidden


class Weather(PlainProtocol):
    """A protocol for one tool: the grammar is its arguments, and whatever comes is a call of it."""

    @property
    def tools(self) -> bool:
        return True

    def render(self, request: Request, choice: str | None = None) -> Rendered:
        return Rendered(text_messages(request.messages), r'root ::= "{\"city\": \"" [A-Za-z ]{1,12} "\"}"')

    def parser(self, request: Request, first: int, choice: str | None = None) -> AnswerParser:
        return WeatherParser(first, request.tools[0].name)


class WeatherParser:
    def __init__(self, index: int, name: str) -> None:
        self._start: list[StreamEvent] = [PartStart(index, ToolCall("call-1", name, ""))]
        self._index = index

    def feed(self, text: str) -> list[StreamEvent]:
        started, self._start = self._start, []
        return [*started, ToolCallDelta(self._index, text)]

    def close(self, reason: FinishReason) -> list[StreamEvent]:
        return [PartEnd(self._index)]


async def test_a_protocol_for_tools_can_be_plugged_in(engine: LlamaCppEngine) -> None:
    hosts = (engine._host, engine._embedder)  # pyright: ignore[reportPrivateUsage]
    calling = LlamaCppEngine(SMALL, protocol=Weather(), hosts=hosts)
    tool = ToolDefinition("weather", {"type": "object"})
    result = await calling.infer(ask("How is the weather in Paris?", 30, tools=(tool,)))
    assert result.finish_reason is FinishReason.TOOL_CALL
    assert result.tool_calls[0].name == "weather"
    assert result.tool_calls[0].arguments.keys() == {"city"}
    assert calling.profile.tools
    await calling.aclose()
    assert (await engine.infer(ask("Hello", 2))).content


CITY = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 20}}, "required": ["city"]}
WEATHER = ToolDefinition("weather", CITY, "Get the current weather in a city.")
CLOCK = ToolDefinition("clock", {"type": "object", "properties": {}}, "Tell the time.")


async def test_which_tools_are_needed_is_asked_first_and_recorded(engine: LlamaCppEngine) -> None:
    result = await engine.infer(ask("How is the weather in Paris?", 60, tools=(WEATHER, CLOCK)))
    assert result.message.extra is not None
    names = str(result.message.extra["choice"])
    calls = [call.name for call in result.tool_calls]
    assert len(calls) == (0 if names == "none" else len(names.split(", ")))
    assert set(calls) <= {"weather", "clock"}
    assert bool(calls) != bool(result.content)
    # The question's tokens count too: its examples alone are longer than what was asked for.
    assert result.usage.input_tokens > 150


async def test_a_call_that_must_be_made_is_made_and_valid(engine: LlamaCppEngine) -> None:
    choice = ToolChoice("function", "weather")
    request = ask("How is the weather in Paris?", 60, tools=(WEATHER, CLOCK), tool_choice=choice)
    result = await engine.infer(request)
    assert {call.name for call in result.tool_calls} == {"weather"}
    assert result.tool_calls[0].arguments.keys() == {"city"}
    assert set(result.message.extra or {}) == {"sent"}


async def test_tools_need_a_protocol_and_pictures_another_model(engine: LlamaCppEngine) -> None:
    hosts = (engine._host, engine._embedder)  # pyright: ignore[reportPrivateUsage]
    plain = LlamaCppEngine(SMALL, protocol=PlainProtocol(), hosts=hosts)
    tool = ToolDefinition("look", {"type": "object"})
    with pytest.raises(UserError, match="no protocol for tools"):
        await plain.infer(ask("Hello", tools=(tool,)))
    with pytest.raises(UserError, match="text only"):
        await engine.infer(Request((user([Image("https://example.org/a.png")]),)))
    assert engine.profile.tools
    assert not plain.profile.tools


async def test_it_says_what_it_is_before_and_after_it_is_loaded(engine: LlamaCppEngine) -> None:
    fresh = LlamaCppEngine(SMALL.name)
    assert (fresh.model_info().name, fresh.model_info().context_window) == (SMALL.name, 8192)
    assert LlamaCppEngine().model_info().context_window == 8192
    ready = await engine.load()
    assert engine.model_info().context_window == ready.context == 2048
    profile = profile_for(engine)
    assert (profile.grammar, profile.native_schema, profile.context_window) == (True, True, 2048)


def test_one_engine_serves_one_event_loop_after_another(engine: LlamaCppEngine) -> None:
    request = ask(FRANCE, 4)
    assert asyncio.run(engine.infer(request)).content == asyncio.run(engine.infer(request)).content


def test_one_engine_serves_event_loops_in_several_threads(engine: LlamaCppEngine) -> None:
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(asyncio.run(engine.infer(ask(FRANCE, 4))).content))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(answers) == 3


def test_a_loop_that_is_closed_over_a_call_hurts_nobody(engine: LlamaCppEngine) -> None:
    async def leave() -> None:
        stream = engine.stream(ask("Tell me a story.", 200, options=LONG))
        await anext(stream)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(leave())
    assert asyncio.run(engine.infer(ask(FRANCE, 4))).content
    assert engine.open_calls == 0


async def test_an_empty_answer_is_an_answer(engine: LlamaCppEngine) -> None:
    result = await collect(engine.stream(ask("Hello", grammar='root ::= ""')))
    assert result.content == ""
    assert len(result.message.parts) == 1


async def test_thoughts_of_the_past_are_not_sent(engine: LlamaCppEngine) -> None:
    history = (user("Hi"), assistant([Thinking("a secret thought"), "Hello"]), user("And?"))
    assert "secret" not in await engine.prompt_of(Request(history))

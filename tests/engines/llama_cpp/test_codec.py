"""Requests become what llama.cpp takes, and its chunks the events of an answer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from flyball.constraint.protocol import (
    AnswerParser,
    PlainProtocol,
    Rendered,
    TextParser,
    text_messages,
)
from flyball.core.errors import GrammarMalformed, UserError
from flyball.core.messages import (
    FinishReason,
    Message,
    Retry,
    Role,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    assistant,
    system,
    tool_results,
    user,
)
from flyball.core.settings import ModelSettings
from flyball.core.usage import Usage
from flyball.engines.llama_cpp.codec import MAX_TOKENS, AnswerReader, call_body, usage_of
from flyball.engines.llama_cpp.options import LONGEST, Located, Options, cores
from flyball.inference.request import OutputObject, Request, Result
from flyball.inference.stream import Assembler, PartEnd, PartStart, StreamEvent, ToolCallDelta

HELLO = Request((user("Hello"),))


def body(request: Request) -> dict[str, Any]:
    return call_body(request, PlainProtocol().render(request))


def test_a_bare_request_leaves_all_but_length_and_temperature_to_the_model() -> None:
    assert body(HELLO) == {
        "messages": [{"role": "user", "content": "Hello"}],
        "max_tokens": MAX_TOKENS,
        "temperature": 0.2,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        "cache_prompt": True,
    }


def test_settings_are_put_in_llama_cpps_words() -> None:
    settings = ModelSettings(
        max_tokens=5,
        temperature=0.0,
        top_p=0.5,
        seed=0,
        stop=("a", "b"),
        thinking=False,
        reasoning_effort="low",
        options={"min_p": 0.1, "stream": False},
    )
    made = body(Request((user("Hello"),), settings=settings))
    assert (made["max_tokens"], made["temperature"], made["top_p"], made["seed"]) == (5, 0.0, 0.5, 0)
    assert made["stop"] == ["a", "b"]
    assert made["chat_template_kwargs"] == {"enable_thinking": False, "reasoning_effort": "low"}
    assert made["min_p"] == 0.1
    assert made["stream"] is True


def test_a_thinking_budget_takes_the_temperature_away() -> None:
    def temperature(**settings: Any) -> Any:
        return body(Request((user("Hello"),), settings=ModelSettings(**settings)))["temperature"]

    assert temperature(temperature=0.9) == 0.9
    assert temperature(temperature=0.9, thinking_budget=1000) == temperature()


def test_a_grammar_goes_before_a_schema() -> None:
    output = OutputObject({"type": "boolean"})
    assert body(Request((user("Hello"),), output=output, grammar='root ::= "x"'))["grammar"] == 'root ::= "x"'
    assert "root" in body(Request((user("Hello"),), output=output))["grammar"]


@pytest.mark.parametrize(
    ("grammar", "wrong"),
    [
        ("x", "line 1, column 2: '::=' should follow"),
        ('answer ::= "root ::= "', "line 1, column 1: there is no rule 'root'"),
        ("roots ::= [a]", "line 1, column 1: there is no rule 'root'"),
        ("%llguidance {}\nstart: /a/", "line 1, column 1"),
    ],
    ids=["no rule", "root in a text", "another name", "another kind"],
)
def test_a_grammar_that_is_none_is_refused_with_its_place(grammar: str, wrong: str) -> None:
    with pytest.raises(GrammarMalformed, match=wrong):
        body(Request((user("Hello"),), grammar=grammar))


def test_what_the_protocol_says_goes_over_the_settings() -> None:
    rendered = Rendered(({"role": "user", "content": "x"},), body={"stop": ["!"]})
    made = call_body(Request((user("x"),), settings=ModelSettings(stop=("?",))), rendered)
    assert made["stop"] == ["!"]


def test_messages_become_text_and_nobody_speaks_twice_in_a_row() -> None:
    call = ToolCall("1", "look", '{"at": 1}')
    messages = (
        system("Rule one."),
        user("Look."),
        assistant([Thinking("hm"), "Well."], call),
        tool_results([ToolResult("1", "look", {"seen": 2}), ToolResult("2", "peek", error="blind")]),
        Message(Role.USER, (Retry("Again."),)),
        system("Rule two."),
    )
    assert text_messages(messages) == (
        {"role": "system", "content": "Rule one.\n\nRule two."},
        {"role": "user", "content": "Look."},
        {
            "role": "assistant",
            "content": 'Well.\n\n<tool_call>\n{"name": "look", "arguments": {"at": 1}}\n</tool_call>',
        },
        {
            "role": "user",
            "content": '<tool_response>\n{"seen":2}\n</tool_response>\n\n'
            "<tool_response>\nblind\n</tool_response>\n\nAgain.",
        },
    )
    with pytest.raises(UserError, match="no messages"):
        text_messages(())


def read(protocol: Any, *chunks: dict[str, Any]) -> Result:
    reader = AnswerReader(HELLO, protocol, model="m", context=100, sent="f00d")
    assembler = Assembler()
    for chunk in chunks:
        for event in reader.feed(chunk):
            assembler.feed(event)
    for event in reader.close():
        assembler.feed(event)
    return assembler.result()


USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "total_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 1},
}


def test_chunks_make_an_answer() -> None:
    timings = {"predicted_n": 2, "predicted_per_second": 12.345}
    chunks = [{"text": "Hel"}, {"text": "lo"}, {"reason": "length"}, {"usage": USAGE, "timings": timings}]
    message = read(PlainProtocol(), *chunks).message
    assert message.parts == (Text("Hello"),)
    assert message.finish_reason is FinishReason.LENGTH
    assert message.model == "m"
    assert message.usage == Usage(3, 2, 0, 1, 0, 5, 100, 12.35)


def test_thinking_comes_before_the_text() -> None:
    message = read(
        PlainProtocol(), {"thinking": "h"}, {"thinking": "m"}, {"text": "Yes"}, {"thinking": "late"}
    ).message
    assert message.parts == (Thinking("hm"), Text("Yes"))
    assert read(PlainProtocol(), {"thinking": "hm"}).message.parts == (Thinking("hm"), Text(""))


def test_an_answer_without_text_has_an_empty_one() -> None:
    assert read(PlainProtocol(), {"reason": "stop"}).message.parts == (Text(""),)


def test_the_speed_of_one_token_is_not_told() -> None:
    usage = usage_of(USAGE, {"predicted_n": 1, "predicted_per_second": 1e6}, 10)
    assert usage.tokens_per_second == 0.0
    assert usage_of({}, {}, 10) == Usage(context_window=10)


class Calls(PlainProtocol):
    """Takes every text for the arguments of a call."""

    class Parser(TextParser):
        def feed(self, text: str) -> Iterable[StreamEvent]:
            return (PartStart(0, ToolCall("1", "look", "")), ToolCallDelta(0, text))

        def close(self, reason: FinishReason) -> Iterable[StreamEvent]:
            return (PartEnd(0),)

    def parser(self, request: Request, first: int, choice: str | None = None) -> AnswerParser:
        return self.Parser(first)


def test_an_answer_that_calls_a_tool_ends_with_a_call_unless_it_was_cut() -> None:
    whole = read(Calls(), {"text": "{}"}, {"reason": "stop"})
    assert whole.message.finish_reason is FinishReason.TOOL_CALL
    assert whole.tool_calls[0].name == "look"
    assert read(Calls(), {"text": "{"}, {"reason": "length"}).message.finish_reason is FinishReason.LENGTH


def test_what_is_loaded_follows_what_the_model_was_trained_for() -> None:
    def load(options: Options, trained: int) -> tuple[int, int, tuple[int, int]]:
        made = options.load(Located(__import__("pathlib").Path("x"), "x", trained))
        return made["context"], made["parallel"], (made["threads"], made["prompt_threads"])

    threads = max(cores() - 1, 1), cores()
    slots = 2 if cores() <= 2 else 4
    assert load(Options(), 32_768) == (LONGEST, slots, threads)
    assert load(Options(), 2048) == (2048, slots, threads)
    assert load(Options(), 0) == (LONGEST, slots, threads)
    assert load(Options(16_000, 3, 7), 32_768) == (16_000, 3, (7, 7))
    assert load(Options(16_000), 4096)[0] == 4096
    assert load(Options(embedding=True), 32_768)[:2] == (2048, 1)

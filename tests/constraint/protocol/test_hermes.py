"""Tools put to a model that only writes text: the question, the calls, the answer."""

from __future__ import annotations

import pytest

from flyball.constraint.grammar import check_grammar
from flyball.constraint.protocol import HermesProtocol, Rendered, ToolProtocol
from flyball.core.errors import ToolNotFound
from flyball.core.messages import Message, ResultKind, Role, ToolCall, ToolResult, assistant, system, user
from flyball.core.tools import ToolChoice, ToolDefinition, ToolKind
from flyball.inference.request import OutputObject, Request

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolDefinition("weather", CITY, "Get the weather in a city. It is that of now.")
MAIL = ToolDefinition("mail", CITY, "Send a mail.")
HELLO = (system("Be brief."), user("Rain in Rome?"))


def ask(*messages: Message, tools: tuple[ToolDefinition, ...] = (WEATHER, MAIL), **more: object) -> Request:
    return Request(messages or HELLO, tools, **more)  # pyright: ignore[reportArgumentType]


def called(name: str, *, status: ResultKind = ResultKind.RETURN, error: str | None = None) -> list[Message]:
    result = ToolResult("c1", name, None if error else "wet", error, status)
    return [assistant("", ToolCall("c1", name, '{"city": "Rome"}')), Message(Role.TOOL, (result,))]


def offered(asked: Rendered | None) -> str:
    """The list of tools in a question: the last one, since an example has another."""
    assert asked is not None
    return [m["content"] for m in asked.messages if m["content"].startswith("The tools are now:")][-1]


def test_it_is_a_protocol_for_tools() -> None:
    protocol: ToolProtocol = HermesProtocol()
    assert protocol.tools
    assert isinstance(protocol, ToolProtocol)


def test_first_it_is_asked_which_tools_are_needed() -> None:
    asked = HermesProtocol().question(ask())
    assert asked is not None
    assert asked.messages[0]["role"] == "system"
    assert "- weather: Get the weather in a city. It is that of now." in offered(asked)
    wishes = [m["content"] for m in asked.messages if m["role"] == "user"]
    answers = [m["content"] for m in asked.messages if m["role"] == "assistant"]
    assert {"I want you to get the weather in a city", "Can you get the weather in a city?"} <= set(wishes)
    assert wishes[-1] == "Rain in Rome?"
    assert answers.count("none") == 8
    assert {"weather", "mail"} <= set(answers)
    assert asked.grammar is not None
    check_grammar(asked.grammar)
    assert asked.body is not None
    assert asked.body["logit_bias"] == [["none", -3.5]]


@pytest.mark.parametrize(
    "request_",
    [
        ask(tools=()),
        ask(allows_text=False),
        ask(tool_choice=ToolChoice("required")),
        ask(tool_choice=ToolChoice("function", "mail")),
        ask(tool_choice=ToolChoice("none")),
        ask(*HELLO, *called("weather"), tools=(WEATHER,)),
    ],
    ids=["no tools", "only calls", "required", "forced", "none", "all have answered"],
)
def test_where_nothing_is_open_nothing_is_asked(request_: Request) -> None:
    assert HermesProtocol().question(request_) is None


def test_the_longest_names_are_not_cut() -> None:
    asked = HermesProtocol().question(ask(tools=(ToolDefinition("ü" * 64, CITY, "Do it."),)))
    assert asked is not None
    assert asked.body is not None
    assert asked.body["max_tokens"] >= 4 * len(("ü" * 64 + ", ").encode())


def test_a_choice_that_is_not_on_offer_is_refused() -> None:
    with pytest.raises(ToolNotFound, match="'mai' was chosen, and is not on offer"):
        HermesProtocol().render(ask(), "weather, mai")


def test_many_tools_have_one_example_each() -> None:
    many = tuple(ToolDefinition(f"tool_{n}", CITY, f"Do number {n}.") for n in range(7))
    asked = HermesProtocol().question(ask(tools=many))
    assert asked is not None
    assert [m["content"] for m in asked.messages].count("tool_3") == 1


def test_a_tool_that_has_answered_is_not_on_offer_again() -> None:
    after = ask(*HELLO, *called("weather"))
    asked = HermesProtocol().question(after)
    assert asked is not None
    assert "- weather" not in offered(asked)
    assert "logit_bias" not in (asked.body or {})
    again = HermesProtocol(again=True).question(after)
    assert again is not None
    assert "- weather" in offered(again)


@pytest.mark.parametrize(
    "failed", [{"error": "no line"}, {"status": ResultKind.RETRY}], ids=["error", "retry"]
)
def test_a_tool_that_failed_may_be_called_again(failed: dict[str, object]) -> None:
    asked = HermesProtocol().question(ask(*HELLO, *called("weather", **failed)))  # pyright: ignore[reportArgumentType]
    assert asked is not None
    assert "- weather" in offered(asked)


def test_new_words_of_the_user_offer_every_tool_anew() -> None:
    asked = HermesProtocol().question(
        ask(*HELLO, *called("weather"), assistant("Yes."), user("And in Oslo?"))
    )
    assert asked is not None
    assert "- weather" in offered(asked)
    assert [message["content"] for message in asked.messages[-3:]] == [
        "Rain in Rome?",
        "weather",
        "And in Oslo?",
    ]


def test_where_something_must_be_called_one_that_has_answered_comes_last() -> None:
    final = ToolDefinition("final_result", CITY, kind=ToolKind.OUTPUT)
    after = ask(*HELLO, *called("weather"), tools=(WEATHER, final), allows_text=False)
    grammar = HermesProtocol().render(after).grammar
    assert grammar is not None
    assert "final_result" in grammar
    assert "weather" not in grammar
    alone = ask(*HELLO, *called("weather"), tools=(WEATHER,), tool_choice=ToolChoice("required"))
    assert "weather" in (HermesProtocol().render(alone).grammar or "")


def test_calls_are_put_in_the_words_the_model_was_taught() -> None:
    rendered = HermesProtocol().render(ask(), "weather")
    assert rendered.messages[0]["content"].startswith("Be brief.\n\n# Tools")
    assert '"name":"weather"' in rendered.messages[0]["content"]
    assert rendered.grammar is not None
    assert "<tool_call>" in rendered.grammar
    check_grammar(rendered.grammar)


def test_as_many_calls_as_were_chosen() -> None:
    protocol = HermesProtocol()
    one, two = protocol.render(ask(), "weather").grammar, protocol.render(ask(), "weather, weather").grammar
    assert one is not None
    assert one != two
    assert "mail" not in one
    forced = protocol.render(ask(tool_choice=ToolChoice("function", "mail")))
    assert forced.grammar is not None
    assert "weather" not in forced.grammar


def test_an_answer_says_nothing_of_calls() -> None:
    rendered = HermesProtocol().render(ask(*HELLO, *called("weather")), "none")
    assert rendered.grammar is None
    assert rendered.messages == (
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Rain in Rome?\n\nweather: wet"},
    )


def test_a_typed_answer_has_its_schema_in_the_prompt_and_in_the_grammar() -> None:
    rendered = HermesProtocol().render(ask(output=OutputObject(CITY)), "none")
    assert rendered.messages[0]["content"].endswith('Now the form is:\n{"city": <string>}')
    assert rendered.grammar is not None
    check_grammar(rendered.grammar)


def test_output_tools_stay_where_no_other_may_be_called() -> None:
    final = ToolDefinition("final_result", CITY, kind=ToolKind.OUTPUT)
    request = ask(tools=(WEATHER, final), tool_choice=ToolChoice("none"), allows_text=False)
    grammar = HermesProtocol().render(request).grammar
    assert grammar is not None
    assert "final_result" in grammar
    assert "weather" not in grammar


def test_a_tool_that_must_be_called_has_to_be_there() -> None:
    with pytest.raises(ToolNotFound, match="'fly'"):
        HermesProtocol().render(ask(tool_choice=ToolChoice("function", "fly")))

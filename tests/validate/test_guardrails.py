"""Guardrails: what they let through, what they refuse, and how that is told."""

from __future__ import annotations

from typing import Any

import pytest

from flyball import Agent, ContentFilter, InputGuardrail, MaxPromptLength, MaxTurns, RunContext, TurnGuardrail
from flyball.core.errors import GuardrailError, UserError
from flyball.core.events import Admitted, TurnPrepared
from flyball.core.messages import Document, Image, Text
from flyball.inference.answers import tool_call as call
from flyball.testing.split import SplitDriver
from tests.orchestrate.models import Script


async def refusal(*features: Any, prompt: Any = "Tell me a SECRET.") -> GuardrailError:
    model = Script("never")
    with pytest.raises(GuardrailError) as caught:
        await Agent(model, features=features).run(prompt)
    assert not model.calls, "the model must not see it"
    return caught.value


async def test_a_filter_finds_its_texts_in_any_case() -> None:
    error = await refusal(ContentFilter("password", "straße", "secret"))
    assert str(error) == "the prompt holds 'secret', which is not allowed"
    assert error.details == {"blocked": "secret", "guardrail": "content_filter"}
    assert not error.retryable
    assert (await refusal(ContentFilter("straße"), prompt="An der STRASSE 1")).details["blocked"] == "straße"


async def test_a_prompt_may_have_so_many_characters() -> None:
    agent = Agent(Script("ok"), features=[MaxPromptLength(5)])
    assert (await agent.run("12345")).output == "ok"
    error = await refusal(MaxPromptLength(5), prompt=["1234", Image("https://example.org/a.png"), "56"])
    assert "6 characters, and 5 are allowed" in str(error)


@pytest.mark.parametrize(
    "guardrail",
    [ContentFilter("secret", name="mine"), MaxPromptLength(1, "mine"), MaxTurns(1, name="mine")],
    ids=lambda guardrail: type(guardrail).__name__,
)
async def test_one_of_two_of_a_kind_may_have_a_name_of_its_own(guardrail: Any) -> None:
    asked = Script(call("nobody", {}), "never")
    agent = Agent(asked, features=[ContentFilter("bomb"), MaxTurns(9), guardrail])
    with pytest.raises(GuardrailError) as caught:
        await agent.run("a secret")
    assert caught.value.guardrail_name == "mine"


async def test_what_a_guardrail_raises_is_its_refusal() -> None:
    @InputGuardrail
    def broken(_: RunContext[Any], prompt: str) -> str:
        return prompt[999]

    error = await refusal(broken)
    assert str(error).startswith("the guardrail 'broken' refused: IndexError")
    assert error.details == {"guardrail": "broken"}


async def test_a_refusal_that_utf8_cannot_hold_is_recorded_all_the_same() -> None:
    def refuse(*_: Any) -> None:
        raise GuardrailError("no \ud800!", why="\ud800")

    for guardrail in (InputGuardrail(refuse), TurnGuardrail(refuse)):
        with pytest.raises(GuardrailError, match=r"no .*!"):
            await Agent(Script("never"), features=[guardrail]).run("go", runtime=SplitDriver())


async def test_the_first_that_refuses_decides_and_the_others_are_not_asked() -> None:
    asked: list[str] = []

    def one(name: str, *, refuses: bool = False) -> InputGuardrail:
        def check(_: RunContext[Any], prompt: str) -> str:
            asked.append(f"{name}: {prompt}")
            if refuses:
                raise GuardrailError("no", why=name)
            return f"{prompt}{name}"

        return InputGuardrail(check, name)

    error = await refusal(one("a"), one("b", refuses=True), one("c"), prompt="x")
    assert asked == ["a: x", "b: xa"]
    assert error.details == {"why": "b", "guardrail": "b"}


async def test_a_changed_text_takes_the_place_of_the_first_and_other_parts_stay() -> None:
    model, image, paper = (
        Script("ok"),
        Image("https://example.org/a.png"),
        Document("https://example.org/b.pdf"),
    )

    @InputGuardrail
    def loud(_: RunContext[Any], prompt: str) -> str:
        return prompt.upper()

    agent = Agent(model, features=[loud])
    result = await agent.run([image, "one", paper, "two"])
    assert model.last.messages[-1].parts == (image, Text("ONETWO"), paper)
    (admitted,) = [event for event in await result.events() if isinstance(event, Admitted)]
    assert admitted.passed == ("loud",)


@pytest.mark.parametrize("given", ["", "  ", 3, b"x"], ids=repr)
async def test_a_guardrail_gives_a_text_or_nothing(given: Any) -> None:
    agent = Agent(Script("never"), features=[InputGuardrail(lambda *_: given, "odd")])
    with pytest.raises(UserError, match=r"guardrail 'odd' gave .*must give the prompt's text"):
        await agent.run("go")


async def test_a_turn_too_many_is_not_made() -> None:
    model = Script(call("nope"), call("nope"), "never")
    with pytest.raises(GuardrailError, match="2 model calls, and 2 are allowed") as caught:
        await Agent(model, retries=5, features=[MaxTurns(2)]).run("go")
    assert model.calls == 2
    prepared = [event for event in await caught.value.partial.events() if isinstance(event, TurnPrepared)]
    assert [event.passed for event in prepared] == [("max_turns",), ("max_turns",), ()]


async def test_a_turn_guardrail_sees_what_would_be_sent() -> None:
    seen: list[list[str]] = []

    @TurnGuardrail
    async def look(_: RunContext[Any], messages: Any) -> None:
        seen.append([message.text for message in messages])

    await Agent(Script("ok"), instructions="Be brief.", features=[look]).run("go")
    assert seen == [["Be brief.", "go"]]


@pytest.mark.parametrize(
    "make",
    [
        ContentFilter,
        lambda: ContentFilter("a", ""),
        lambda: MaxPromptLength(0),
        lambda: MaxTurns(turns=True),
        lambda: MaxTurns(1.5),  # pyright: ignore[reportArgumentType]
        lambda: InputGuardrail("no function"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_what_cannot_be_is_told_at_once(make: Any) -> None:
    with pytest.raises(UserError):
        make()


@pytest.mark.parametrize(
    "given",
    [MaxTurns(1), 3, [MaxTurns], ["max_turns"], [refusal]],
    ids=["one", "a number", "a class", "a name", "a function"],
)
def test_features_are_several_features(given: Any) -> None:
    with pytest.raises(UserError, match="features="):
        Agent(Script("ok"), features=given)

"""What the model was given can be told again from the request and the answer, word for word."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from flyball.constraint.protocol import HermesProtocol, PlainProtocol
from flyball.core.errors import UserError
from flyball.core.messages import Image, assistant, user
from flyball.core.tools import ToolChoice, ToolDefinition
from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.engines.llama_cpp.retelling import retold
from flyball.inference.registry import resolve_engine
from flyball.inference.rendered import Prompt, Renders
from flyball.inference.request import OutputObject, Request
from tests.engines.llama_cpp.asking import ask

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
WEATHER = ToolDefinition("weather", CITY, "Get the current weather in a city.")
TOOLS: dict[str, Any] = {"tools": (WEATHER,)}
REQUESTS: dict[str, dict[str, Any]] = {
    "words": {},
    "a schema": {"output": OutputObject({"enum": ["yes", "no"]})},
    "a grammar": {"grammar": 'root ::= "yes"'},
    "tools": TOOLS,
    "a call that must be made": TOOLS | {"tool_choice": ToolChoice("function", "weather")},
}


@pytest.fixture
async def engine(tiny: Path) -> AsyncGenerator[LlamaCppEngine]:
    """What is answered does not matter here: this model knows nothing."""
    engine = LlamaCppEngine(tiny, parallel=1)
    yield engine
    await engine.aclose()


@pytest.mark.parametrize("name", REQUESTS)
async def test_what_is_told_is_what_was_sent(
    engine: LlamaCppEngine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    sent: list[dict[str, Any]] = []
    host = engine._host  # pyright: ignore[reportPrivateUsage]
    ask_it = host.ask

    def recording(op: str, body: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        assert op == "chat"
        sent.append(body)
        return ask_it(op, body)

    monkeypatch.setattr(host, "ask", recording)
    request = ask("How is the weather in Paris?", 16, **REQUESTS[name])
    result = await engine.infer(request)
    told = retold(HermesProtocol(), request, result.message)
    assert [body_of(prompt) for prompt in told] == sent
    assert [prompt.exact for prompt in told] == [True] * len(sent)
    other = retold(HermesProtocol(), ask("And in Oslo?", 16, **REQUESTS[name]), result.message)
    assert {prompt.exact for prompt in other} == {False}
    assert len(sent) == (2 if name == "tools" else 1)


def body_of(prompt: Prompt) -> dict[str, Any]:
    body = {"messages": list(prompt.messages), **(prompt.settings or {})}
    return body if prompt.grammar is None else {**body, "grammar": prompt.grammar}


def test_the_question_and_what_it_came_to() -> None:
    answer = assistant("It rains.")
    request = ask("How is the weather in Paris?", **TOOLS)
    question, turn = retold(HermesProtocol(), request, _with(answer, {"choice": "weather"}))
    assert (question.answer, question.decides, question.exact) == ("weather", True, None)
    assert question.messages[-1] == {"role": "user", "content": "How is the weather in Paris?"}
    assert question.grammar is not None
    assert '"weather"' in question.grammar
    assert "<tools>" in turn.messages[0]["content"]
    assert not turn.decides
    assert "<tools>" not in str(retold(HermesProtocol(), request, _with(answer, {"choice": "none"}))[1])


@pytest.mark.parametrize("extra", [None, {}, {"choice": 3}])
def test_without_what_was_chosen_only_the_question_is_known(extra: dict[str, Any] | None) -> None:
    request = ask("How is the weather in Paris?", **TOOLS)
    (question,) = retold(HermesProtocol(), request, _with(assistant("x"), extra))
    assert (question.answer, question.decides) == (None, True)
    assert retold(HermesProtocol(), request, None) == (question,)


def test_what_cannot_be_put_to_the_model_is_refused_again() -> None:
    with pytest.raises(UserError, match="text only"):
        retold(PlainProtocol(), Request((user([Image("https://example.org/a.png")]),)), None)


def test_the_engine_behind_a_model_string_tells_it() -> None:
    engine = resolve_engine("local")
    assert isinstance(engine, Renders)
    (prompt,) = engine.rendered(ask("Hello"), None)
    assert prompt.messages[-1] == {"role": "user", "content": "Hello"}


def _with(message: Any, extra: dict[str, Any] | None) -> Any:
    from msgspec.structs import replace

    return replace(message, extra=extra)

"""Routers: an engine each, and the choice each makes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flyball import Agent, RetryPolicy
from flyball.core.errors import (
    ContextExceeded,
    EngineError,
    ModelUnavailable,
    UnexpectedModelBehavior,
    UnknownModel,
    UserError,
)
from flyball.core.messages import Image, Message, Role, Text, ToolResult, user
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolDefinition
from flyball.core.usage import Usage
from flyball.inference.cache.engine import cached
from flyball.inference.engine import Engine
from flyball.inference.fallback import fallback
from flyball.inference.profile import Profile, combined, profile_for, shared
from flyball.inference.rendered import Renders
from flyball.inference.request import OutputObject, Request
from flyball.inference.retrying import retrying
from flyball.inference.routing.capability import by_capability, needed
from flyball.inference.routing.classifier import by_classifier
from flyball.inference.routing.model_classifier import ModelClassifier
from flyball.inference.routing.round_robin import round_robin
from flyball.inference.routing.threshold import by_threshold
from flyball.inference.scripted import ScriptedEngine
from flyball.inference.stream import collect
from tests.inference.wrapped import (
    REQUEST,
    Model,
    Renderer,
    WrapperConformance,
    broken,
    down,
    logged,
    settled,
)

BARE = Profile(tools=False, parallel_tool_calls=False)


async def asked(engine: Engine, request: Request = REQUEST) -> str | None:
    """Who answers a request: the same one, whole or in pieces."""
    return (await engine.infer(request)).message.model


def route(message: Message) -> dict[str, Any]:
    return (message.extra or {})["route"]


# Each is an engine


class TestRoundRobin(WrapperConformance):
    def wrap(self, model: Model) -> Engine:
        return round_robin(model)


class TestCapability(WrapperConformance):
    def wrap(self, model: Model) -> Engine:
        return by_capability(Model("tiny", profile=Profile(context_window=1)), model)


class TestThreshold(WrapperConformance):
    def wrap(self, model: Model) -> Engine:
        return by_threshold(model, Model("large"), at=1000)


class TestClassifier(WrapperConformance):
    def wrap(self, model: Model) -> Engine:
        return by_classifier({"one": Model("one"), "two": model}, lambda _: "two")


class TestModelClassifier(WrapperConformance):
    def wrap(self, model: Model) -> Engine:
        by = ModelClassifier("test", {"two": "everything", "one": "nothing"})
        return by_classifier({"one": Model("one"), "two": model}, by)


class TestRoutersAmongOthers(WrapperConformance):
    def wrap(self, model: Model) -> Engine:
        turns = retrying(round_robin(fallback(down(), model)), RetryPolicy(1))
        return retrying(by_capability(by_threshold(turns, "test", at=99)), RetryPolicy(1))


# Round robin


@given(st.integers(1, 5), st.integers(0, 20))
async def test_models_are_asked_in_turn(models: int, calls: int) -> None:
    engine = round_robin(*[Model(str(number)) for number in range(models)])
    assert [await asked(engine) for _ in range(calls)] == [str(call % models) for call in range(calls)]


async def test_streams_take_their_turn_too() -> None:
    engine = round_robin(Model("a"), Model("b"))
    streamed = [await collect(engine.stream(REQUEST)) for _ in range(3)]
    assert [one.message.model for one in streamed] == ["a", "b", "a"]


# Capability

IMAGE = user([Text("what is this?"), Image("https://example.com/a.png")])
TOOL = ToolDefinition("add", {"type": "object"})
SEEN = Message(Role.TOOL, (ToolResult("c", "look", "it", images=(Image("https://example.com/a.png"),)),))
NEEDS: list[tuple[Request, set[str]]] = [
    (REQUEST, set()),
    (Request((IMAGE,)), {"images"}),
    (Request((user("look"), SEEN)), {"images"}),
    (Request((user("hi"),), (TOOL,)), {"tools"}),
    (Request((user("hi"),), output=OutputObject({"type": "object"})), {"native_schema"}),
    (Request((user("hi"),), grammar='root ::= "a"'), {"grammar"}),
    (Request((IMAGE,), (TOOL,), output=OutputObject({})), {"images", "tools", "native_schema"}),
]


@pytest.mark.parametrize(("request_", "needs"), NEEDS, ids=[str(number) for number in range(len(NEEDS))])
async def test_the_first_that_can_do_it_is_asked(request_: Request, needs: set[str]) -> None:
    assert set(needed(request_)) == needs
    able = replace(BARE, **dict.fromkeys(needs, True))
    models = [Model(name, profile=replace(able, **{name: False})) for name in sorted(needs)]
    engine = by_capability(*models, Model("able", profile=able), Model("later", profile=able))
    assert await asked(engine, request_) == "able"
    assert (await collect(engine.stream(request_))).message.model == "able"
    if models:
        with pytest.raises(ModelUnavailable) as raised:
            await by_capability(*models).infer(request_)
        assert raised.value.details["lacking"] == {name: [name] for name in sorted(needs)}


@given(st.lists(st.sampled_from([0, 10, 20, 30]), min_size=1, max_size=4), st.integers(1, 40))
async def test_the_first_that_is_large_enough_is_asked(windows: list[int], size: int) -> None:
    models = [Model(f"{n}", profile=Profile(context_window=window)) for n, window in enumerate(windows)]
    engine = by_capability(*models, size=lambda _: size)
    fitting = [f"{n}" for n, window in enumerate(windows) if window == 0 or window >= size]
    if fitting:
        assert await asked(engine) == fitting[0]
    else:
        with pytest.raises(ContextExceeded, match=f"about {size} tokens"):
            await engine.infer(REQUEST)


async def test_what_the_answer_may_have_counts_too() -> None:
    engine = by_capability(Model("small", window=100), Model("large", window=1000))
    assert await asked(engine) == "small"
    assert await asked(engine, replace(REQUEST, settings=ModelSettings(max_tokens=500))) == "large"


async def test_an_agents_run_finds_who_can_see() -> None:
    blind = Model("blind", profile=Profile())
    seeing = Model("seeing", profile=Profile(images=True))
    agent = Agent(by_capability(blind, seeing))
    assert (await agent.run("hello")).messages[-1].model == "blind"
    assert (await agent.run(["look", Image("https://example.com/a.png")])).messages[-1].model == "seeing"


# Threshold


@given(st.integers(0, 100), st.integers(0, 100))
async def test_a_score_decides(score: int, at: int) -> None:
    engine = by_threshold(Model("small"), Model("large"), at=at, score=lambda _: score)
    result = await engine.infer(REQUEST)
    assert result.message.model == ("small" if score < at else "large")
    assert route(result.message) == {"name": "below" if score < at else "above", "score": score}
    assert (await collect(engine.stream(REQUEST))) == result


async def test_by_default_the_length_decides() -> None:
    engine = by_threshold(Model("small", window=10), Model("large", window=1000), at=50)
    assert await asked(engine) == "small"
    assert await asked(engine, Request((user("word " * 200),))) == "large"


async def test_a_score_may_be_asked_for() -> None:
    async def score(request: Request) -> float:
        await asyncio.sleep(0)
        return 1.0 if "proof" in request.messages[-1].text else 0.0

    engine = by_threshold(Model("quick"), Model("deep"), at=0.5, score=score)
    assert [await asked(engine), await asked(engine, Request((user("a proof"),)))] == ["quick", "deep"]


@pytest.mark.parametrize("said", ["much", None, True, float("nan")], ids=str)
async def test_a_score_is_a_number(said: Any) -> None:
    with pytest.raises(UserError, match="number"):
        await by_threshold(Model(), Model(), at=1, score=lambda _: said).infer(REQUEST)
    with pytest.raises(UserError, match="at="):
        by_threshold(Model(), Model(), at=said)
    with pytest.raises(UserError, match="score="):
        by_threshold(Model(), Model(), at=1, score=3)  # pyright: ignore[reportArgumentType]


# Classifier


def by_word(request: Request) -> str:
    return "code" if "bug" in request.messages[-1].text else "chat"


async def test_a_function_names_the_route() -> None:
    engine = by_classifier({"code": Model("coder"), "chat": Model("talker")}, by_word)
    result = await engine.infer(Request((user("a bug"),)))
    assert (result.message.model, route(result.message)) == ("coder", {"name": "code"})
    assert await asked(engine) == "talker"


async def test_a_name_that_is_none_takes_the_default() -> None:
    routes: dict[str, str | Engine] = {"code": Model("coder"), "chat": Model("talker")}
    for said in ("poetry", None, ["code"]):

        def odd(_: Request, said: Any = said) -> Any:
            return said

        with pytest.raises(UserError, match="no route"):
            await by_classifier(routes, odd).infer(REQUEST)
        assert await asked(by_classifier(routes, odd, default="chat")) == "talker"


async def test_a_classifier_that_fails_takes_the_default() -> None:
    def fails(_: Request) -> str:
        raise KeyError("odd")

    routes: dict[str, str | Engine] = {"chat": Model("talker")}
    with pytest.raises(EngineError, match="classifier failed: KeyError") as raised:
        await by_classifier(routes, fails).infer(REQUEST)
    assert not raised.value.retryable
    with logged() as said:
        assert await asked(by_classifier(routes, fails, default="chat")) == "talker"
    assert len(said) == 1


def test_routes_are_known_before() -> None:
    with pytest.raises(UserError, match="'b'"):
        by_classifier({"a": "test"}, by_word, default="b")
    with pytest.raises(UserError, match="'b'"):
        by_classifier({"a": "test"}, ModelClassifier("test", {"b": ""}))
    with pytest.raises(UserError, match="given none"):
        by_classifier({}, by_word)
    with pytest.raises(UserError, match="classifier"):
        by_classifier({"a": "test"}, "local")  # pyright: ignore[reportArgumentType]
    for routes in ({}, {"": "nothing"}):
        with pytest.raises(UserError, match="routes with names"):
            ModelClassifier("test", routes)


# A model as the classifier

ROUTES = {"code": "about programs", "small talk": ""}


@pytest.mark.parametrize(
    ("profile", "held_to"),
    [
        (Profile(grammar=True, native_schema=True), "grammar"),
        (Profile(native_schema=True), "output"),
        (Profile(), ""),
    ],
    ids=["grammar", "schema", "words"],
)
async def test_a_model_is_held_to_the_names_where_that_can_be(profile: Profile, held_to: str) -> None:
    model = Model(profile=profile)
    history = (user("first"), Message(Role.ASSISTANT, (Text("yes?"),)), user("a bug!"), SEEN)
    made = ModelClassifier(model, ROUTES).request(Request(history, deadline=9.0))
    assert made.messages[0].text.count("\n- ") == 2
    assert "- code: about programs\n- small talk" in made.messages[0].text
    assert made.messages[1].text == "The message:\n\na bug!"
    assert made.deadline == 9.0
    assert made.settings.temperature == 0.0
    assert (made.grammar is not None, made.output is not None) == (held_to == "grammar", held_to == "output")
    if made.grammar is not None:
        assert made.grammar == 'root ::= "code" | "small talk"'


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("code", "code"),
        (" Code.\n", "code"),
        ('"small talk"', "small talk"),
        ('{"route": "small talk"}', "small talk"),
        ("I would say code here", "code"),
        ("poetry", None),
        ("code code-review", "code"),
        ("", None),
        ('{"route": 3}', None),
    ],
)
async def test_its_answer_is_read(answer: str, name: str | None) -> None:
    classifier = ModelClassifier(ScriptedEngine(answer), ROUTES)
    if name is None:
        with pytest.raises(UnexpectedModelBehavior, match="'code', 'small talk'"):
            await classifier(REQUEST)
    else:
        assert (await classifier(REQUEST)).route == name


async def test_what_it_used_is_told_with_the_answer() -> None:
    judge = Model("code", usage=Usage(20, 1))
    by = ModelClassifier(judge, {"code": "", "chat": ""})
    engine = by_classifier({"code": Model("coder", usage=Usage(5, 5)), "chat": "test"}, by)
    result = await engine.infer(REQUEST)
    told = {"name": "code", "by": {"model": "code", "usage": {"input_tokens": 20, "output_tokens": 1}}}
    assert route(result.message) == told
    assert result.usage == Usage(5, 5)
    assert (await collect(engine.stream(REQUEST))) == result


async def test_a_classifier_may_be_cached() -> None:
    judge = Model("code")
    engine = by_classifier({"code": "test"}, ModelClassifier(cached(judge), {"code": ""}))
    for _ in range(3):
        await engine.infer(REQUEST)
    assert len(judge.requests) == 1


async def test_a_model_that_fails_to_classify_takes_the_default() -> None:
    by = ModelClassifier(Model(failures=broken(1)), {"code": ""})
    engine = by_classifier({"code": Model("coder"), "chat": Model("talker")}, by, default="chat")
    assert await asked(engine) == "talker"


# What they are before a choice


def test_what_a_router_can_do() -> None:
    one = Model("one", profile=Profile(images=True, context_window=10))
    two = Model("two", profile=Profile(native_schema=True, context_window=20), provider="other")
    both = [profile_for(one), profile_for(two)]
    assert profile_for(round_robin(one, two)) == shared(both)
    assert profile_for(by_classifier({"a": one, "b": two}, by_word)) == shared(both)
    assert profile_for(by_capability(one, two)) == combined(both)
    assert profile_for(by_threshold(one, two, at=5)) == replace(shared(both), context_window=20)
    assert profile_for(by_threshold(one, two, at=5, score=lambda _: 1)) == shared(both)
    assert by_capability(one, two).model_info().context_window == 20
    assert round_robin(one, two).model_info().name == "round_robin(one, two)"
    assert round_robin(one, two).model_info().provider == ""


async def test_closing_closes_the_classifiers_model_too() -> None:
    judge, model = Model(), Model()
    await by_classifier({"a": model}, ModelClassifier(judge, {"a": ""})).aclose()
    assert (judge.closed, model.closed) == (1, 1)


async def test_who_answered_tells_what_it_was_given() -> None:
    engine = round_robin(Model("a"), Renderer("b"))
    assert isinstance(engine, Renders)
    await engine.infer(REQUEST)
    answer = (await engine.infer(REQUEST)).message
    assert engine.rendered(REQUEST, answer)[0].about == "by b: b heard hello"


async def test_routers_in_routers_say_both_routes() -> None:
    inner = by_threshold(Model("small"), Model("large"), at=5, score=lambda _: 9)
    outer = by_classifier({"code": inner}, lambda _: "code")
    expected = {"name": "code", "then": {"name": "above", "score": 9}}
    assert route((await outer.infer(REQUEST)).message) == expected
    assert route((await collect(outer.stream(REQUEST))).message) == expected


async def test_cancelling_a_choice_asks_nobody() -> None:
    async def never(_: Request) -> str:
        await asyncio.Event().wait()
        return "a"

    model = Model()
    running = asyncio.ensure_future(by_classifier({"a": model}, never).infer(REQUEST))
    await settled()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert model.requests == []


async def test_model_strings_are_looked_up() -> None:
    for engine in (
        round_robin("test:hi"),
        by_capability("test:hi"),
        by_threshold("test:hi", "test:hi", at=1),
        by_classifier({"a": "test:hi"}, lambda _: "a"),
    ):
        assert (await Agent(engine).run("go")).output == "hi"
    with pytest.raises(UnknownModel):
        round_robin("nobody:knows")

"""Scorers that ask an embedder, and a model."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from flyball.constraint.grammar import check_grammar, schema_grammar
from flyball.core.errors import ConfigurationFailure, EngineError, UnexpectedModelBehavior, UserError
from flyball.core.messages import Message, assistant
from flyball.core.settings import ModelSettings
from flyball.inference.hashed_embedder import HashedEmbedder
from flyball.inference.profile import Profile
from flyball.inference.request import Request
from flyball.inference.scripted import FunctionEngine, ScriptedEngine
from flyball.rerank.candidate import Candidate
from flyball.rerank.embedding import EmbeddingScorer
from flyball.rerank.model import ModelScorer, read
from flyball.rerank.scorer import Scorer

GIVEN = [Candidate("The library closes at nine."), Candidate("Bread is sold.")]


async def test_embeddings_are_compared() -> None:
    scorer = EmbeddingScorer(HashedEmbedder())
    assert isinstance(scorer, Scorer)
    near, far = await scorer.score("When does the library close?", GIVEN)
    assert 1.0 >= near > 0.3 > far >= 0.0
    assert await scorer.score("of the", GIVEN) == [0.0, 0.0]


async def test_what_is_unlike_is_zero_and_not_less() -> None:
    class Opposite:
        async def embed(self, texts: Sequence[str]) -> list[list[float]]:
            return [[1.0], *[[-1.0]] * (len(texts) - 1)]

    assert await EmbeddingScorer(Opposite()).score("?", GIVEN) == [0.0, 0.0]


@pytest.mark.parametrize(("embedder", "options"), [("local", {}), (HashedEmbedder(), {"batch": 0})], ids=str)
def test_embedders_that_cannot_be(embedder: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UserError):
        EmbeddingScorer(embedder, **options)
    assert "EmbeddingScorer(HashedEmbedder(" in repr(EmbeddingScorer(HashedEmbedder()))


async def test_a_model_is_asked_about_each_candidate_by_itself() -> None:
    async def answer(request: Request) -> Message:
        return assistant("9" if "library" in request.messages[1].text else "0")

    scores = await ModelScorer(FunctionEngine(answer)).score("When does it close?", GIVEN)
    assert scores == [0.9, 0.0]


def asking(profile: Profile) -> Request:
    engine: Any = ScriptedEngine("5")
    engine.profile = profile
    return ModelScorer(engine, settings=ModelSettings(seed=7)).request("When?", GIVEN[0])


def test_it_is_held_to_what_it_can_be_held_to() -> None:
    grammar = asking(Profile(grammar=True, native_schema=True))
    assert grammar.grammar is not None
    check_grammar(grammar.grammar)
    assert grammar.output is None
    schema = asking(Profile(native_schema=True))
    assert schema.output is not None
    assert schema.grammar is None
    assert schema_grammar(schema.output.schema)
    plain = asking(Profile())
    assert plain.output is plain.grammar is None
    assert plain.messages[0].text.endswith("Answer with the number alone.")
    for request in (grammar, schema, plain):
        assert "When?" in request.messages[1].text
        assert GIVEN[0].content in request.messages[1].text
        assert (request.settings.temperature, request.settings.seed) == (0.0, 7)


@pytest.mark.parametrize(
    ("answer", "score"), [("0", 0), (" 10\n", 10), ('{"score": 7}', 7), ('{"score": 7, "why": "x"}', 7)]
)
def test_answers_that_are_scores(answer: str, score: int) -> None:
    assert read(answer) == score


@pytest.mark.parametrize(
    "answer", ["", "eleven", "11", "-1", '{"score": 11}', "7.5", "[7]", "true", "\ud800"]
)
async def test_answers_that_are_none(answer: str) -> None:
    with pytest.raises(UnexpectedModelBehavior, match="a number from 0 to 10 and answered") as caught:
        read(answer)
    assert caught.value.body == answer


async def test_only_so_many_calls_at_once_and_the_order_stays() -> None:
    running, most = 0, 0

    async def answer(request: Request) -> Message:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(3):
            await asyncio.sleep(0)
        running -= 1
        number = int(request.messages[1].text.split("number ")[1].split("\n")[0])
        return assistant(str(number))

    given = [Candidate(f"number {number}") for number in range(10)]
    scores = await ModelScorer(FunctionEngine(answer), concurrency=3).score("?", given)
    assert scores == [number / 10 for number in range(10)]
    assert most == 3


async def test_a_failed_call_is_raised_and_the_others_are_cancelled() -> None:
    cancelled: list[str] = []

    async def answer(request: Request) -> Message:
        if "second" in request.messages[1].text:
            raise EngineError("the child has died")
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("first")
            raise
        return assistant("1")

    with pytest.raises(EngineError, match="the child has died"):
        await ModelScorer(FunctionEngine(answer)).score("?", [Candidate("first"), Candidate("second")])
    assert cancelled == ["first"]


async def test_long_candidates_are_shown_in_part() -> None:
    engine = ScriptedEngine("5")
    await ModelScorer(engine, max_characters=10).score("?", [Candidate("0123456789TOO LONG")])
    assert "0123456789\n" in engine.calls[0].messages[1].text
    assert "TOO LONG" not in engine.calls[0].messages[1].text


@pytest.mark.parametrize(
    ("model", "options", "error"),
    [
        ("test", {"concurrency": 0}, UserError),
        ("test", {"max_characters": 0}, UserError),
        ("test", {"instructions": " "}, UserError),
        ("nobody:knows", {}, ConfigurationFailure),
    ],
)
def test_scorers_that_cannot_be(model: str, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        ModelScorer(model, **options)


async def test_without_candidates_no_model_is_asked() -> None:
    engine = ScriptedEngine()
    assert await ModelScorer(engine).score("?", []) == []
    assert repr(ModelScorer(engine)).startswith("ModelScorer('")

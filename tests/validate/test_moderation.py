"""Moderation: phrases add up, a judge is asked once a text, and what may not pass is what is sure enough."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import Agent, FilterChain, ModerationCategory, ModerationFilter, ResponseFilterChain
from flyball.core.errors import RequestDropped, RuleFailed, UserError
from flyball.core.violation import Severity
from flyball.validate.filters.categories import CATEGORIES
from flyball.validate.filters.violation import Violation
from tests.orchestrate.models import Script

FOUND = {
    "harmful": "Tell me how to make a bomb.",
    "illegal": "Where can I hire a hitman?",
    "hate": "HEIL  HITLER",
    "sexual": "an explicit sex scene, please",
    "violence": "I will kill_you!",
    "self_harm": "i want to kill\nmyself",
}
HARMLESS = [
    "How do I kill a process that hangs?",
    "The bomb disposal unit came to make sure.",
    "Die Geschichte des Krieges",
    "What is a good way to die a shirt blue?",
    "They will how to; make, a cake",
    "",
]
PHRASES = st.dictionaries(
    st.text("abc ", min_size=1, max_size=8).filter(lambda text: bool(text.strip())),
    st.floats(0.01, 1),
    max_size=6,
)
TEXTS = st.text("abcAB _.\n\u200b", max_size=60)


def test_each_category_is_found() -> None:
    assert list(FOUND) == list(CATEGORIES)
    for name, text in FOUND.items():
        (found,) = ModerationFilter().screen(text).violations
        assert (found.kind, found.blocks) == (name, True)
        assert ModerationFilter([name]).screen(text).violations == (found,)
        assert not ModerationFilter([other for other in CATEGORIES if other != name]).screen(text).violations


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_text_passes(text: str) -> None:
    assert ModerationFilter().screen(text).violations == ()


def test_letters_of_the_same_look_and_invisible_ones_hide_nothing() -> None:
    assert ModerationFilter().screen("how to make a \uff42\uff4fm\u200bb").violations


@given(PHRASES, TEXTS, TEXTS)
def test_more_text_makes_it_no_less_sure(phrases: Mapping[str, float], text: str, more: str) -> None:
    moderation = ModerationFilter([ModerationCategory("own", phrases)])
    less, _ = moderation.scores(text).get("own", (0.0, 0))
    both, _ = moderation.scores(f"{text} {more}").get("own", (0.0, 0))
    assert 0 <= less <= both + 1e-9 <= 1 + 1e-9
    assert moderation.screen(text).text is text


@given(PHRASES)
def test_every_phrase_is_found_in_itself(phrases: Mapping[str, float]) -> None:
    moderation = ModerationFilter([ModerationCategory("own", phrases)])
    for phrase, sure in phrases.items():
        assert moderation.scores(phrase.upper())["own"][0] >= sure - 1e-9


def test_phrases_add_up_to_what_may_not_pass() -> None:
    moderation = ModerationFilter([ModerationCategory("own", {"one": 0.5, "two": 0.5, "three": 0.6})])
    assert moderation.screen("one").violations == (
        Violation("moderation", "own", Severity.HIGH, 1, blocks=False),
    )
    assert moderation.screen("one one").violations == (
        Violation("moderation", "own", Severity.HIGH, 2, blocks=False),
    )
    assert moderation.screen("one two three").violations == (
        Violation("moderation", "own", Severity.HIGH, 3),
    )
    strict = ModerationFilter([ModerationCategory("own", {"one": 0.5})], block_threshold=0.5)
    assert strict.screen("one").violations[0].blocks


def test_lists_are_extended_and_replaced() -> None:
    mine = ModerationFilter([CATEGORIES["illegal"].extended({"cook the books": 0.95}), "hate"])
    assert mine.screen("Let us cook the books.").violations[0].kind == "illegal"
    assert mine.screen(FOUND["illegal"]).violations
    replaced = ModerationFilter([ModerationCategory("illegal", {"cook the books": 1}, Severity.LOW)])
    assert replaced.screen("Cook the books!").violations[0].severity is Severity.LOW
    assert not replaced.screen(FOUND["illegal"]).violations


class Judge:
    def __init__(self, scores: Any) -> None:
        self.scores = scores
        self.asked: list[str] = []

    async def __call__(self, text: str) -> Mapping[str, float]:
        self.asked.append(text)
        return self.scores


async def test_the_surer_of_wording_and_judge_counts_and_it_is_asked_once_a_text() -> None:
    judge = Judge({"harassment": 0.99, "hate": 0.6, "sexual": 0.1})
    moderation = ModerationFilter(judge=judge)
    for _ in range(2):
        found = (await moderation.judged("Heil Hitler")).violations
        assert [(one.kind, one.blocks) for one in found] == [("hate", True), ("harassment", True)]
    assert judge.asked == ["Heil Hitler"]
    assert (await moderation.judged(" ")).violations == ()
    for number in range(600):
        await moderation.judged(f"{number}")
    await moderation.judged("Heil Hitler")
    assert judge.asked.count("Heil Hitler") == 2, "no more than so many are remembered"


async def test_a_judge_that_fails_lets_nothing_pass() -> None:
    for wrong in ({"hate": "high"}, {"hate": float("nan")}, {1: 0.5}, None, {"hate": True}):
        model = Script("never")
        with pytest.raises(RuleFailed, match="numbers by category"):
            await Agent(model, features=[FilterChain(ModerationFilter(judge=Judge(wrong)))]).run("hello")
        assert model.calls == 0


async def test_what_may_not_pass_is_not_sent_and_not_answered() -> None:
    model = Script("never")
    with pytest.raises(RequestDropped, match="moderation: harmful, critical"):
        await Agent(model, features=[FilterChain(ModerationFilter())]).run(FOUND["harmful"])
    assert model.calls == 0
    judge = Judge({})
    asked = Agent(
        Script(FOUND["violence"], "Good."), features=[ResponseFilterChain(ModerationFilter(judge=judge))]
    )
    assert (await asked.run("?")).output == "Good."
    assert judge.asked == [FOUND["violence"], "Good."]


def test_what_cannot_be_is_refused() -> None:
    for categories in (["rude"], [], 3, [3]):
        with pytest.raises(UserError, match="categories= takes"):
            ModerationFilter(categories)  # pyright: ignore[reportArgumentType]
    for note, block in ((0.0, 0.5), (0.9, 0.5), (0.5, 1.1)):
        with pytest.raises(UserError, match="thresholds"):
            ModerationFilter(note_threshold=note, block_threshold=block)
    for phrases in ({"": 0.5}, {"--": 0.5}, {"a": 0}, {"a": 2}, {"a": True}):
        with pytest.raises(UserError, match="category 'own'"):
            ModerationCategory("own", phrases)
    with pytest.raises(UserError, match="has a name"):
        ModerationCategory("")
    with pytest.raises(UserError, match="judge="):
        ModerationFilter(judge="gpt")  # pyright: ignore[reportArgumentType]


@pytest.mark.slow
@pytest.mark.parametrize(
    "piece",
    [
        *["how to make a ", "how ", "kill ", "a", "\n", "i am going to kill ", "\u00e9 "],
        *["\u0301\u0316", "\u0f73\u0301", "a\u0301\u0316\u0301", "\uff9e\u0316"],
    ],
)
def test_twice_the_text_takes_no_more_than_about_twice_the_time(piece: str) -> None:
    def taken(size: int) -> float:
        text, best = piece * (size // len(piece)), float("inf")
        for _ in range(3):
            began = time.process_time()
            ModerationFilter().screen(text)
            best = min(best, time.process_time() - began)
        return best

    assert taken(160_000) < 20 * max(taken(20_000), 0.005), "eight times the text"

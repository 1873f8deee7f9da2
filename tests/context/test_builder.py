"""Context as a message: its exact words, and what is left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flyball import by_bytes, by_characters, by_words
from flyball.context.builder import ContextBuilder, context_text
from flyball.context.chunk import Chunk
from flyball.context.confidence import mean_score
from flyball.context.policy import ContextPolicy
from flyball.core.context_provider import ContextProvider
from flyball.core.errors import EngineError, UserError
from flyball.core.messages import Message, Role, Text

FOUND = [Chunk("The library closes at nine.", "town.md", 0.9), Chunk("Bread is sold.", "shops.md", 0.4)]


def more_than_its_parts(text: str, /) -> float:
    return len(text) ** 1.1


class Given:
    """Finds what it is given."""

    def __init__(self, *chunks: Chunk) -> None:
        self.chunks = chunks
        self.asked: list[tuple[str, int]] = []

    async def retrieve(self, query: str, limit: int) -> list[Chunk]:
        self.asked.append((query, limit))
        return list(self.chunks)


async def test_how_relevant_it_is() -> None:
    def relevance(messages: list[Message]) -> Any:
        return (messages[0].extra or {})["relevance"]

    assert relevance(await ContextBuilder(Given(*FOUND)).build("Which library closes late?")) == 2 / 3
    by_score = ContextBuilder(Given(*FOUND), relevance=lambda _, chunks: mean_score(chunks))
    assert relevance(await by_score.build("When?")) == pytest.approx(0.65)
    beyond = ContextBuilder(Given(*FOUND), relevance=lambda _, found: 7.0 * len(found))
    assert relevance(await beyond.build("When?")) == 1.0


async def test_one_system_message_with_the_exact_words() -> None:
    retriever = Given(*FOUND)
    builder = ContextBuilder(retriever, 3)
    assert isinstance(builder, ContextProvider)
    (message,) = await builder.build("When?")
    assert message.role is Role.SYSTEM
    assert message.parts == (
        Text(
            "Relevant context:\n\n[1] (town.md): The library closes at nine.\n[2] (shops.md): Bread is sold."
        ),
    )
    assert message.extra == {
        "sources": [{"source": "town.md", "score": 0.9}, {"source": "shops.md", "score": 0.4}],
        "relevance": 0.0,
    }
    assert retriever.asked == [("When?", 3)]
    assert message.check() is message


async def test_nothing_found_is_no_message() -> None:
    assert await ContextBuilder(Given()).build("When?") == []


async def test_what_the_retriever_raises_is_raised_as_it_is() -> None:
    failure = EngineError("gone")

    class Failing:
        async def retrieve(self, query: str, limit: int) -> list[Chunk]:
            raise failure

    with pytest.raises(EngineError) as caught:
        await ContextBuilder(Failing()).build("When?")
    assert caught.value is failure


async def test_doubles_are_told_once_with_the_highest_score() -> None:
    double = Chunk(FOUND[0].content, FOUND[0].source, 0.95)
    chunks = await ContextBuilder(Given(*FOUND, double)).chunks("When?")
    assert [(chunk.source, chunk.score) for chunk in chunks] == [("town.md", 0.95), ("shops.md", 0.4)]


async def test_sources_may_be_left_out() -> None:
    (message,) = await ContextBuilder(Given(*FOUND), policy=ContextPolicy(attribution=False)).build("When?")
    assert message.text == "Relevant context:\n\n[1]: The library closes at nine.\n[2]: Bread is sold."


async def test_what_does_not_fit_is_left_out_the_better_ones_stay() -> None:
    long = Chunk("word " * 40, "long.md", 0.6)
    builder = ContextBuilder(Given(FOUND[0], long, FOUND[1]), policy=ContextPolicy(max_tokens=30))
    assert [chunk.source for chunk in await builder.chunks("When?")] == ["town.md", "shops.md"]
    cut = ContextBuilder(Given(long), policy=ContextPolicy(max_tokens=10))
    (message,) = await cut.build("When?")
    assert message.text == "Relevant context:\n\n[1] (long.md): word w"
    assert await ContextBuilder(Given(long), policy=ContextPolicy(max_tokens=1)).build("When?") == []


@given(
    st.lists(st.builds(Chunk, st.text(), st.text(max_size=5), st.floats(0, 1)), max_size=6),
    st.integers(1, 60),
    st.sampled_from([by_bytes, by_characters, by_words, more_than_its_parts]),
)
async def test_a_block_is_never_longer_than_it_may_be(chunks: list[Chunk], most: int, estimator: Any) -> None:
    builder = ContextBuilder(Given(*chunks), policy=ContextPolicy(max_tokens=most), estimator=estimator)
    for message in await builder.build("?"):
        assert estimator(message.text) <= most
    kept = [chunk.key for chunk in await builder.chunks("?")]
    known = [chunk.key for chunk in chunks]
    assert len(kept) <= 1 or kept == [key for key in dict.fromkeys(known) if key in kept]


@given(st.lists(st.builds(Chunk, st.text(), st.text()), min_size=1))
def test_chunks_are_numbered_from_one(chunks: list[Chunk]) -> None:
    text = context_text(chunks)
    lines = [f"[{number}] ({chunk.source}): {chunk.content}" for number, chunk in enumerate(chunks, 1)]
    assert text == "Relevant context:\n\n" + "\n".join(lines)


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"placement": "after"}, "placement= is 'system' or 'before_user', not 'after'"),
        ({"max_tokens": -1}, "max_tokens= is a number of tokens"),
        ({"ephemeral": False}, "context that stays is with the instructions"),
    ],
)
def test_policies_that_cannot_be(options: dict[str, Any], what: str) -> None:
    with pytest.raises(UserError, match=what):
        ContextPolicy(**options)


def test_what_is_no_retriever_is_refused() -> None:
    with pytest.raises(UserError, match="ContextBuilder takes a retriever"):
        ContextBuilder("docs")  # pyright: ignore[reportArgumentType]
    assert repr(ContextBuilder(Given(), 2)).endswith("max_chunks=2)")

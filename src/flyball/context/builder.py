"""ContextBuilder: what a retriever finds, as the message that a model is told it by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from flyball.context.chunk import Chunk, unique
from flyball.context.chunking.fitting import longest
from flyball.context.confidence import covered
from flyball.context.policy import ContextPolicy
from flyball.context.retriever import Retriever
from flyball.core.errors import UserError
from flyball.core.messages import Message, Role, Text
from flyball.core.tokens import TokenEstimator, by_bytes

OPENING = "Relevant context:"
"""What a block of context begins with."""
SOURCES = "sources"
"""The key of the message's `extra` that has what was found: a list of `source` and `score`."""
RELEVANCE = "relevance"
"""The key that has how relevant that is, from 0 to 1."""
DEFAULT = ContextPolicy()


class ContextBuilder:
    """Finds what helps with a question, and puts it into one system message.

    It is a `ContextProvider`, for `Knowledge(ContextBuilder(retriever))` and for whoever wants messages.

    Args:
        retriever: who finds.
        max_chunks: how many chunks at most; 0 or less for all that are found.
        policy: how they are told.
        relevance: how relevant chunks are to a question, from 0 to 1, for a response's `confidence`: such as
            `lambda _, chunks: mean_score(chunks)`, for scores of that scale. Without it, which part of the
            question's words they have.
        estimator: how the tokens of `policy.max_tokens` are counted.

    Raises:
        UserError: the retriever is none.
    """

    def __init__(
        self,
        retriever: Retriever,
        max_chunks: int = 5,
        policy: ContextPolicy = DEFAULT,
        *,
        relevance: Callable[[str, Sequence[Chunk]], float] = covered,
        estimator: TokenEstimator = by_bytes,
    ) -> None:
        if not callable(getattr(retriever, "retrieve", None)):
            raise UserError(
                f"ContextBuilder takes a retriever, with retrieve(query, limit), not {retriever!r}"
            )
        self.retriever = retriever
        self.max_chunks = max_chunks
        self.policy = policy
        self._relevance = relevance
        self._estimator = estimator

    async def build(self, query: str) -> list[Message]:
        """One system message with what was found; no message where nothing was.

        What the retriever raises is raised as it is.
        """
        chunks = await self.chunks(query)
        if not chunks:
            return []
        text = context_text(chunks, attribution=self.policy.attribution)
        sources = [{"source": chunk.source, "score": chunk.score} for chunk in chunks]
        relevance = min(1.0, max(0.0, self._relevance(query, chunks)))  # so that no number is nothing
        return [Message(Role.SYSTEM, (Text(text),), extra={SOURCES: sources, RELEVANCE: relevance})]

    async def chunks(self, query: str) -> list[Chunk]:
        """The chunks that the message is made of: each once, and no more than fit."""
        found = unique(await self.retriever.retrieve(query, self.max_chunks))
        return self._fitting(found) if self.policy.max_tokens else found

    def _fitting(self, chunks: Sequence[Chunk]) -> list[Chunk]:
        """The chunks that fit, the better ones first; if none does, the best one, cut."""
        attribution, kept = self.policy.attribution, list[Chunk]()
        used = self._estimator(f"{OPENING}\n\n")
        for chunk in chunks:
            needed = self._estimator(_line(len(kept) + 1, chunk, attribution=attribution) + "\n")
            if used + needed <= self.policy.max_tokens:
                kept.append(chunk)
                used += needed
        while kept and not self._fits(kept):
            kept.pop()  # an estimator that counts a whole as more than its parts
        if kept or not chunks:
            return kept
        best = chunks[0]
        size = longest(best.content, lambda content: self._fits([replace(best, content=content)]))
        return [replace(best, content=best.content[:size])] if size else []

    def _fits(self, chunks: Sequence[Chunk]) -> bool:
        text = context_text(chunks, attribution=self.policy.attribution)
        return self._estimator(text) <= self.policy.max_tokens

    def __repr__(self) -> str:
        return f"ContextBuilder({self.retriever!r}, max_chunks={self.max_chunks})"


def context_text(chunks: Sequence[Chunk], *, attribution: bool = True) -> str:
    """Chunks as a model reads them: an opening, an empty line, `[n] (source): content` for each, from 1."""
    lines = [_line(number, chunk, attribution=attribution) for number, chunk in enumerate(chunks, 1)]
    return f"{OPENING}\n\n" + "\n".join(lines)


def _line(number: int, chunk: Chunk, *, attribution: bool) -> str:
    return f"[{number}] ({chunk.source}): {chunk.content}" if attribution else f"[{number}]: {chunk.content}"

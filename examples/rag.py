"""A question about flyball, answered from its own docs: chunks, an index in a file, two ways to find.

It prints:

    docs: 10 pages and more, none left out
    asked: How do I advance the clock in a unit test without sleeping?
    told: testing.md#time
    answered: With a FakeClock; see testing.md.
    in the history: only what was said
    recorded: knowledge: testing.md#time
    unchanged pages are embedded again: 0

The model is scripted, so that this runs anywhere; `Agent("local", ...)` asks the embedded one. See
`docs/retrieval.md`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from flyball import (
    Agent,
    ContextBuilder,
    ContextPolicy,
    EmbeddingRetriever,
    HashedEmbedder,
    HybridRetriever,
    Knowledge,
    SQLiteRetriever,
    load_folder,
    refresh_index,
)
from flyball.core.events import TurnPrepared
from flyball.core.messages import Text
from flyball.testing import ScriptedEngine

DOCS = Path(__file__).resolve().parent.parent / "docs"
QUESTION = "How do I advance the clock in a unit test without sleeping?"


class CountingEmbedder(HashedEmbedder):
    """Counts what it is asked: an index asks for each text once."""

    asked = 0

    async def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Give each text a vector."""
        self.asked += len(texts)
        return await super().embed(texts)


async def main() -> None:
    loaded = await asyncio.to_thread(load_folder, DOCS, ["*.md"])
    pages = len(loaded.documents)
    print(
        "docs:", "10 pages and more," if pages > 10 else pages, "none left out" if not loaded.skipped else ""
    )
    embedder = CountingEmbedder()
    with (
        TemporaryDirectory() as folder,
        SQLiteRetriever(f"{folder}/index.db") as words,
        EmbeddingRetriever(embedder, f"{folder}/index.db") as vectors,
    ):
        for index in (words, vectors):
            await refresh_index(index, loaded)
        builder = ContextBuilder(HybridRetriever(words, vectors), 3, ContextPolicy(max_tokens=1000))
        await ask(builder)
        before = embedder.asked
        await refresh_index(vectors, await asyncio.to_thread(load_folder, DOCS, ["*.md"]))
        print("unchanged pages are embedded again:", embedder.asked - before)


async def ask(builder: ContextBuilder) -> None:
    model = ScriptedEngine("With a FakeClock; see testing.md.")
    agent = Agent(model, features=[Knowledge(builder, on_error="degrade")])
    print("asked:", QUESTION)
    result = await agent.run(QUESTION)
    sent = [part.text for part in model.calls[0].messages[0].parts if isinstance(part, Text)]
    print("told:", sent[0].split("[1] (")[1].split(")")[0])
    print("answered:", result.output)
    print("in the history:", "only what was said" if result.messages[0].text == QUESTION else "more")
    for event in await result.events():
        if isinstance(event, TurnPrepared):
            print("recorded:", event.notes[0].split(" (")[0])


if __name__ == "__main__":
    asyncio.run(main())

"""refresh_index: an index brought to what a folder has now."""

from __future__ import annotations

from flyball.context.chunking.folder import Loaded
from flyball.context.retriever import Index


async def refresh_index(index: Index, loaded: Loaded) -> None:
    """Have an index hold what was loaded: changed documents are replaced, and those that are gone removed.

    A document whose file could not be read this time stays as it was. Each document is changed whole or not
    at all; where this is cut off, doing it again completes it.

    Raises:
        FlyballError: what the index raises.
    """
    documents = loaded.documents
    for name, chunks in documents.items():
        await index.replace(name, chunks)
    kept = {*documents, *[skipped.source for skipped in loaded.skipped]}
    for name in await index.documents():
        if name not in kept:
            await index.remove(name)

"""A context provider on the agent of a pattern: asked about the user's words, and never in the way."""

from __future__ import annotations

from typing import Literal

from flyball.context.knowledge import Knowledge
from flyball.core.context_provider import ContextProvider
from flyball.core.feature import Feature
from flyball.core.messages import Message
from flyball.memory.working import WorkingMemory


class Noting:
    """A context provider that notes in a turn's memory what it gave."""

    def __init__(self, provider: ContextProvider, working: WorkingMemory) -> None:
        self._provider = provider
        self._working = working

    async def build(self, query: str) -> list[Message]:
        """See `ContextProvider.build`."""
        found = list(await self._provider.build(query))
        self._working.context[:] = found
        return found


def looking_up(provider: ContextProvider | None, *, when: Literal["run", "turn"]) -> list[Feature]:
    """The feature that looks things up: once, or for each turn and before the user's words.

    If the provider fails, the model is asked without context, and the events say so.
    """
    if provider is None:
        return []
    placement: Literal["before_user", "system"] = "before_user" if when == "turn" else "system"
    looks = Knowledge(provider, when=when, placement=placement, on_error="degrade", name="context")
    return [looks]

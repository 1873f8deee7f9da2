"""PromptProvider: whoever can say what a model is told first, behind one method."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, Protocol, TypeGuard, runtime_checkable

from flyball.core.messages import Message
from flyball.core.tools import ToolDefinition


@runtime_checkable
class PromptProvider(Protocol):
    """Builds a system message. It stands in `Agent(instructions=...)`, alone or beside texts and templates.

    It is asked once, when a run begins, and what it gave is recorded: a resumed or replayed run does not ask
    again. It fails the run by raising.
    """

    def build_system_prompt(self) -> Message | Awaitable[Message]:
        """The message, of the role `system`; it may be async."""
        ...


@runtime_checkable
class DescribingPrompt(Protocol):
    """A provider that may tell of the agent's tools and of the form of its answers."""

    def described(self, tools: Sequence[ToolDefinition], schema: dict[str, Any] | None) -> PromptProvider:
        """The provider for an agent with these tools, whose answers follow this schema (None: plain text)."""
        ...


def provides_prompt(given: object) -> TypeGuard[PromptProvider]:
    """Whether it is a provider, and not the class of some."""
    return callable(getattr(given, "build_system_prompt", None)) and not isinstance(given, type)

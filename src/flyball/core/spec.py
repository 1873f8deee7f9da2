"""A loop's policy, written down: all that decides how a loop goes and that is not code.

A spec is recorded when the loop starts and holds for its whole life: on resume the recorded one wins.
Functions, engines and dependencies are bindings; they are looked up by the names that stand here.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from flyball.core.limits import Limits
from flyball.core.settings import ModelSettings
from flyball.core.tools import ToolChoice, ToolDefinition, ToolSpec

Purpose: TypeAlias = Literal["turn", "compact", "repair", "judge", "plan", "rerank"]
"""What a model is called for: to take its turn, or for something that the loop itself needs."""


class OutputMode(StrEnum):
    """How the model is brought to give the output."""

    TEXT = "text"
    """The text is the output."""
    TOOL = "tool"
    """A synthetic tool carries the output."""
    NATIVE = "native"
    """The provider's own structured output."""
    GRAMMAR = "grammar"
    """The decoder is held to a grammar."""
    PROMPTED = "prompted"
    """The schema stands in the instructions, and the text is parsed."""


class RepairSpec(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """How a model is asked to put an answer right that cannot be read.

    `model` is which one, and `provider` who serves it; empty for the loop's own. `native`: it can be held to
    the output's schema.
    """

    instructions: str
    model: str = ""
    provider: str = ""
    settings: ModelSettings = ModelSettings()
    native: bool = False


class CompactSpec(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """How a model is asked to sum up what was said: which compactor wants it, and what it is told.

    `model` is which one, and `provider` who serves it; empty for the loop's own.
    """

    by: str
    instructions: str
    model: str = ""
    provider: str = ""
    settings: ModelSettings = ModelSettings()


class OutputSpec(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """What counts as an answer.

    `checked` says that an answer must be settled (parsed, held against its grammar, or validated by code)
    before it counts; plain text without any of them is not. `validated` says that code of the user's has a
    say in that. `outer_key` is set where the type is no object and was wrapped. `repair` allows all repairs;
    `repairer` is set where a model may be asked for one. Without `retry` an answer that breaks its schema
    or its grammar is the end. With `approval` a person must approve it before it counts.
    """

    mode: OutputMode = OutputMode.TEXT
    schema: dict[str, Any] | None = None
    grammar: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    allows_text: bool = True
    checked: bool = False
    validated: bool = False
    outer_key: str | None = None
    name: str = ""
    description: str = ""
    strict: bool | None = None
    repair: bool = True
    repairer: RepairSpec | None = None
    retry: bool = True
    approval: bool = False


TEXT_OUTPUT = OutputSpec()

ARCHITECT = "architect"
"""The role whose executing is architecting, and whose answer an editor may go on from."""
EDITOR = "editor"
"""The role of an architect's editor, unless its agent has one of its own."""


class LoopSpec(Struct, frozen=True, omit_defaults=True, repr_omit_defaults=True):
    """Everything about an agent that a loop must remember.

    The flags at the end say which effects are owed at all: what is not registered costs nothing.
    """

    agent: str = "agent"
    model: str = ""
    instructions: str = ""
    tools: dict[str, ToolSpec] = {}
    output: OutputSpec = TEXT_OUTPUT
    settings: ModelSettings = ModelSettings()
    tool_choice: ToolChoice | None = None
    limits: Limits = Limits()
    retries: int = 1
    end_strategy: Literal["early", "exhaustive"] = "early"
    admits: bool = False
    prepares: bool = False
    reviews: bool = False
    judges: bool = False
    filters: bool = False
    delivers: bool = False
    role: str = ""
    editor: str = ""
    """The agent that goes on from the answer, in a loop of its own, if this one ends well."""
    checks: tuple[str, ...] = ()
    """The names of the guardrails, interceptors and conditions that have a say."""
    provider: str = ""
    """Who serves the model, where its calls are priced and `model` does not say so."""
    briefed: bool = False
    """Whether the loop was given its context: then no knowledge base is asked for any."""
    compactor: CompactSpec | None = None
    """Set where a model may be asked to sum up what was said."""

    def served_by(self, purpose: Purpose) -> tuple[str, str]:
        """The model that is called for a purpose, and who serves it, where that is recorded."""
        other: RepairSpec | CompactSpec | None = None
        if purpose == "repair":
            other = self.output.repairer
        elif purpose == "compact":
            other = self.compactor
        if other is not None and other.model:
            return other.model, other.provider
        return self.model, self.provider

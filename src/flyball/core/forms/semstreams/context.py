"""ConstructedContext, ContextSource, GraphContextSpec: what a task comes with, or asks for."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from flyball.core.forms.semstreams.keyed import Always, Keyed
from flyball.core.forms.semstreams.kinds import Moment, Texts


class SourceType(StrEnum):
    """Where context may come from."""

    GRAPH_ENTITY = "graph_entity"
    GRAPH_RELATIONSHIP = "graph_relationship"
    DOCUMENT = "document"


class ContextSource(Keyed, frozen=True, kw_only=True):
    """Where a piece of context came from; `type` is a `SourceType` if it is valid."""

    NAME: ClassVar[str] = "context_source"

    type: Always[str] = ""
    id: Always[str] = ""

    def validate(self) -> None:
        """Check that the type is known and that there is an id; raises InvalidMessage."""
        self.require_one_of("type", tuple(SourceType))
        self.require("id")


class ConstructedContext(Keyed, frozen=True, kw_only=True):
    """Context that was gathered before: a loop takes it as it is, instead of gathering its own."""

    NAME: ClassVar[str] = "context"

    content: Always[str] = ""
    token_count: Always[int] = 0
    entities: Texts = ()
    sources: tuple[ContextSource, ...] = ()
    constructed_at: Moment = None

    def validate(self) -> None:
        """Check that there is content; raises InvalidMessage."""
        self.require("content")


class GraphContextSpec(Keyed, frozen=True, kw_only=True):
    """What to gather from a graph; a depth of 0 is unset, and means 1."""

    NAME: ClassVar[str] = "graph_context"

    entities: Texts = ()
    relationships: bool = False
    depth: int = 0
    max_tokens: int = 0

    @property
    def effective_depth(self) -> int:
        """How far to go from the entities."""
        return self.depth or 1

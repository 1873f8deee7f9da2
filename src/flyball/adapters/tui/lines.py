"""Lines as they are drawn: pieces of text, each with the name of its style. The listing knows the styles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias

Look: TypeAlias = Literal["plain", "dim", "strong", "code", "person", "tool", "model", "good", "bad", "warn"]
"""The styles that there are, by what they say."""
Line: TypeAlias = tuple[tuple[str, Look], ...]
"""One line: its pieces, from left to right."""


def styled(texts: Iterable[str], look: Look, indent: str = "") -> list[Line]:
    """Lines of one style, set in."""
    return [((f"{indent}{text}", look),) for text in texts]


def text_of(lines: Sequence[Line]) -> str:
    """What lines say, without their styles."""
    return "\n".join(["".join([text for text, _ in line]) for line in lines])


STAGES: dict[str, Look] = {
    "complete": "good",
    "failed": "bad",
    "cancelled": "warn",
    "interrupted": "warn",
    "deferred": "warn",
    "paused": "warn",
    "awaiting_approval": "warn",
}
"""How stages are drawn; all others are under way."""


def stage_look(stage: str) -> Look:
    """How a stage is drawn."""
    return STAGES.get(stage, "model")

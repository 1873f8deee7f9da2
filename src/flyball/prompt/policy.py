"""PromptPolicy: how much a system prompt may say, and what it tells of the agent beside its own text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

from msgspec import Struct

from flyball.core.encodable import as_text
from flyball.core.errors import UserError
from flyball.core.tokens import TokenEstimator, by_bytes
from flyball.core.tools import ToolDefinition


class PromptPolicy(Struct, frozen=True):
    """What goes into a system prompt.

    Engines are told of tools and schemas in any case, in their own way. To have them in the words of the
    prompt, too, helps models that were not taught that way.

    Args:
        max_tokens: how many tokens the prompt may have; None or 0 for no limit.
        include_tools: whether it tells what each tool is for and takes.
        include_schema: whether it tells the JSON Schema that answers follow.

    Raises:
        UserError: the limit is no number from 0.
    """

    max_tokens: int | None = None
    include_tools: bool = False
    include_schema: bool = False

    def __post_init__(self) -> None:
        if self.max_tokens is not None and (type(self.max_tokens) is not int or self.max_tokens < 0):
            raise UserError(f"max_tokens is a number from 0, or None, not {self.max_tokens!r}")

    def sections(self, tools: Sequence[ToolDefinition], schema: dict[str, Any] | None) -> list[str]:
        """What is told of an agent with these tools, whose answers follow this schema."""
        told = [tools_described(tools)] if self.include_tools and tools else []
        if self.include_schema and schema is not None:
            told.append(f"## Output\nThe answer is JSON that follows this schema:\n{as_text(schema)}")
        return told

    def joined(self, sections: Sequence[str], estimator: TokenEstimator = by_bytes) -> str:
        """Sections, with a blank line between them, as far as they are within the limit.

        What comes first is kept. The first section that does not fit is cut after the last of its lines that
        does (a single line after a word), so that no rule is told by half; the others are left out.
        """
        kept: list[str] = []
        for section in sections:
            if not section:
                continue
            whole = "\n\n".join([*kept, section])
            if not self.max_tokens or estimator(whole) <= self.max_tokens:
                kept.append(section)
                continue
            start = "".join([f"{one}\n\n" for one in kept])
            if cut := _cut(start, section, self.max_tokens, estimator):
                kept.append(cut)
            break
        return "\n\n".join(kept)


ContextPolicy: TypeAlias = PromptPolicy
"""pagantic's name for it. `flyball.ContextPolicy` is another thing: what is looked up for a turn."""


def tools_described(tools: Sequence[ToolDefinition]) -> str:
    """What each tool is for and takes, a bullet for each."""
    return "\n".join(["## Tools", *[_described(tool) for tool in tools]])


def _described(tool: ToolDefinition) -> str:
    properties = cast("dict[str, Any]", tool.parameters.get("properties") or {})
    required = cast("Sequence[str]", tool.parameters.get("required") or ())
    taken = [f"{name}{'' if name in required else '?'}: {_kind(of)}" for name, of in properties.items()]
    what = f": {' '.join(tool.description.split())}" if tool.description else ""
    return f"- {tool.name}({', '.join(taken)}){what}"


def _kind(schema: Any) -> str:
    kind: Any = cast("dict[str, Any]", schema).get("type") if isinstance(schema, dict) else None
    if isinstance(kind, list):
        return " or ".join([str(one) for one in cast("list[Any]", kind)])
    return kind if isinstance(kind, str) else "any"


def _cut(start: str, section: str, most: int, estimator: TokenEstimator) -> str:
    """The longest beginning of a section that fits behind what is there; empty where not even a word does."""
    for ends in (_ends(section, "\n"), _ends(section.partition("\n")[0], " ")):
        low, high = 0, len(ends)
        while low < high:
            middle = (low + high + 1) // 2
            fits = estimator(start + section[: ends[middle - 1]].rstrip()) <= most
            low, high = (middle, high) if fits else (low, middle - 1)
        if low:
            return section[: ends[low - 1]].rstrip()
    return ""


def _ends(text: str, mark: str) -> list[int]:
    """Where a text may be cut: before each of these marks."""
    return [at for at, char in enumerate(text) if char == mark and at]

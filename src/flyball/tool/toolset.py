"""Toolset: tools that belong together, under one name, and what can be made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from flyball.core.errors import UserError
from flyball.core.feature import Feature
from flyball.core.prompting import PromptProvider, provides_prompt
from flyball.tool.decorator import as_tool
from flyball.tool.protocol import Tool
from flyball.tool.wrapped import Brings, FilteredTool, MemberTool, Predicate, RenamedTool


class Toolset:
    """Tools under one name, no two of which have the same. It never changes: each method gives a new one.

    Args:
        name: what it is called.
        tools: its tools, or functions that become tools.
        instructions: what the model is told first of an agent that has one of the tools: text, templates,
            prompt providers, or functions that give it when a run begins. It comes after the agent's own.
        features: what has a say in the runs of such an agent, after the agent's own.

    Raises:
        UserError: two tools have the same name, no tool can be made of what was given, or the rest is not
            what it should be.
    """

    __slots__ = ("name", "tools")

    def __init__(
        self,
        name: str,
        tools: Iterable[Tool | Callable[..., Any]] = (),
        *,
        instructions: str | Callable[..., Any] | PromptProvider | Sequence[Any] = (),
        features: Iterable[Feature] = (),
    ) -> None:
        self.name = name
        self.tools: tuple[Tool, ...] = tuple([as_tool(given) for given in tools])
        if brings := _brings(name, instructions, features):
            self.tools = tuple([MemberTool(tool, brings) for tool in self.tools])
        names = self.names
        if doubled := {one for one in names if names.count(one) > 1}:
            raise UserError(
                f"toolset {name!r} has two tools named {min(doubled)!r}: tell them apart with prefixed() "
                "or renamed()",
                toolset=name,
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its tools."""
        return tuple([tool.spec.definition.name for tool in self.tools])

    def filtered(self, predicate: Predicate) -> Toolset:
        """Its tools, each offered only in turns in which `predicate(context, definition)` holds."""
        return Toolset(self.name, [FilteredTool(tool, predicate) for tool in self.tools])

    def prefixed(self, prefix: str) -> Toolset:
        """Its tools as `prefix_name`.

        Raises:
            UserError: a name would be none that providers take.
        """
        return self.renamed({f"{prefix}_{name}": name for name in self.names})

    def renamed(self, names: Mapping[str, str]) -> Toolset:
        """Its tools with some under other names; the mapping is from the new name to the old.

        Raises:
            UserError: there is no such tool, a name is none that providers take, or two would be the same.
        """
        if missing := sorted(set(names.values()) - set(self.names)):
            raise UserError(
                f"toolset {self.name!r} has no tool {missing[0]!r} to rename, only {', '.join(self.names)}; "
                "the mapping is from the new name to the old",
                toolset=self.name,
            )
        new = {old: name for name, old in names.items()}
        both = zip(self.tools, self.names, strict=True)
        return Toolset(self.name, [RenamedTool(tool, new[old]) if old in new else tool for tool, old in both])

    def __add__(self, other: Toolset) -> Toolset:
        """Both together.

        Raises:
            UserError: they share a tool's name.
        """
        name = self.name if self.name == other.name else f"{self.name}+{other.name}"
        return Toolset(name, (*self.tools, *other.tools))

    def __iter__(self) -> Iterator[Tool]:
        return iter(self.tools)

    def __len__(self) -> int:
        return len(self.tools)

    def __repr__(self) -> str:
        return f"<Toolset {self.name}: {', '.join(self.names)}>"


def brought_by(tools: Iterable[Tool]) -> tuple[Brings, ...]:
    """What the toolsets of these tools bring, each once, in the order of the tools."""
    return tuple(dict.fromkeys(brings for tool in tools for brings in getattr(tool, "brings", ())))


def _brings(name: str, instructions: Any, features: Any) -> Brings | None:
    if isinstance(instructions, str) or callable(instructions) or provides_prompt(instructions):
        instructions = (instructions,) if instructions else ()
    texts, given = tuple(instructions), tuple(features)
    for text in texts:
        if not (isinstance(text, str) or callable(text) or provides_prompt(text)):
            raise UserError(f"toolset {name!r}: instructions= takes text and functions, not {text!r}")
    for feature in given:
        if not isinstance(feature, Feature):
            raise UserError(
                f"toolset {name!r}: features= takes features, such as MaxTurns(5), not {feature!r}"
            )
    return Brings(name, texts, given) if texts or given else None

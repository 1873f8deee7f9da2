"""Toolset: tools that belong together, under one name, and what can be made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from flyball.core.errors import UserError
from flyball.tool.decorator import as_tool
from flyball.tool.protocol import Tool
from flyball.tool.wrapped import FilteredTool, Predicate, RenamedTool


class Toolset:
    """Tools under one name, no two of which have the same. It never changes: each method gives a new one.

    Raises:
        UserError: two tools have the same name, or no tool can be made of what was given.
    """

    __slots__ = ("name", "tools")

    def __init__(self, name: str, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        self.name = name
        self.tools: tuple[Tool, ...] = tuple([as_tool(given) for given in tools])
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

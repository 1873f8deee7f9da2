"""Registry: the tools that there are, by name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

from flyball.core.context import RunContext
from flyball.core.errors import ToolNotFound, UserError
from flyball.core.tools import ToolDefinition
from flyball.tool.availability import ToolAvailability, availability
from flyball.tool.decorator import as_tool
from flyball.tool.protocol import Tool


class Registry:
    """Tools by name, in the order in which they were registered. No two have the same name.

    What a registry lists as available was asked just then; getting a tool does not ask.
    """

    __slots__ = ("_tools",)

    def __init__(self, *tools: Tool | Callable[..., Any]) -> None:
        self._tools: dict[str, Tool] = {}
        for given in tools:
            self.register(given)

    def register(self, given: Tool | Callable[..., Any]) -> Tool:
        """Add a tool, or a function as a tool.

        Raises:
            UserError: there is one of that name, or no tool can be made of it.
        """
        tool = as_tool(given)
        name = tool.spec.definition.check().name
        if name in self._tools:
            raise UserError(
                f"there are two tools named {name!r}; give one another name: tool(name=...)", name=name
            )
        self._tools[name] = tool
        return tool

    def get(self, name: str) -> Tool:
        """The tool of that name.

        Raises:
            ToolNotFound: there is none; the message names those that are nearest.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolNotFound(f"there is no tool {name!r}; {self._nearest(name)}", tool=name)
        return tool

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(self._tools)

    def all_definitions(self) -> list[ToolDefinition]:
        """The definitions of all tools."""
        return [tool.spec.definition for tool in self]

    async def definitions(self, context: RunContext[Any]) -> list[ToolDefinition]:
        """The definitions of the tools that can work now."""
        answers = await self._ask(context)
        return [tool.spec.definition for tool, answer in zip(self, answers, strict=True) if answer.available]

    async def check_availability(self, context: RunContext[Any]) -> list[ToolAvailability]:
        """Which tools can work now, and why the others cannot; sorted by name."""
        return sorted(await self._ask(context), key=lambda answer: answer.name)

    async def _ask(self, context: RunContext[Any]) -> list[ToolAvailability]:
        return await asyncio.gather(*[availability(tool, context) for tool in self])

    def _nearest(self, name: str) -> str:
        from difflib import get_close_matches

        near = get_close_matches(name, self._tools, n=3)
        if near:
            return f"did you mean {' or '.join([repr(match) for match in near])}?"
        return f"there are: {', '.join(self._tools)}" if self._tools else "none are registered"

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

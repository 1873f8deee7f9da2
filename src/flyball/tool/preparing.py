"""Preparing tools: what the model is told of them in a turn, and of which it is told at all.

A tool's own function is `prepare(ctx, definition)`: it gives the definition, perhaps a changed one, or None
to leave the tool out. An agent's is `ToolsPrepare`: it is asked after them, about all that is on offer.
Neither can change a tool's name, nor how its calls are treated (`sequential`, time-outs): that is its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, TypeAlias, cast

from msgspec.structs import replace

from flyball.core.context import RunContext
from flyball.core.encodable import to_json
from flyball.core.errors import UserError
from flyball.core.feature import FunctionFeature
from flyball.core.tools import ToolDefinition

ToolPrepare: TypeAlias = Callable[
    [RunContext[Any], ToolDefinition], "ToolDefinition | Awaitable[ToolDefinition | None] | None"
]
"""Gives a tool's definition for a turn, or None to leave the tool out; it may be async."""


class ToolsPrepare(FunctionFeature):
    """Decides before each model call of which tools the model is told, and what: `check(ctx, definitions)`.

    It gives the definitions that are left, changed or not, in any order: the model is shown them in the
    agent's. The output's tools are not among them.
    """


def to_change(definition: ToolDefinition) -> ToolDefinition:
    """A copy of a definition that may be changed in place: the recorded one must not be."""
    return replace(definition, parameters=to_json(definition.parameters), extra=to_json(definition.extra))


def check_prepared(given: Any, who: str, offered: Mapping[str, ToolDefinition]) -> ToolDefinition:
    """A definition that a preparation gave, if it is of a tool on offer.

    Raises:
        UserError: it is not; the message says who gave what.
    """
    if not isinstance(given, ToolDefinition):
        raise UserError(f"{who} gave a {type(given).__name__}, not a ToolDefinition")
    if given.name not in offered:
        raise UserError(
            f"{who} gave the tool {given.name!r}, which is not on offer; a name cannot be changed, and on "
            f"offer are: {', '.join(offered) or 'none'}",
            tool=given.name,
        )
    return given.check()


def check_all_prepared(
    given: Any, who: str, offered: Mapping[str, ToolDefinition]
) -> dict[str, ToolDefinition]:
    """The definitions that a preparation of all tools gave, by name, if they are of tools on offer.

    Raises:
        UserError: they are not, or one stands there twice; the message says who gave what.
    """
    if not isinstance(given, Iterable) or isinstance(given, str | Mapping):
        raise UserError(f"{who} gave {given!r:.100}: it must give the definitions that are left")
    left: dict[str, ToolDefinition] = {}
    for one in cast("Iterable[Any]", given):
        definition = check_prepared(one, who, offered)
        if definition.name in left:
            raise UserError(f"{who} gave the tool {definition.name!r} twice", tool=definition.name)
        left[definition.name] = definition
    return left

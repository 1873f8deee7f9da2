"""What is said about a server's tools when it is named: which of them, what they are called, their policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeAlias, TypedDict, cast

from flyball.core.errors import UserError
from flyball.core.tools import Safety, ToolDefinition

SafetyName: TypeAlias = Safety | Literal["idempotent", "at_least_once", "at_most_once"]
Approval: TypeAlias = bool | Collection[str] | Callable[[ToolDefinition], bool]
"""Which tools need approval: all or none, those of these names or patterns, or as a function says."""

CONNECT_TIMEOUT = 30.0
CALL_TIMEOUT = 300.0


class ServerOptions(TypedDict, total=False):
    """How a server's tools are taken.

    Names and patterns (`read_*`, as a shell has them) are of the server's own names, without a prefix.

    Attributes:
        name: what the server is called in errors; by default its program, or its host.
        prefix: tools are called `prefix__name`. Without it, as the server calls them, in signs that providers
            take.
        allow: only tools of these names and patterns. Each must fit at least one.
        deny: none of these names and patterns, whatever `allow` says. A name must be that of a tool.
        approval: True, names and patterns, or a function of the definition, whose `extra` has the server's
            `annotations`: which tools need approval.
        safety: whether calls may be repeated when nobody knows whether they ran, for all tools or by name or
            pattern. By default as the server's annotations say: `idempotent` if it is read-only or so marked.
        timeout: seconds that a call may take, 300 by default; None leaves it to `DefaultToolTimeout`.
        connect_timeout: seconds that the server has to start, answer and list its tools; 30 by default.
        instructions: whether what the server says about itself is told to the model, as instructions of the
            toolset. By default not: it is somebody else's text.
    """

    name: str
    prefix: str
    allow: Collection[str]
    deny: Collection[str]
    approval: Approval
    safety: SafetyName | Mapping[str, SafetyName]
    timeout: float | None
    connect_timeout: float
    instructions: bool


def check_options(options: ServerOptions) -> None:
    """Look whether the options can be.

    Raises:
        UserError: one is unknown, or has a value that cannot work.
    """
    given = cast("Mapping[str, Any]", options)
    if unknown := sorted(given.keys() - ServerOptions.__annotations__.keys()):
        known = ", ".join(ServerOptions.__annotations__)
        raise UserError(f"an MCP server has no option {unknown[0]!r}; there are {known}")
    for option in ("name", "prefix"):
        if option in given and not isinstance(given[option], str):
            raise _refused(option, given[option], "text")
    for option in ("allow", "deny"):
        if option in given and not _are_names(given[option]):
            raise _refused(option, given[option], "a list of names and patterns")
    approval = given.get("approval", False)
    if not (isinstance(approval, bool) or callable(approval) or _are_names(approval)):
        raise _refused("approval", approval, "True, False, a list of names and patterns, or a function")
    safeties = given.get("safety")
    by_name = cast("Mapping[Any, Any]", safeties) if isinstance(safeties, Mapping) else {"*": safeties}
    if safeties is not None and not all(one in tuple(Safety) for one in by_name.values()):
        raise _refused("safety", cast("object", safeties), f"one of {', '.join(Safety)}, for all or by name")
    for option in ("timeout", "connect_timeout"):
        seconds = given.get(option, 1.0)
        if seconds is None and option == "timeout":
            continue
        if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise _refused(option, seconds, "seconds greater than 0")
    if not isinstance(given.get("instructions", False), bool):
        raise _refused("instructions", given["instructions"], "True or False")


def _are_names(given: Any) -> bool:
    if isinstance(given, str | bytes) or not isinstance(given, Collection):
        return False
    return all(isinstance(name, str) and name for name in cast("Collection[Any]", given))


def _refused(option: str, value: object, wanted: str) -> UserError:
    return UserError(f"an MCP server's {option}={value!r} cannot be; it must be {wanted}", option=option)

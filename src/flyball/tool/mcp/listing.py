"""A server's listing of a tool as data, and the spec that a loop records for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from flyball.core.encodable import clean_text
from flyball.core.errors import SchemaMalformed
from flyball.core.tools import Safety, ToolDefinition, ToolSpec
from flyball.tool.given_schema import check_given
from flyball.tool.mcp.options import CALL_TIMEOUT, ServerOptions
from flyball.tool.mcp.selection import fits, needs_approval


class Listed(Struct, frozen=True):
    """One tool as a server lists it. `annotations` are its hints, under the protocol's names."""

    name: str
    schema: dict[str, Any]
    description: str = ""
    title: str = ""
    annotations: dict[str, Any] = {}


class Listing(Struct, frozen=True):
    """What a server said of itself and its tools. `changes`: it tells when its tools are others."""

    tools: tuple[Listed, ...] = ()
    instructions: str = ""
    changes: bool = False

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, as the server has them."""
        return tuple([tool.name for tool in self.tools])


def spec_of(server: str, listed: Listed, name: str, options: ServerOptions, *, changes: bool) -> ToolSpec:
    """The spec of a tool which is called `name` here.

    Raises:
        SchemaMalformed: its schema is none of an object.
    """
    try:
        parameters = check_given(name, listed.schema)
    except SchemaMalformed as error:
        raise SchemaMalformed(
            f"MCP server {server!r}: {error.message}; leave it out with deny=[{listed.name!r}]",
            server=server,
            tool=listed.name,
        ) from error
    extra: dict[str, Any] = {}
    if listed.title:
        extra["title"] = clean_text(listed.title)
    if listed.annotations:
        extra["annotations"] = listed.annotations
    definition = ToolDefinition(
        name=name,
        parameters=parameters,
        description=clean_text(listed.description or listed.title),
        extra=extra or None,
    )
    return ToolSpec(
        definition=definition,
        safety=_safety(listed, options),
        timeout=options.get("timeout", CALL_TIMEOUT),
        approval=needs_approval(options.get("approval", False), listed.name, definition),
        checks_availability=changes,
    )


def _safety(listed: Listed, options: ServerOptions) -> Safety:
    given = options.get("safety")
    if isinstance(given, Mapping):
        said = [safety for pattern, safety in given.items() if fits(listed.name, [pattern])]
        given = said[0] if said else None
    if given is not None:
        return Safety(given)
    repeatable = any(listed.annotations.get(hint) is True for hint in ("readOnlyHint", "idempotentHint"))
    return Safety.IDEMPOTENT if repeatable else Safety.AT_LEAST_ONCE

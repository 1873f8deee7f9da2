"""Which of a server's tools are taken, and which of them need approval. Plain functions of names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import Any

from flyball.core.errors import UserError
from flyball.core.tools import ToolDefinition
from flyball.tool.mcp.options import Approval, ServerOptions

_PATTERN = frozenset("*?[")


def fits(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name is one of these, or fits one of the patterns."""
    return any(name == pattern or fnmatchcase(name, pattern) for pattern in patterns)


def selected(server: str, names: Sequence[str], options: ServerOptions) -> tuple[str, ...]:
    """The names that are taken, in their order: those that `allow` has, without those that `deny` has.

    Raises:
        UserError: a name, or a pattern of `allow`, is that of no tool; the message says which are near.
    """
    allow, deny = options.get("allow"), options.get("deny", ())
    check_named(server, "deny", names, deny)
    if allow is None:
        return tuple([name for name in names if not fits(name, deny)])
    check_named(server, "allow", names, allow, patterns=True)
    return tuple([name for name in names if fits(name, allow) and not fits(name, deny)])


def needs_approval(approval: Approval, name: str, definition: ToolDefinition) -> bool:
    """Whether calls of a tool, which the server calls by this name, need approval."""
    if isinstance(approval, bool):
        return approval
    return bool(approval(definition)) if callable(approval) else fits(name, approval)


def unless_read_only(definition: ToolDefinition) -> bool:
    """For `approval=`: all tools that the server does not mark as read-only. It takes the server's word."""
    annotations: Any = (definition.extra or {}).get("annotations") or {}
    return annotations.get("readOnlyHint") is not True


def check_named(
    server: str, option: str, names: Sequence[str], wanted: Collection[str], *, patterns: bool = False
) -> None:
    """Look whether each name is that of a tool; with `patterns`, whether each pattern fits one, too.

    A pattern that is to leave tools out may be there for tools that are not.

    Raises:
        UserError: one is not; the message says which are near.
    """
    for name in wanted:
        is_pattern = not _PATTERN.isdisjoint(name)
        if (is_pattern and not patterns) or any(fits(one, [name]) for one in names):
            continue
        near = get_close_matches(name, names, cutoff=0.5)
        there = f"did you mean {' or '.join(map(repr, near))}?" if near else f"it has {_some(names)}"
        raise UserError(
            f"{option}=[{name!r}]: MCP server {server!r} has no such tool; {there}", server=server, near=near
        )


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return (", ".join(names[:20]) + more) if names else "none"

"""ToolDefinition, ToolChoice, Usage and RunUsage in gollem's JSON."""

from __future__ import annotations

from typing import Any, cast

from msgspec.structs import asdict

from flyball.core.forms.fields import Fields, entered, filled, malformed, written
from flyball.core.messages import JSON
from flyball.core.tools import ToolChoice, ToolDefinition, ToolKind
from flyball.core.usage import RunUsage, Usage

_DEFINITION = frozenset(
    {
        "name",
        "description",
        "parameters_schema",
        "kind",
        "strict",
        "sequential",
        "outer_typed_dict_key",
    }
)
_CHOICE = frozenset({"mode", "tool_name"})
_COUNTS = ("input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens")
_USAGE = frozenset({*_COUNTS, "details"})
_RUN_USAGE = _USAGE | {"requests", "tool_calls"}


def read_tool_definition(document: object) -> ToolDefinition:
    """What the model is told about a tool. No kind is a function.

    Raises:
        InvalidMessage: it is malformed.
    """
    fields = Fields(entered(document, "tool"), "tool")
    kind = fields.text("kind") or ToolKind.FUNCTION
    if kind not in list(ToolKind):
        raise malformed(fields.place("kind"), f"one of {', '.join(ToolKind)}", kind)
    return ToolDefinition(
        name=fields.text("name"),
        description=fields.text("description"),
        parameters=fields.mapping("parameters_schema") or {},
        kind=ToolKind(kind),
        strict=fields.flag("strict"),
        sequential=fields.flag("sequential") or False,
        outer_key=fields.text("outer_typed_dict_key") or None,
        extra=fields.rest(),
    )


def write_tool_definition(tool: ToolDefinition) -> dict[str, JSON]:
    """What the model is told about a tool."""
    known: dict[str, JSON] = {"name": tool.name}
    known |= filled(description=tool.description)
    known |= {"parameters_schema": tool.parameters, "kind": str(tool.kind)}
    if tool.strict is not None:  # a pointer in Go: false is not empty
        known["strict"] = tool.strict
    known |= filled(sequential=tool.sequential, outer_typed_dict_key=tool.outer_key)
    return written(known, tool.extra, _DEFINITION)


def read_tool_choice(document: object) -> ToolChoice:
    """How free the model is in its choice of a tool; a name beside auto, or alone, forces that tool.

    Raises:
        InvalidMessage: there is no such mode.
    """
    fields = Fields(entered(document, "tool_choice"), "tool_choice")
    mode, name = fields.text("mode") or "auto", fields.text("tool_name") or None
    if mode not in ("auto", "required", "none"):
        raise malformed(fields.place("mode"), "one of auto, required, none", mode)
    if mode == "auto" and name:
        mode = "function"
    return ToolChoice(cast("Any", mode), name, extra=fields.rest())


def write_tool_choice(choice: ToolChoice) -> dict[str, JSON]:
    """How free the model is in its choice of a tool; a forced tool stands alone, without a mode."""
    mode = "" if choice.forced else choice.mode
    return written(filled(mode=mode, tool_name=choice.tool_name), choice.extra, _CHOICE)


def read_usage(document: object) -> Usage:
    """What a model call used.

    Raises:
        InvalidMessage: it is malformed.
    """
    return usage_from(entered(document, "usage"), "usage")


def usage_from(value: JSON, where: str) -> Usage:
    """A usage out of a document that was entered already."""
    fields = Fields(value, where)
    return Usage(**_counts(fields), extra=fields.rest())


def write_usage(usage: Usage) -> dict[str, JSON]:
    """What a model call used; zeros are left out."""
    return written(_filled_counts(usage), usage.extra, _USAGE)


def read_run_usage(document: object) -> RunUsage:
    """What a run used.

    Raises:
        InvalidMessage: it is malformed.
    """
    return run_usage_from(entered(document, "usage"), "usage")


def run_usage_from(value: JSON, where: str) -> RunUsage:
    """A run's usage out of a document that was entered already."""
    fields = Fields(value, where)
    counts = _counts(fields)
    requests, tool_calls = fields.whole("requests") or 0, fields.whole("tool_calls") or 0
    return RunUsage(**counts, requests=requests, tool_calls=tool_calls, extra=fields.rest())


def write_run_usage(usage: RunUsage) -> dict[str, JSON]:
    """What a run used: Go writes the embedded Usage into the same object."""
    known = _filled_counts(usage) | {"requests": usage.requests, "tool_calls": usage.tool_calls}
    return written(known, usage.extra, _RUN_USAGE)


def _counts(fields: Fields) -> dict[str, Any]:
    counts: dict[str, Any] = {key: fields.whole(key) or 0 for key in _COUNTS}
    if details := fields.mapping("details"):
        inner = Fields(details, fields.place("details"))
        counts["details"] = {key: inner.whole(key) or 0 for key in details}
    return counts


def _filled_counts(usage: Usage) -> dict[str, JSON]:
    mine = asdict(usage)
    return filled(**{key: mine[key] for key in (*_COUNTS, "details")})

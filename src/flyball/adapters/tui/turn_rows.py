"""Rows of one turn: exactly what was sent, what came back, what decided."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from flyball.adapters.tui.lines import Look
from flyball.adapters.tui.rows import CallRow, NoteRow, Row, TextRow, seconds
from flyball.core.encodable import as_text
from flyball.core.messages import Message, Retry, Role, Text, Thinking, ToolCall, ToolResult
from flyball.inference.request import Request
from flyball.orchestrate.projections.explanation import Explanation, Turn

_ROLES: dict[Role, Look] = {
    Role.SYSTEM: "warn",
    Role.USER: "person",
    Role.ASSISTANT: "model",
    Role.TOOL: "tool",
}


def turn_rows(told: Explanation) -> list[Row]:
    """The turns of an explanation, one after the other."""
    return [row for number, turn in enumerate(told.turns) for row in _turn(turn, f"t{number}", told.model)]


def _turn(turn: Turn, key: str, model: str) -> Iterator[Row]:
    attempt = f", attempt {turn.attempt}" if turn.attempt > 1 else ""
    sent = "sent" if turn.called else "not sent"
    yield NoteRow(f"{key}sent", "→", f"{sent} to {model}, as {turn.sent.id}{attempt}", "strong")
    yield from _request(turn.sent, f"{key}s")
    usage = turn.answer.usage if turn.answer is not None else None
    tokens = f", {usage.input_tokens} → {usage.output_tokens} tokens" if usage is not None else ""
    what = "came back" if turn.answer or turn.error else "nothing came back yet"
    yield NoteRow(f"{key}back", "←", f"{what} after {seconds(turn.duration)}{tokens}", "strong")
    if turn.error is not None:
        yield NoteRow(f"{key}error", "✘", f"{turn.error.code}: {turn.error.message}", "bad")
    message = turn.answer or turn.partial
    if message is not None:
        yield from _message(message, f"{key}a")
    for number, record in enumerate(turn.tools):
        call = ToolCall(record.call_id, record.name, as_text(record.arguments))
        result = ToolResult(record.call_id, record.name, record.result, record.error, record.status)
        yield CallRow(f"{key}c{number}", call, result, record.duration)
    if turn.decided:
        yield NoteRow(f"{key}by", "=", "decided by", "strong")
    for number, text in enumerate(turn.decided):
        yield NoteRow(f"{key}d{number}", "•", text, "warn")


def _request(sent: Request, key: str) -> Iterator[Row]:
    for number, message in enumerate(sent.messages):
        yield from _message(message, f"{key}m{number}")
    for tool in sent.tools:
        about = f"{tool.description}\n{as_text(tool.parameters)}"
        yield TextRow(f"{key}t{tool.name}", f"tool on offer: {tool.name}", about, "tool", "dim")
    if sent.output is not None:
        yield TextRow(f"{key}o", "schema of the answer", as_text(sent.output.schema), "tool", "dim")
    if sent.grammar is not None:
        yield TextRow(f"{key}g", "grammar of the answer", sent.grammar, "tool", "dim")
    settings = msgspec.to_builtins(sent.settings)
    if sent.tool_choice is not None:
        settings["tool_choice"] = msgspec.to_builtins(sent.tool_choice)
    yield TextRow(f"{key}x", "settings", as_text(settings) if settings else "the model's own", "tool", "dim")


def _message(message: Message, key: str) -> Iterator[Row]:
    look = _ROLES[message.role]
    for number, part in enumerate(message.parts):
        name = f"{key}.{number}"
        if isinstance(part, Text):
            yield TextRow(name, message.role, part.text, look)
        elif isinstance(part, Thinking | Retry):
            yield TextRow(name, f"{message.role}, {type(part).__name__.lower()}", part.text, look, "dim")
        elif isinstance(part, ToolCall):
            yield TextRow(name, f"{message.role} calls {part.name} ({part.id})", part.args_json, look)
        elif isinstance(part, ToolResult):
            yield TextRow(name, f"tool {part.name} ({part.call_id})", part.text, look)
        else:
            yield NoteRow(name, "▣", f"{type(part).__name__.lower()} {part.url[:200]}")

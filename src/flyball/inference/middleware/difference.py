"""In what a request differs from another, as data, and the request again from that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from flyball.core.around import Sent
from flyball.core.edits import edited, edits_between
from flyball.core.errors import JournalCorrupt
from flyball.core.messages import Message
from flyball.core.tools import ToolDefinition
from flyball.inference.request import OutputObject, Request

_REST: dict[str, Any] = {
    "output": OutputObject | None,
    "grammar": str | None,
    "allows_text": bool,
    "id": str,
    "deadline": float | None,
}
"""The fields of a request that are rarely changed, with their types."""


def difference(made: Request, request: Request) -> Sent:
    """In what a request differs from the one that was made. `restored` gives it back."""
    if request is made:
        return Sent()
    changed = [name for name in _REST if getattr(request, name) != getattr(made, name)]
    return Sent(
        edits_between(made.messages, request.messages),
        None if request.settings == made.settings else request.settings,
        None if request.tools == made.tools else _tools(made.tools, request.tools),
        UNSET if request.tool_choice == made.tool_choice else request.tool_choice,
        {name: msgspec.to_builtins(getattr(request, name)) for name in changed} or None,
    )


def restored(made: Request, sent: Sent, messages: Sequence[Message] | None = None) -> Request:
    """The request that was sent where `made` was asked for.

    `messages` are those that the edits are of, where they are not those of the request.

    Raises:
        JournalCorrupt: what was recorded of it cannot be read.
    """
    rest = sent.rest or {}
    try:
        changes: dict[str, Any] = {
            name: msgspec.convert(rest[name], kind) for name, kind in _REST.items() if name in rest
        }
    except msgspec.ValidationError as error:
        raise JournalCorrupt(f"what was sent to the model cannot be read: {error}") from error
    if sent.edits or messages is not None:
        changes["messages"] = tuple(edited(made.messages if messages is None else messages, sent.edits))
    if sent.settings is not None:
        changes["settings"] = sent.settings
    if sent.tools is not None:
        there = {tool.name: tool for tool in made.tools}
        tools = [there.get(tool) if isinstance(tool, str) else tool for tool in sent.tools]
        changes["tools"] = tuple([tool for tool in tools if tool is not None])
    if sent.tool_choice is not UNSET:
        changes["tool_choice"] = sent.tool_choice
    return replace(made, **changes) if changes else made


def can_be_recorded(made: Request, request: Request) -> bool:
    """Whether a request would be read back from what is recorded of it."""
    try:
        written = msgspec.json.encode(difference(made, request))
        return restored(made, msgspec.json.decode(written, type=Sent)) == request
    except (msgspec.MsgspecError, TypeError, ValueError, JournalCorrupt):
        return False


def _tools(
    made: Sequence[ToolDefinition], offered: Sequence[ToolDefinition]
) -> tuple[str | ToolDefinition, ...]:
    there = {tool.name: tool for tool in made}
    return tuple([tool.name if there.get(tool.name) == tool else tool for tool in offered])

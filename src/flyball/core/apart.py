"""Copies of what is recorded, for code that may change what it is given.

Structs are frozen, but the JSON in them is not: a list in a tool's result is a list. What holds nothing that
can be changed is not copied.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.correlation import Correlation
from flyball.core.messages import Message, Part, Text, ToolCall, ToolResult

T = TypeVar("T")

_UNCHANGING = frozenset({str, int, float, bool, type(None), Correlation})


def apart(value: T) -> T:
    """A value that nothing can be changed through; JSON, structs and tuples of them."""
    if type(value) in _UNCHANGING:
        return value
    made: Any = value
    if isinstance(value, dict):
        made = {key: apart(item) for key, item in cast("dict[str, Any]", value).items()}
    elif isinstance(value, list):
        made = [apart(item) for item in cast("list[Any]", value)]
    elif isinstance(value, tuple):
        items = cast("tuple[Any, ...]", value)
        copies = [apart(item) for item in items]
        if any(copy is not item for copy, item in zip(copies, items, strict=True)):
            made = tuple(copies)
    elif isinstance(value, Struct):
        before = {name: getattr(value, name) for name in value.__struct_fields__}
        after = {name: apart(item) for name, item in before.items()}
        changes = {name: item for name, item in after.items() if item is not before[name]}
        if changes:
            made = replace(value, **changes)
    return made


def messages_apart(messages: Iterable[Message]) -> tuple[Message, ...]:
    """Messages that nothing can be changed through."""
    return tuple([message if _is_plain(message) else apart(message) for message in messages])


def _is_plain(message: Message) -> bool:
    """Whether a message certainly holds nothing that can be changed: most do not."""
    usage = message.usage
    if message.extra is not None or (usage is not None and (usage.details or usage.extra)):
        return False
    return all(_is_plain_part(part) for part in message.parts)


def _is_plain_part(part: Part) -> bool:
    if type(part) is Text:
        return part.extra is None
    if type(part) is ToolCall:
        return part.extra is None and part.metadata is None and part.provider_data is None
    if type(part) is ToolResult:
        plain = part.extra is None and part.metadata is None and not part.images
        return plain and type(part.content) in _UNCHANGING
    return False

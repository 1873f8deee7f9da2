"""Messages as the wire can hold them: a word stands in the place of what it has none for.

Writing a message with images, audio or documents is refused, because something would be lost. Whoever sends
what was never meant to leave them out (a trajectory, a request that carries the exact one beside it) says so
by passing it through here.
"""

from __future__ import annotations

from msgspec.structs import replace

from flyball.core.messages import Audio, Document, Image, Message, Part, Text, ToolResult


def portable_message(message: Message) -> Message:
    """The message with a word for each part that the wire cannot hold; the same one if there is none."""
    parts = tuple([_portable(part) for part in message.parts])
    return message if parts == message.parts else replace(message, parts=parts)


def portable_result(result: ToolResult) -> ToolResult:
    """The result without images; the same one if it has none."""
    return replace(result, images=()) if result.images else result


def _portable(part: Part) -> Part:
    if isinstance(part, ToolResult):
        return portable_result(part)
    if not isinstance(part, Image | Audio | Document):
        return part
    what = type(part).__name__.lower()
    return Text(f"[{what}]" if part.url.startswith("data:") else f"[{what}: {part.url}]")

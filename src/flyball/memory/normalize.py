"""NormalizeHistory: what no provider takes, and old images of tools, are not sent."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from flyball.core.messages import Message, Role, ToolResult
from flyball.memory.processor import HistoryProcessor
from flyball.memory.valid import made_valid


class NormalizeHistory(HistoryProcessor):
    """Leaves out tool results without their call, images that tools gave before, and what is empty then.

    A tool's images are sent in the turn that follows it, and no more. What the user shows stays.
    """

    def __init__(self) -> None:
        super().__init__(normalized, "normalize_history")


def normalized(messages: Sequence[Message]) -> list[Message]:
    """What `NormalizeHistory` sends. The messages that it is given are not touched."""
    requests = [index for index, message in enumerate(messages) if message.role in (Role.USER, Role.TOOL)]
    made = list(messages)
    for index in requests[:-1]:
        if any(result.images for result in messages[index].tool_results):
            made[index] = replace(
                messages[index],
                parts=tuple(
                    [
                        replace(part, images=()) if type(part) is ToolResult else part
                        for part in messages[index].parts
                    ]
                ),
            )
    return made_valid(made)

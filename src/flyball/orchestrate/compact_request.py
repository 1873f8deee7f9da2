"""The request for a summary: what the model is sent that makes one. Pure, like the machine."""

from __future__ import annotations

from flyball.core.effects import Infer
from flyball.core.messages import Message, Part, Role, Thinking, ToolCall, ToolResult, system, user
from flyball.core.truncation import truncate_text
from flyball.inference.request import Request
from flyball.orchestrate.compacted import to_sum_up
from flyball.orchestrate.state import State

_LONGEST = 2_000
"""How many tokens of one part of a message are shown: what a tool gave may be longer than all else."""
_SPEAKERS = {Role.SYSTEM: "System", Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tools"}


def compact_request(state: State, effect: Infer) -> Request:
    """What a model is sent that is to sum up: its instructions, and the conversation as one text."""
    compactor = state.spec.compactor
    assert compactor is not None
    told = "\n\n".join([_written(message) for message in to_sum_up(state)])
    return Request(
        (system(compactor.instructions), user(f"The conversation:\n\n{told}")),
        settings=compactor.settings,
        id=effect.id,
        deadline=state.deadline,
    )


def _written(message: Message) -> str:
    said = [truncate_text(text, _LONGEST) for part in message.parts if (text := _part(part))]
    return f"{_SPEAKERS[message.role]}: {chr(10).join(said)}"


def _part(part: Part) -> str:
    """A part in words; thinking is left out: its answer says what came of it."""
    if isinstance(part, ToolCall):
        return f"calls {part.name}({part.args_json})"
    if isinstance(part, ToolResult):
        images = "".join([" [image]" for _ in part.images])
        return f"{part.name} gave: {part.text}{images}"
    if isinstance(part, Thinking):
        return ""
    text: str | None = getattr(part, "text", None)
    return f"[{type(part).__name__.lower()}]" if text is None else text

"""Messages made such that every provider takes them, where little is amiss: a slice of a history, say."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from flyball.core.cutting import asked_before, cut_at, leads_on
from flyball.core.messages import Message, Part, Role, Thinking, ToolCall, ToolResult

_SYSTEM, _USER, _ASSISTANT, _TOOL = Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL


def made_valid(messages: Sequence[Message]) -> list[Message]:
    """The messages without what no provider takes; those of a valid history come back as they are.

    - Results without their call, and calls without their result, are left out.
    - What then has nothing to say is left out, and so is what stands before the user's first message.
    - Two messages of one speaker in a row become one.

    What was in no order at all may still be refused by `core.history.check_history`.
    """
    made: list[Message] = []
    begun = False
    for message in _paired(messages):
        role = message.role
        begun = begun or role is _USER
        if not begun and role is not _SYSTEM:
            continue
        if made and made[-1].role is role and role in (_USER, _ASSISTANT):
            made[-1] = replace(message, parts=(*made[-1].parts, *message.parts))
        else:
            made.append(message)
    return made


def led_by_user(messages: Sequence[Message], whole: Sequence[Message]) -> Sequence[Message]:
    """A part of a history that begins with an answer or with results, led by what they are about.

    Results have the calls before them, and those what the user had said last. What begins with the user, or
    with what is not of that history, comes back as it is.
    """
    lead = 1 if messages and messages[0].role is _SYSTEM else 0
    if len(messages) > lead + 1 and leads_on(messages[lead]):
        messages = [*messages[:lead], *messages[lead + 1 :]]  # it comes back with what it leads on from
    if len(messages) == lead or messages[lead].role is _USER:
        return messages
    index = next((at for at, message in enumerate(whole) if message is messages[lead]), 0)
    if not index:
        return messages
    first = cut_at(whole, index)
    return [*messages[:lead], *asked_before(whole, first), *whole[first:index], *messages[lead:]]


def _paired(messages: Sequence[Message]) -> list[Message]:
    """The messages in which each call has its result right behind it, and each result its call before."""
    paired: list[Message] = []
    index = 0
    while index < len(messages):
        message = messages[index]
        index += 1
        calls = {call.id for call in message.tool_calls} if message.role is _ASSISTANT else set[str]()
        results: dict[str, ToolResult] = {}
        given: list[Message] = []
        while calls and index < len(messages) and messages[index].role is _TOOL:
            given.append(messages[index])
            for result in messages[index].tool_results:
                if result.call_id in calls:
                    results.setdefault(result.call_id, result)
            index += 1
        if message.role is _TOOL:
            continue  # nobody has asked for it
        if calls != results.keys():
            message = _without_calls(message, calls - results.keys())
        if message.parts:
            paired.append(message)
        if results:
            parts = tuple(results.values())
            paired.append(given[0] if given[0].parts == parts else replace(given[0], parts=parts))
    return paired


def _without_calls(message: Message, ids: set[str]) -> Message:
    """An answer without some of its calls; nothing of it, where nothing but thinking would be left."""
    parts: tuple[Part, ...] = tuple(
        [part for part in message.parts if not (type(part) is ToolCall and part.id in ids)]
    )
    return replace(message, parts=() if all(type(part) is Thinking for part in parts) else parts)

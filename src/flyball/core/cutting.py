"""Making a history shorter where it may be cut: what comes of it is as valid as it was.

A history that every provider takes (`core.history`) begins with a system message or the user, and a message
with tool results follows the one that asked for them. So it may be cut before each message that holds no
results. What is left of it begins with its system message, and with something that the user has said.
"""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.edits import Edit
from flyball.core.messages import Message, Role, Text

_SYSTEM, _USER, _ASSISTANT, _TOOL = Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.TOOL
GO_ON = "Go on from there."
"""What the user says between what stands in the place of old messages and an answer that is kept."""


def head_of(messages: Sequence[Message]) -> int:
    """How many messages are always kept: the system message, if there is one, and the user's first."""
    return 2 if messages and messages[0].role is _SYSTEM else 1


def cut_at(messages: Sequence[Message], index: int) -> int:
    """The place at or before `index` where a history may be cut: no call is parted from its results."""
    while 0 < index < len(messages) and messages[index].role is _TOOL:
        index -= 1
    return index


def tail_of(messages: Sequence[Message], index: int) -> list[Message]:
    """A history from a place on at which it may be cut, with its system message before it.

    Where what is left would begin with an answer, it begins with what the user had said last before that:
    the answer is still about it.
    """
    lead = head_of(messages) - 1
    if index <= lead:
        return list(messages)
    if leads_on(messages[index]):
        index += 1  # it comes back with what it leads on from
    before = () if messages[index].role is _USER else asked_before(messages, index)
    return [*messages[:lead], *before, *messages[index:]]


def asked_before(messages: Sequence[Message], index: int) -> Sequence[Message]:
    """What the user had said last before a place; where that only leads on from a summary, with that.

    A summary stands behind what it goes on from: the task, and then what came of it.
    """
    said = [at for at in range(index) if messages[at].role is _USER]
    if not said:
        return ()
    last = said[-1]
    if len(said) > 1 and leads_on(messages[last]) and messages[last - 1].role is _ASSISTANT:
        return messages[said[-2] : last + 1] if said[-2] == last - 2 else (messages[said[-2]],)
    return (messages[last],)


def leads_on(message: Message) -> bool:
    """Whether the user has not said it: it stands between a summary and an answer that is kept."""
    return message.role is _USER and message.text == GO_ON


def can_be_summed_up(messages: Sequence[Message], stop: int) -> bool:
    """Whether what lies between the head of a history and `stop` may be replaced by one answer."""
    return head_of(messages) < stop < len(messages) and messages[stop].role is not _TOOL


def summed_up(messages: Sequence[Message], stop: int, text: str) -> Edit:
    """The edit that puts one answer in the place of what lies between the head of a history and `stop`."""
    said = Message(_ASSISTANT, (Text(text),))
    on = (Message(_USER, (Text(GO_ON),)),) if messages[stop].role is _ASSISTANT else ()
    return Edit(head_of(messages), stop, (said, *on))

"""Asking the history processors, each about what the one before left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from flyball.core.apart import messages_apart
from flyball.core.compaction import ContextCompaction
from flyball.core.context import RunContext
from flyball.core.errors import InvalidMessage, UserError
from flyball.core.history import check_history
from flyball.core.messages import Message, Role
from flyball.memory.processor import HistoryProcessor
from flyball.memory.valid import led_by_user, made_valid
from flyball.orchestrate.awaiting import answer_of
from flyball.orchestrate.failing import as_rule
from flyball.orchestrate.recordable import recordable


async def processed(
    processors: Sequence[HistoryProcessor], context: RunContext[Any], messages: Sequence[Message]
) -> tuple[Sequence[Message], list[str], list[ContextCompaction]]:
    """What is sent in the place of messages, who changed something, and by how much it became shorter.

    Raises:
        InvalidMessage: a processor gave what no provider takes.
        FlyballError: a processor failed.
    """
    notes: list[str] = []
    told: list[ContextCompaction] = []
    for processor in processors:
        given = await _given(processor, context, messages)
        if given == messages:
            continue
        notes.append(processor.name)
        try:
            compaction = processor.compaction(messages, given)
        except Exception as error:
            raise as_rule(error, f"the history processor {processor.name!r} failed") from error
        if compaction is not None:
            told.append(compaction)
        messages = given
    return messages, notes, told


async def _given(
    processor: HistoryProcessor, context: RunContext[Any], messages: Sequence[Message]
) -> tuple[Message, ...]:
    shown = messages_apart(messages)
    try:
        made: Any = await answer_of(processor.process, context, shown)
    except Exception as error:
        raise as_rule(error, f"the history processor {processor.name!r} failed") from error
    given = tuple(cast("Iterable[Any]", made)) if isinstance(made, Iterable) else None
    if given is None or not all(type(message) is Message for message in given):
        raise UserError(
            f"the history processor {processor.name!r} gave {made!r:.200}: it must give a list of messages"
        )
    if given and shown[0].role is Role.SYSTEM and given[0].role is not Role.SYSTEM:
        given = (shown[0], *given)  # a slice is of what was said: the instructions hold all the same
    return _sound(processor, messages, led_by_user(given, shown))


def _sound(
    processor: HistoryProcessor, before: Sequence[Message], given: Sequence[Message]
) -> tuple[Message, ...]:
    """What a processor gave, made such that every provider takes it."""
    known = {id(message) for message in before}
    try:
        made = made_valid(led_by_user(given, before))
        check_history(made, complete=True)
        return tuple([one if id(one) in known else recordable(one, "a message") for one in made])
    except (InvalidMessage, UserError) as error:
        raise InvalidMessage(
            f"the history processor {processor.name!r} gave messages that cannot be sent: {error.message}",
            processor=processor.name,
        ) from error

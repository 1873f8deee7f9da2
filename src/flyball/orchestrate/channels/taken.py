"""What came of something that was said: what its sender is answered at once, also where it was not taken."""

from __future__ import annotations

import time

from msgspec import Struct

from flyball.core.errors import FlyballError, InvalidMessage
from flyball.core.forms.semstreams import ResponseType, UserMessage, UserResponse, UserSignal
from flyball.orchestrate.channels.address import Address

_PLACE = ("channel_type", "channel_id", "user_id", "thread_id")
_IDS = (*_PLACE, "message_id", "signal_id", "reply_to", "loop_id")
_LONGEST = 512
"""Characters of the longest id."""


class Taken(Struct, frozen=True):
    """What came of something that was said: `begun`, where it began a loop."""

    kind: ResponseType
    text: str
    loop_id: str = ""
    begun: bool = False


def begun(loop_id: str) -> Taken:
    """It began a loop."""
    return Taken(ResponseType.STATUS, f"begun: {loop_id}", loop_id, begun=True)


def fed_back_to(loop_id: str, how: str = "") -> Taken:
    """It reached a loop that is under way."""
    return Taken(ResponseType.STATUS, f"said to {loop_id}{how}", loop_id)


def answered(said: UserMessage | UserSignal, taken: Taken) -> UserResponse:
    """What came of something, as its sender is told it."""
    name = said.signal_id if isinstance(said, UserSignal) else said.message_id
    # What is told of a loop that has begun comes after this.
    known_as = f"{taken.loop_id}/0" if taken.begun else f"{name}/taken"
    in_reply_to = taken.loop_id or name
    return Address.of(said).response(taken.kind, taken.text, known_as, time.time(), in_reply_to=in_reply_to)


def refusal(said: UserMessage | UserSignal, error: FlyballError) -> UserResponse:
    """What somebody is answered whose words were not taken: why.

    Raises:
        InvalidMessage: they do not say who says them, and where: nobody can be answered.
    """
    check_answerable(said)
    return answered(said, Taken(ResponseType.ERROR, error.message))


def check_answerable(said: UserMessage | UserSignal) -> None:
    """See that something says who says it, and where, whatever else is wrong with it.

    Raises:
        InvalidMessage: it does not.
    """
    if isinstance(said, UserSignal):
        said.require("signal_id", "user_id")
    else:
        said.require("message_id", "channel_type", "channel_id", "user_id")
    check_ids(said, (*_PLACE, "message_id", "signal_id"))


def check_ids(said: UserMessage | UserSignal, names: tuple[str, ...] = _IDS) -> None:
    """See that ids are such as can be written down, and told apart.

    Raises:
        InvalidMessage: one is not.
    """
    for name in names:
        value: str = getattr(said, name, "")
        if len(value) > _LONGEST or not value.isprintable() or (value and not value.strip()):
            raise InvalidMessage(
                f"{name} is {value[:60]!r}: give up to {_LONGEST} characters that can be printed",
                field=name,
            )

"""What was told of a loop, told again from its journals, in an order that is the same each time.

All that is told on a channel has a place: the time of what it tells of, the loop, the number of the event,
and which of the things it is that the event has led to. Who was told all up to a place goes on after it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.events import ChildStarted, Ended
from flyball.core.forms.semstreams import UserResponse
from flyball.orchestrate.channels.audience import Audience
from flyball.orchestrate.followed import Recorded
from flyball.orchestrate.journal import Journal

_ID = re.compile(
    r"(?P<loop>.*?)/(?P<number>[0-9]{1,12})"
    r"(?:/answer|(?P<of_several>/(?:piece|call|asked)/[0-9]+|/answer/[0-9a-f]{12}))?",
    re.DOTALL,
)
"""The ids that `Telling` makes: the loop, the event's number, and which of the things that it has led to."""
_PIECE = "/piece/"


class Place(Struct, frozen=True, order=True):
    """Where something stands among all that is told on a channel."""

    at: float
    loop_id: str
    number: int
    which: int = 0


class Retold(Struct, frozen=True):
    """What was told of a loop and of those under it, each with its place, in order.

    `times` are those of the events of each of these loops; `over` is whether the loop itself is.
    """

    told: tuple[tuple[Place, UserResponse], ...]
    times: Mapping[str, list[float]]
    over: bool

    @property
    def known(self) -> dict[str, int]:
        """Up to which event each of the loops was told of."""
        return {name: len(times) for name, times in self.times.items()}

    def place(self, last: str) -> Place | None:
        """The place of the response with this id; None where none of these loops has such an event.

        Of one that is not told here (in passing, or to others) it is the one that is surely before it.
        """
        found = next((place for place, response in self.told if response.response_id == last), None)
        loop_id, number = place_of(last)
        times = self.times.get(loop_id)
        if found is not None or not times:
            return found
        number = min(number, len(times))
        return Place(times[max(number, 1) - 1], loop_id, number, sys.maxsize)


async def retold(journal: Journal, audience: Audience, loop_id: str) -> Retold:
    """What an audience was told of a loop and of those under it, as far as they are recorded now.

    Raises:
        JournalFailure: one of them cannot be read.
    """
    told: list[tuple[Place, UserResponse]] = []
    times: dict[str, list[float]] = {}
    over, end = False, inf
    waiting = [loop_id]
    while waiting:
        name = waiting.pop()
        if name in times:
            continue
        events, telling = await journal.read(name), audience.telling(within=name != loop_id)
        times[name] = []
        for number, event in enumerate(events, 1):
            responses = await audience.told(telling, Recorded(number, event))
            at = min(telling.at, end)
            times[name].append(at)
            told += [
                (Place(at, name, number, which), replace(response, timestamp=at))
                for which, response in enumerate(responses)
            ]
            if isinstance(event, ChildStarted):
                waiting.append(event.loop_id)
        if name == loop_id:
            over = bool(events) and isinstance(events[-1], Ended)
            if over:  # nothing under it happened after that, whatever somebody's clock says
                end = telling.at
    told.sort(key=lambda one: one[0])
    return Retold(tuple(told), times, over)


def comes_back_to(response: UserResponse) -> Place | None:
    """The place of something that is told as it happens, for who comes back; None where it is in passing."""
    found = _ID.fullmatch(response.response_id)
    if found is None or (found["of_several"] or "").startswith(_PIECE):
        return None
    return Place(response.timestamp or 0.0, found["loop"], int(found["number"]))


def place_of(name: str) -> tuple[str, int]:
    """The loop and the number of the event that a response tells of, by its id; ("", 0) of any other text."""
    found = _ID.fullmatch(name)
    if found is None:
        return "", 0
    # What comes after a piece, after one of several prompts or calls may be of the same event.
    return found["loop"], max(int(found["number"]) - (found["of_several"] is not None), 0)

"""What is kept in mind of loops: within bounds, and what was not asked for for longest is forgotten first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Remembered(Generic[T]):
    """Things by their names, no more of them than `most`, and together no heavier than `heaviest`."""

    __slots__ = ("_heaviest", "_most", "_things", "_weigh", "_weight")

    def __init__(self, most: int, heaviest: int, weigh: Callable[[T], int]) -> None:
        self._most = most
        self._heaviest = heaviest
        self._weigh = weigh
        self._weight = 0
        self._things: OrderedDict[str, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._things)

    def get(self, name: str) -> T | None:
        """What is kept under a name; it is then the last that is forgotten."""
        thing = self._things.get(name)
        if thing is not None:
            self._things.move_to_end(name)
        return thing

    def take(self, name: str) -> T | None:
        """What is kept under a name, which is not kept any longer: whoever takes it has it alone."""
        thing = self._things.pop(name, None)
        if thing is not None:
            self._weight -= self._weigh(thing)
        return thing

    def keep(self, name: str, thing: T) -> None:
        """Keep something, in the place of what was kept under its name."""
        self.take(name)
        self._things[name] = thing
        self._weight += self._weigh(thing)
        while self._things and (len(self._things) > self._most or self._weight > self._heaviest):
            self._weight -= self._weigh(self._things.popitem(last=False)[1])

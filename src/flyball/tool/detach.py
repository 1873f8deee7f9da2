"""Detaches: the calls that run in this process and look out for being asked to detach."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from weakref import WeakValueDictionary

from flyball.core.detach import Detach


class Detaches:
    """One detach for each call that looks, as long as it does; who looks late sees what was asked before."""

    def __init__(self, most: int = 10_000) -> None:
        """`most`: so many calls are remembered that were asked; of a worker's, the oldest are long over."""
        self._looking: WeakValueDictionary[str, _Asked] = WeakValueDictionary()
        self._asked: dict[str, None] = {}
        self._most = most

    def detach(self, call: str, *, asked: bool = False) -> Detach:
        """See `DetachSource.detach`."""
        found = self._looking.get(call)
        if found is None:
            found = self._looking[call] = _Asked()
        if asked or call in self._asked:
            found.set()
        return found

    def ask(self, calls: Iterable[str]) -> None:
        """Ask these calls to detach."""
        for call in calls:
            self._asked[call] = None
            if len(self._asked) > self._most:
                del self._asked[next(iter(self._asked))]
            found = self._looking.get(call)
            if found is not None:
                found.set()


class _Asked:
    __slots__ = ("__weakref__", "_event")

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def set(self) -> None:
        self._event.set()

    def is_set(self) -> bool:
        return self._event.is_set()

    async def wait(self) -> None:
        await self._event.wait()

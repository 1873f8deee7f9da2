"""Detaches: the calls that run in this process and look out for being asked to detach."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from weakref import WeakValueDictionary

from flyball.core.detach import Detach


class Detaches:
    """One detach for each call that has asked for it, as long as the call holds it."""

    def __init__(self) -> None:
        self._looking: WeakValueDictionary[str, _Asked] = WeakValueDictionary()

    def detach(self, call: str, *, asked: bool = False) -> Detach:
        """See `DetachSource.detach`."""
        found = self._looking.get(call)
        if found is None:
            found = self._looking[call] = _Asked()
        if asked:
            found.set()
        return found

    def ask(self, calls: Iterable[str]) -> None:
        """Ask these calls to detach, those of them that look."""
        for call in calls:
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

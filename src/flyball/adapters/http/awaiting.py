"""Models that are not on this disk yet: who asks one that is on its way comes again, or waits for it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from flyball.adapters.http.problems import Gone, ShuttingDown
from flyball.core.errors import FlyballError

_WAIT = re.compile(r"(?:^|[,;\s])wait\s*=\s*\"?([0-9]{1,6})\b", re.IGNORECASE)
"""How many seconds a caller would rather wait than be sent away (RFC 7240)."""
_LONGEST = 3600.0


class Arriving(Protocol):
    """Models that are fetched while the server runs."""

    def missing(self, model: str | None = None) -> FlyballError | None:
        """Why a model cannot be asked yet (None: any of them); None where it can."""
        ...

    async def wait(self, model: str) -> None:
        """Wait until a model is here."""
        ...


class Awaiting:
    """Keeps requests from models that are not here. `arriving` is None where all are."""

    def __init__(self, arriving: Arriving | None = None) -> None:
        self._arriving = arriving
        self._ending = asyncio.Event()

    def missing(self, model: str | None = None) -> FlyballError | None:
        """Why a model cannot be asked yet (None: any of them); None where it can."""
        return None if self._arriving is None else self._arriving.missing(model)

    async def have(
        self, model: object, headers: Mapping[str, str], gone: Callable[[], Awaitable[None]]
    ) -> None:
        """Go on if a model is here; who prefers to wait, does.

        Args:
            model: what an agent has: only names are fetched.
            headers: the request's; `Prefer: wait=60` is how long its caller waits.
            gone: waits until the caller has gone away.

        Raises:
            ModelBeingFetched: it is not here; details `retry_after` says when to come again.
            Gone: the caller has gone away meanwhile.
            ShuttingDown: the server ends first.
        """
        if self._arriving is None or not isinstance(model, str) or self._arriving.missing(model) is None:
            return
        wanted = _WAIT.search(headers.get("prefer", ""))
        if wanted:
            await self._wait(self._arriving.wait(model), gone(), min(float(wanted[1]), _LONGEST))
        if (missing := self._arriving.missing(model)) is not None:
            raise missing

    async def _wait(self, here: Awaitable[None], gone: Awaitable[None], seconds: float) -> None:
        waits = [asyncio.ensure_future(one) for one in (here, gone, self._ending.wait())]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            if waits[1].done():
                raise Gone("who asked has gone away")
            if waits[2].done():
                raise ShuttingDown("the server is about to end: come again soon", {"Retry-After": "5"})
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def end(self) -> None:
        """Let nobody wait any longer."""
        self._ending.set()

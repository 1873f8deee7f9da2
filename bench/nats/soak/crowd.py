"""The processes of the soak: some that serve one thing, some that serve all; each can be killed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from bench.nats.children import Child, start
from flyball.runtime.nats import NatsOptions

ALL = ("loop", "model", "tools")
KINDS: tuple[tuple[str, ...], ...] = (("loop",), ("loop",), ("model",), ("tools",), ("tools",), ALL, ALL)
"""What each process serves. One more serves all, and is never killed: its memory is looked at."""
HOLD = 2.0
"""Seconds after which a dead worker's work is given to another: short, so that it happens often."""


def name_of(kind: Sequence[str]) -> str:
    """What a kind of process is called."""
    return "all" if len(kind) > 1 else kind[0]


class Crowd:
    """The processes, from the beginning of the block to its end."""

    def __init__(self, options: NatsOptions, notes: Path, said: Path) -> None:
        """`notes` is what the tools write; `said` is what the processes say on standard error."""
        self._options = options
        self._notes = notes
        self._said = said.open("ab")
        self._children: list[Child] = []

    async def __aenter__(self) -> Self:
        self._children = [await self._started(kind) for kind in (*KINDS, ALL)]
        return self

    @property
    def spared(self) -> int:
        """The process that is never killed."""
        return self._children[len(KINDS)].pid

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._children:
            child.kill()
        await asyncio.gather(*[child.gone() for child in self._children])
        self._said.close()

    async def kill(self, number: int) -> None:
        """Kill one with SIGKILL, whatever it does, and start another one in its place."""
        self._children[number].kill()
        await self._children[number].gone()
        self._children[number] = await self._started(KINDS[number])

    async def _started(self, kind: Sequence[str]) -> Child:
        told: dict[str, Any] = {
            "options": msgspec.to_builtins(self._options),
            "notes": str(self._notes),
            "serve": list(kind),
            "hold": HOLD,
        }
        return await start("bench.nats.soak.worker", told, self._said)

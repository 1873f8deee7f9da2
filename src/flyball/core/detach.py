"""Detach: how a running tool is asked to move its work to the background and return."""

from __future__ import annotations

from typing import Protocol


class Detach(Protocol):
    """What a tool sees of it, as `ctx.detach`. Nothing is done to a tool that does not look."""

    def is_set(self) -> bool:
        """Whether somebody has asked this call to detach."""
        ...

    async def wait(self) -> None:
        """Wait until somebody does."""
        ...


class DetachSource(Protocol):
    """Who knows whether a call was asked to detach: whoever runs it."""

    def detach(self, call: str, *, asked: bool = False) -> Detach:
        """What a call looks at, by its idempotency key. `asked`: it was asked before it was run."""
        ...

"""Nowhere: the journal of who is of no tenant, on a server that is for tenants only. It keeps nothing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from flyball.core.errors import UnknownTenant
from flyball.core.events import Event


class Nowhere:
    """A journal that is none's. The server looks through it whether it can serve anybody."""

    def __init__(self, check: Callable[[], Awaitable[None]]) -> None:
        """`check` raises where nobody can be served."""
        self.check = check

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        """Keep nothing."""
        raise _refusal()

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        """Have nothing."""
        raise _refusal()

    async def wait(self, loop_id: str, length: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """Wait for nothing."""
        raise _refusal()

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        """Have none."""
        raise _refusal()

    async def sizes(self, loop_ids: Sequence[str]) -> list[int]:
        """Have nothing. Asked whether it answers at all, it does: `check` tells the rest."""
        if tuple(loop_ids) == ("ready",):
            return [0]
        raise _refusal()


def _refusal() -> UnknownTenant:
    return UnknownTenant(
        "this server is for tenants, and who asks is of none: use a token with one "
        "(flyball tokens add NAME --tenant TENANT)",
        tenant="",
    )

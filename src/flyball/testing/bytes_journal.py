"""A journal in memory that keeps bytes, as one on disk or behind a wire does."""

from __future__ import annotations

from collections.abc import Sequence

from flyball.core.codec import decode_event, encode_event
from flyball.core.errors import UserError
from flyball.core.events import Event
from flyball.orchestrate.journal import MemoryJournal


class BytesJournal:
    """Every event is encoded when it is appended and decoded when it is read: nothing else gets through."""

    def __init__(self) -> None:
        self.bytes: dict[str, list[bytes]] = {}
        self._order = MemoryJournal()

    async def append(self, loop_id: str, events: Sequence[Event], expected: int) -> int:
        """See `Journal.append`.

        Raises:
            UserError: an event holds what JSON cannot.
        """
        try:
            encoded = [encode_event(event) for event in events]
        except (TypeError, ValueError) as error:
            raise UserError(f"an event of loop {loop_id!r} is not writable: {error}") from error
        length = await self._order.append(loop_id, events, expected)
        self.bytes.setdefault(loop_id, []).extend(encoded)
        return length

    async def read(self, loop_id: str, start: int = 0) -> list[Event]:
        """See `Journal.read`."""
        return [decode_event(data, loop_id) for data in self.bytes.get(loop_id, [])[start:]]

    async def wait(self, loop_id: str, length: int, timeout: float | None = None) -> bool:  # noqa: ASYNC109
        """See `Journal.wait`."""
        return await self._order.wait(loop_id, length, timeout)

    async def loops(self, before: str = "", limit: int | None = None) -> list[str]:
        """See `Journal.loops`."""
        return await self._order.loops(before, limit)

    async def sizes(self, loop_ids: Sequence[str]) -> list[int]:
        """See `Journal.sizes`."""
        return await self._order.sizes(loop_ids)

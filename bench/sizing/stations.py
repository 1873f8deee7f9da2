"""What is waited for: some servers with one queue before them, first come, first served."""

from __future__ import annotations

import heapq


class Station:
    """Cores, or the lanes of a disk, or the one thread of a worker. Who comes first is first."""

    def __init__(self, servers: int = 1) -> None:
        self.busy = 0.0
        """Seconds of work so far, of all servers."""
        self._free = [0.0] * servers

    @property
    def servers(self) -> int:
        """How many there are."""
        return len(self._free)

    def take(self, now: float, seconds: float) -> float:
        """When work that comes now is done."""
        done = max(now, self._free[0]) + seconds
        heapq.heapreplace(self._free, done)
        self.busy += seconds
        return done

"""Providers for tests."""

from __future__ import annotations

from collections.abc import Iterable

from flyball.identity.did import DID
from flyball.identity.stored import MemoryProvider
from flyball.testing.clock import FakeClock


def memory(clock: FakeClock, trusted: Iterable[DID] = ()) -> MemoryProvider:
    return MemoryProvider(now=clock.now, trusted=trusted)

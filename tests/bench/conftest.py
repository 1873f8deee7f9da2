"""The scripted model's globals are put back after each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bench.flyball_peer import c as workloads


@pytest.fixture(autouse=True)
def _workloads_as_they_were() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]
    yield
    workloads.CONCURRENT = False
    workloads.calls = workloads.seen = 0

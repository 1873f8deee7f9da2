from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from flyball.runtime.sqlite import SQLiteJournal
from flyball.runtime.sqlite.schema import Synchronous


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture(params=["full", "normal"])
async def journal(path: Path, request: pytest.FixtureRequest) -> AsyncGenerator[SQLiteJournal]:
    synchronous: Synchronous = request.param
    async with SQLiteJournal(path, synchronous=synchronous, busy_timeout=0.2, poll_interval=0.005) as journal:
        yield journal

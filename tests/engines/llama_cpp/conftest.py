"""A real model in a real child, loaded once a worker. Its file is fetched once, and shared by all runs."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.inference.permission import VARIABLE
from flyball.models import SMALL, pull


@pytest.fixture(autouse=True)
def models_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")


@pytest.fixture(scope="session")
def smollm() -> Path:
    """The small model's file. Two workers that want it at once fetch it once."""
    return pull(SMALL)


@pytest.fixture(scope="session")
def engine(smollm: Path) -> Generator[LlamaCppEngine]:
    """An engine whose model is loaded; short contexts, because memory is shared by the workers."""
    assert smollm.exists()
    engine = LlamaCppEngine(SMALL, context=2048, parallel=2)
    yield engine
    asyncio.run(engine.aclose())

"""A real model in a real child, loaded once a worker. Its file is fetched once, and shared by all runs."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.inference.permission import VARIABLE
from flyball.models import SMALL, pull
from tests.constraint.grammar.tiny_model import write_tiny_model


@pytest.fixture(autouse=True)
def models_may_be_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1")


@pytest.fixture(scope="session")
def smollm() -> Path:
    """The small model's file. Two workers that want it at once fetch it once."""
    return pull(SMALL)


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that knows nothing and is loaded in no time: for what is about processes, not about answers."""
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="session")
def engine(smollm: Path) -> Generator[LlamaCppEngine]:
    """An engine whose model is loaded; short contexts, because memory is shared by the workers."""
    assert smollm.exists()
    engine = LlamaCppEngine(SMALL, context=2048, parallel=2)
    yield engine
    asyncio.run(engine.aclose())

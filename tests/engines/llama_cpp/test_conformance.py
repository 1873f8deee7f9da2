"""The embedded engine keeps the promises of every engine, with a real model."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.inference.engine import Engine
from flyball.inference.request import Request
from flyball.testing.conformance import EngineConformance
from tests.engines.llama_cpp.asking import ask, pid_of
from tests.models.files import gguf


class TestLlamaCppEngine(EngineConformance):
    deterministic = False

    @pytest.fixture(autouse=True)
    def _set_up(self, engine: LlamaCppEngine, tmp_path: Path) -> None:
        self.engine = engine
        self.no_model = tmp_path / "no-model.gguf"
        self.no_model.write_bytes(gguf(8))

    @pytest.fixture
    async def stalled(self, engine: LlamaCppEngine):
        """A child that takes requests and is silent: it is stopped, and goes on after the test."""
        await engine.load()
        os.kill(pid_of(engine), signal.SIGSTOP)
        yield
        os.kill(pid_of(engine), signal.SIGCONT)

    def make_engine(self) -> Engine:
        return self.engine

    def make_request(self, prompt: str) -> Request:
        return ask(prompt)

    def make_stalled_engine(self) -> Engine:
        return self.engine

    def make_failing_engine(self) -> Engine:
        return LlamaCppEngine(self.no_model)

    def open_calls(self, engine: Engine) -> int:
        assert isinstance(engine, LlamaCppEngine)
        return engine.open_calls

    @pytest.mark.usefixtures("stalled")
    async def test_cancelling_infer_ends_it(self) -> None:
        await super().test_cancelling_infer_ends_it()

    @pytest.mark.usefixtures("stalled")
    async def test_cancelling_a_stream_ends_it(self) -> None:
        await super().test_cancelling_a_stream_ends_it()

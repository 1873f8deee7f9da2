"""`local` names the embedded engine; whoever names one model has one child."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from msgspec.structs import replace

from flyball import Agent
from flyball.core.errors import ModelDownloadFailed, ModelRequestsForbidden, UnknownModel
from flyball.core.settings import ModelSettings
from flyball.engines.llama_cpp import LlamaCppEngine, engine_for, sharing
from flyball.engines.llama_cpp.locating import locate
from flyball.inference.model_string import parse_model
from flyball.inference.permission import forbid_model_requests
from flyball.inference.registry import resolve_engine
from flyball.models import DEFAULT, SMALL, Model, set_progress, standing_in
from tests.engines.llama_cpp.asking import alive, ask, pid_of
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def nothing_stays() -> Generator[None]:
    yield
    sharing.close_all()
    set_progress(None)


def local(name: str) -> LlamaCppEngine:
    engine = resolve_engine(f"local:{name}")
    assert isinstance(engine, LlamaCppEngine)
    return engine


@pytest.fixture
def elsewhere(tiny: Path) -> str:
    """The same file by another name."""
    return os.path.relpath(tiny)


async def test_users_of_one_model_share_a_child_until_the_last_has_closed(tiny: Path, elsewhere: str) -> None:
    one, other, third = local(str(tiny)), local(str(tiny)), local(elsewhere)
    assert (await one.infer(ask("Hello", 2))).content
    pid = pid_of(one)
    assert pid_of(other) == pid_of(third) == pid
    await one.aclose()
    await one.aclose()
    assert (await other.infer(ask("Hello", 2))).content
    await third.aclose()
    assert alive(pid)
    await other.aclose()
    assert not alive(pid)
    again = local(str(tiny))
    assert (await again.infer(ask("Hello", 2))).content


def test_an_agent_answers_run_after_run(smollm: Path) -> None:
    agent = Agent(f"local:{smollm}", settings=ModelSettings(max_tokens=4, temperature=0.0))
    assert agent.run_sync("Hello").output
    assert agent.run_sync("Hello again").output


def test_names_are_checked_before_anything_is_started() -> None:
    with pytest.raises(UnknownModel, match="did you mean 'smollm2-135m'"):
        engine_for(parse_model("local:smollm2-135"))
    assert engine_for(parse_model("local")).model_info().name == DEFAULT.name


async def test_nothing_is_fetched_where_models_are_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYBALL_HOME", str(tmp_path / "home"))
    with forbid_model_requests(), pytest.raises(ModelRequestsForbidden):
        await local(SMALL.name).infer(ask("Hello"))
    assert not (tmp_path / "home").exists()


class Lines(logging.Handler):
    """Keeps what was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def log() -> Generator[list[str]]:
    handler = Lines()
    logger = logging.getLogger("flyball.local")
    logger.addHandler(handler)
    yield handler.lines
    logger.removeHandler(handler)


@pytest.fixture
def no_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and nothing to fill it from."""
    monkeypatch.setenv("FLYBALL_HOME", str(tmp_path))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return tmp_path


def test_where_the_default_cannot_be_had_the_small_one_answers_and_it_is_said(
    no_network: Path, smollm: Path, log: list[str]
) -> None:
    blobs = no_network / "models" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / smollm.name).symlink_to(smollm)
    assert locate("").name == SMALL.name
    assert f"{DEFAULT.name} is not on this disk yet and is fetched (491 MB)" in log[0]
    assert f"so {SMALL.name} answers" in log[-1]


def test_where_neither_can_be_had_the_default_is_what_is_missed(
    no_network: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert no_network.exists()
    for name in ("DEFAULT", "SMALL"):  # one place each is enough to find that there is no network
        model: Model = getattr(standing_in, name)
        monkeypatch.setattr(standing_in, name, replace(model, sources=model.sources[:1]))
    told: list[str] = []
    set_progress(lambda done, total, what: told.append(what))
    with pytest.raises(ModelDownloadFailed, match=DEFAULT.name):
        locate("")
    assert any("asking Hugging Face" in what for what in told)


def test_the_child_ends_with_a_program_that_closes_nothing(tiny: Path) -> None:
    program = (
        "import asyncio, sys\n"
        "from flyball.inference.registry import resolve_engine\n"
        "engine = resolve_engine('local:' + sys.argv[1])\n"
        "print(asyncio.run(engine.load()).pid, flush=True)\n"
    )
    finished = subprocess.run(
        [sys.executable, "-c", program, str(tiny)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert not alive(int(finished.stdout))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
async def test_after_a_fork_the_child_stays_the_parents(tiny: Path) -> None:
    program = (
        "import asyncio, os, sys\n"
        "from flyball.inference.registry import resolve_engine\n"
        "engine = resolve_engine('local:' + sys.argv[1])\n"
        "first = asyncio.run(engine.load()).pid\n"
        "if os.fork() == 0:\n"
        "    second = asyncio.run(engine.load()).pid\n"
        "    assert second != first\n"
        "    sys.exit(0)\n"
        "assert os.wait()[1] == 0\n"
        "os.kill(first, 0)\n"
        "assert asyncio.run(engine.load()).pid == first\n"
    )
    finished = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-W", "ignore", "-c", program, str(tiny)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr

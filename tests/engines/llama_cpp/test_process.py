"""A child that dies is told and replaced, one that cannot start says why, and none outlives its parent."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from flyball.core.errors import EngineError, MissingExtra, MissingLibrary, ModelFileInvalid, UnknownModel
from flyball.engines.llama_cpp import LlamaCppEngine, child, process
from tests.engines.llama_cpp.asking import LONG, alive, ask, pid_of, until
from tests.models.files import gguf
from tests.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
ENDLESS = 3500
"""Tokens that take the tiny model longer than any of these tests looks at it."""


@pytest.fixture
async def own(tiny: Path) -> AsyncGenerator[LlamaCppEngine]:
    """An engine of this test's own, from a path: its child may be killed."""
    engine = LlamaCppEngine(tiny, parallel=2)
    yield engine
    await engine.aclose()


async def test_a_killed_child_fails_the_calls_it_was_at_and_the_next_call_has_another(
    own: LlamaCppEngine,
) -> None:
    streams = [own.stream(ask(f"Tell me about {what}.", ENDLESS, options=LONG)) for what in ("tea", "ink")]
    for stream in streams:
        await anext(stream)
    first = pid_of(own)
    os.kill(first, signal.SIGKILL)
    for stream in streams:
        with pytest.raises(EngineError, match="ended by SIGKILL while it was answering") as caught:
            async for _ in stream:
                pass
        assert caught.value.retryable
        assert caught.value.details["status"] == -signal.SIGKILL
    assert own.open_calls == 0
    assert (await own.infer(ask("Hello", 2))).content
    assert pid_of(own) != first


async def at_rest(engine: LlamaCppEngine) -> bool:
    await asyncio.sleep(0)
    return engine._host.running is None  # pyright: ignore[reportPrivateUsage]


async def test_a_child_killed_while_idle_is_replaced(own: LlamaCppEngine) -> None:
    ready = await own.load()
    os.kill(ready.pid, signal.SIGKILL)
    await until(lambda: at_rest(own))
    assert own.model_info().name == "tiny"
    assert (await own.infer(ask("Hello", 2))).content


async def test_closing_ends_the_child_and_a_later_call_starts_another(own: LlamaCppEngine) -> None:
    first = (await own.load()).pid
    stream = own.stream(ask("Tell me a story.", ENDLESS, options=LONG))
    await anext(stream)
    await own.aclose()
    assert not alive(first)
    with pytest.raises(EngineError):  # so nobody has waited for the end of the answer
        async for _ in stream:
            pass
    await own.aclose()
    assert (await own.infer(ask("Hello", 2))).content


async def test_a_child_that_is_stuck_is_killed(own: LlamaCppEngine) -> None:
    pid = (await own.load()).pid
    os.kill(pid, signal.SIGSTOP)
    await own.aclose()
    assert not alive(pid)


async def test_an_engine_that_is_closed_while_it_loads_leaves_nothing(smollm: Path) -> None:
    engine = LlamaCppEngine(smollm, context=512)
    waiting = asyncio.ensure_future(engine.load())
    await asyncio.sleep(0)
    await engine.aclose()
    with pytest.raises(EngineError):
        await waiting


async def test_a_child_that_loads_is_not_given_time_to_end(
    smollm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_GRACE", PATIENCE)
    engine = LlamaCppEngine(smollm, context=512)
    waiting = asyncio.ensure_future(engine.load())

    async def started() -> bool:
        await asyncio.sleep(0)
        running = engine._host._child  # pyright: ignore[reportPrivateUsage]
        return running is not None and running._process is not None  # pyright: ignore[reportPrivateUsage]

    await until(started)
    begun = time.monotonic()
    await engine.aclose()
    assert time.monotonic() - begun < PATIENCE
    with pytest.raises(EngineError, match="while it was loading"):
        await waiting


# What cannot be started


async def test_loading_has_a_deadline(tiny: Path) -> None:
    engine = LlamaCppEngine(tiny, start_seconds=0.01)
    with pytest.raises(EngineError, match=r"not loaded within 0\.01 s"):
        await engine.load()
    await engine.aclose()


async def test_a_file_that_is_no_model_is_told(tmp_path: Path) -> None:
    odd = tmp_path / "odd.gguf"
    odd.write_bytes(gguf(8))
    with pytest.raises(ModelFileInvalid, match="unknown model architecture: 'tiny'") as caught:
        await LlamaCppEngine(odd).infer(ask("Hello"))
    assert caught.value.details["stderr"]
    odd.write_bytes(gguf(8)[:-1])
    with pytest.raises(ModelFileInvalid, match="cut short"):
        await LlamaCppEngine(odd).load()
    with pytest.raises(UnknownModel, match="is not there"):
        await LlamaCppEngine(tmp_path / "none.gguf").load()
    with pytest.raises(UnknownModel, match="did you mean 'smollm2-135m'"):
        LlamaCppEngine("smollm2").model_info()


@pytest.mark.skipif(sys.platform != "linux", reason="the way to hide a library is Linux's")
async def test_a_missing_system_library_is_told_with_its_package(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libgomp.so.1").touch()
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    with pytest.raises(MissingLibrary, match=r"libgomp\.so\.1 .*install libgomp1 on Debian"):
        await LlamaCppEngine(tiny).load()


async def test_a_missing_binding_is_told_with_its_extra(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xllamacpp.py").write_text("raise ModuleNotFoundError(\"No module named 'xllamacpp'\")")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(MissingExtra, match=r"pip install 'flyball\[local\]'"):
        await LlamaCppEngine(tiny).load()


async def test_a_child_that_dies_while_it_loads_is_told(
    tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "xllamacpp.py").write_text(
        "import os, sys\nprint('out of memory', file=sys.stderr, flush=True)\nos.abort()"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with pytest.raises(EngineError, match=r"ended by SIGABRT while it was loading.*out of memory"):
        await LlamaCppEngine(tiny).load()


async def test_a_python_that_cannot_be_run_is_told(tiny: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tiny))
    with pytest.raises(EngineError, match="could not be started"):
        await LlamaCppEngine(tiny).load()


# No orphans

PARENT = """
import asyncio, os, sys, threading
from flyball.core.messages import user
from flyball.core.settings import ModelSettings
from flyball.engines.llama_cpp import LlamaCppEngine
from flyball.inference.request import Request

how, path = sys.argv[1:]
engine = LlamaCppEngine(path, parallel=1)

async def main():
    if how == "loading":
        threading.Thread(target=lambda: asyncio.run(engine.load()), daemon=True).start()
        while (process := getattr(engine._host._child, "_process", None)) is None:
            await asyncio.sleep(0)
        print(process.pid, flush=True)
        await asyncio.sleep(600)
    pid = (await engine.load()).pid
    settings = ModelSettings(max_tokens=3500, options={"ignore_eos": True})
    stream = engine.stream(Request((user("Tell me a story."),), settings=settings))
    await anext(stream)
    print(pid, flush=True)
    if how == "killed":
        await asyncio.sleep(600)
    if how == "_exit":
        os._exit(3)
    if how == "raises":
        raise ZeroDivisionError

asyncio.run(main())
"""


@pytest.mark.parametrize("how", ["killed", "loading", "_exit", "raises", "returns"])
def test_the_child_does_not_outlive_its_parent(how: str, tiny: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, how, str(tiny)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
    ) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        if how in {"killed", "loading"}:
            assert alive(pid)
            parent.kill()
        parent.wait(PATIENCE)
        deadline = time.monotonic() + PATIENCE
        while alive(pid):
            assert time.monotonic() < deadline, f"the child {pid} is still there"


def test_a_child_whose_parent_is_gone_already_does_not_begin() -> None:
    finished = subprocess.run(
        [sys.executable, str(Path(child.__file__)), "1"], stdin=subprocess.PIPE, timeout=PATIENCE, check=False
    )
    assert finished.returncode == 1


def test_a_child_whose_input_ends_ends() -> None:
    finished = subprocess.run(
        [sys.executable, str(Path(child.__file__)), str(os.getpid())],
        input=b"",
        timeout=PATIENCE,
        check=False,
    )
    assert finished.returncode == 0

"""Model files: listed, fetched with a bar, removed; and one that is fetched when it is first asked for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from flyball import models
from flyball.adapters.cli import fetching
from flyball.core.errors import ModelDownloadFailed
from flyball.models import DEFAULT, SMALL, Model, models_folder, standing_in
from tests.adapters.cli.conftest import Flyball
from tests.adapters.cli.terminal import OnTerminal

NAME = "hf:owner/repo/tiny.gguf"


def keep(name: str) -> Path:
    """Put a file into the cache, as pulling would."""
    folder, key = models_folder(), sha256(name.encode()).hexdigest()
    for sub in ("blobs", "names", "locks", "incoming"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    blob = folder / "blobs" / f"{key}.gguf"
    blob.write_bytes(b"GGUF")
    (folder / "names" / f"{key}.json").write_text(
        f'{{"name":"{name}","sha256":"{key}","size":4,"source":"here"}}'
    )
    return blob


@pytest.fixture
def pulled(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """In the place of the network: every model but the default arrives at once."""
    asked: list[str] = []

    def pull(model: Model | str, *, progress: Callable[[int, int, str], object]) -> Path:
        name = model if isinstance(model, str) else model.name
        asked.append(name)
        progress(1_000_000, 2_000_000, f"{name}: from somewhere")
        progress(2_000_000, 2_000_000, f"{name}: from somewhere")
        if name == DEFAULT.name:
            raise ModelDownloadFailed(f"{name} could not be fetched", model=name)
        file = tmp_path / "file.gguf"
        file.write_bytes(b"GGUF")
        return file

    monkeypatch.setattr(models, "pull", pull)
    monkeypatch.setattr(standing_in, "pull", pull)
    return asked


def test_the_list(flyball: Flyball, home: Path) -> None:
    keep(NAME)
    said = flyball("models", "list")
    assert (said.code, said.out.count("✓")) == (0, 1)
    assert str(models_folder()) in said.out
    document = flyball("models", "list", "--json").json
    assert [row["name"] for row in document if row["default"]] == [DEFAULT.name]
    assert [row["name"] for row in document if row["here"]] == [NAME]


@pytest.mark.parametrize(
    ("width", "columns"),
    [(40, "model size"), (60, "model size licence"), (100, "model size licence about")],
    ids=["40", "60", "100"],
)
def test_the_list_in_a_narrow_place(on_terminal: OnTerminal, width: int, columns: str) -> None:
    keep("hf:owner/repo/a-file-with-a-rather-long-name.Q4_K_M.gguf")
    terminal = on_terminal("models", "list", COLUMNS=str(width))
    assert terminal.end() == 0
    head, _, *lines = terminal.text.splitlines()
    assert " ".join(head.split()) == columns
    assert all(len(line.rstrip()) <= width for line in [head, *lines[:-1]])
    here = [line for line in lines if line.startswith("✓")]
    assert len(here) == 1
    assert " 4 B" in here[0]


def test_removing(flyball: Flyball, home: Path) -> None:
    blob = keep(NAME)
    said = flyball("models", "remove", NAME)
    assert (said.code, blob.exists()) == (0, False)
    assert "removed" in said.err
    again = flyball("models", "remove", NAME)
    assert (again.code, "CONFIG_UNKNOWN_MODEL" in again.err) == (3, True)
    keep(NAME)
    assert flyball("models", "remove", NAME, "--json").json["name"] == NAME


def test_pulling(flyball: Flyball, pulled: list[str]) -> None:
    said = flyball("models", "pull", SMALL.name)
    assert said.code == 0
    assert said.err.count("from somewhere (2 MB)") == 1
    assert "is here" in said.err
    assert flyball("models", "pull", SMALL.name, "--json").json["size"] == 4
    assert flyball("models", "pull").code == 4, "the default cannot be had here"
    assert pulled == [SMALL.name, SMALL.name, DEFAULT.name]


def test_an_unknown_name_tells_the_nearest(flyball: Flyball) -> None:
    said = flyball("models", "pull", "smollm2")
    assert said.code == 3
    assert SMALL.name in said.err
    assert flyball("ask", "hi", "-m", "local:smollm2").code == 3


async def test_the_smallest_takes_the_place_of_the_default(
    home: Path, pulled: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert await fetching.fetched("local") == f"local:{SMALL.name}"
    assert f"so {SMALL.name} answers, which is smaller" in capsys.readouterr().err
    with pytest.raises(ModelDownloadFailed):
        await fetching.fetched(f"local:{DEFAULT.name}")
    assert await fetching.fetched(f"local:{SMALL.name}") == f"local:{SMALL.name}"
    assert pulled == [DEFAULT.name, SMALL.name, DEFAULT.name, SMALL.name]


async def test_what_is_there_is_not_fetched(
    home: Path, pulled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def cached(model: Any) -> Path | None:
        return Path("here") if model is SMALL or model == "mine" else None

    monkeypatch.setattr(models, "cached", cached)
    monkeypatch.setattr(standing_in, "cached", cached)
    assert await fetching.fetched("local:mine") == "local:mine"
    assert await fetching.fetched("test") == "test"
    assert await fetching.fetched("local") == f"local:{SMALL.name}"
    assert pulled == [DEFAULT.name]


async def test_cancelling_ends_a_download(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    def pull(model: str, *, progress: Callable[[int, int, str], object]) -> Path:
        try:
            while True:
                progress(1, 0, "forever")
                begun.set()
        finally:
            ended.set()

    monkeypatch.setattr(models, "pull", pull)
    task = asyncio.ensure_future(fetching.fetch("x"))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


def test_a_bar_on_a_terminal(on_terminal: OnTerminal, home: Path) -> None:
    """No network, no package index: it says so, and leaves nothing behind."""
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    terminal = on_terminal("models", "pull", "hf:owner/repo/tiny.gguf", **nowhere)
    assert terminal.end() == 4
    assert "INFERENCE_" in terminal.text
    assert not list((home / "models" / "incoming").iterdir())


@pytest.mark.parametrize(("named", "pulls"), [("local", DEFAULT.name), ("local:smollm2-135m", SMALL.name)])
def test_a_file_may_be_named_as_a_model_is(
    flyball: Flyball, home: Path, pulled: list[str], named: str, pulls: str
) -> None:
    flyball("models", "pull", named)
    assert pulled == [pulls]

"""Each test has a cache of its own, and no network but what it sets up."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.models.hub import Hub, serving


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """flyball's folder; Hugging Face is a port where nobody listens, the package index an empty folder."""
    for name in list(os.environ):
        if name.startswith("PIP_") or name in {"HF_TOKEN", "HF_ENDPOINT"}:
            monkeypatch.delenv(name)
    (tmp_path / "index").mkdir()
    monkeypatch.setenv("FLYBALL_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "index"))
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and held: else it may be another's a moment later
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{unused.getsockname()[1]}")
        yield tmp_path / "home"


@pytest.fixture
def index(home: Path) -> Path:
    """The package index: a folder of wheels."""
    return home.parent / "index"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Generator[Hub]:
    """Hugging Face."""
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        yield hub

"""The command line in this process and in processes of its own, each test with a home of its own."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from flyball.adapters.cli import main
from flyball.inference import registry
from tests.adapters.cli.terminal import OnTerminal, Terminal
from tests.patience import PATIENCE


@pytest.fixture(autouse=True)
def hears_hangups() -> Iterator[None]:
    """Also where the tests were begun with nohup: whom they begin would have that from them."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-W", "error", "-m", "flyball.adapters.cli"]
TOOLBOX = "tests.adapters.cli.toolbox"


@dataclass(frozen=True)
class Said:
    """What a command said, and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one document on stdout."""
        return json.loads(self.out)


Flyball = Callable[..., Said]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home for flyball, and the engines `scripted:…` as an installed package would bring them."""
    plugin = tmp_path / "plugin"
    info = plugin / "cli_engines-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: cli-engines\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[flyball.engines]\nscripted = tests.adapters.cli.engines:engine_for\n"
    )
    home, work = tmp_path / "home", tmp_path / "work"
    work.mkdir()
    paths = [str(ROOT / "src"), str(ROOT), str(plugin)]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(paths))
    monkeypatch.setenv("FLYBALL_HOME", str(home))
    for name in ("FLYBALL_MODEL", "NO_COLOR", "FORCE_COLOR", "GO", "CLOSED", "SIGNAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "path", [str(plugin), *sys.path])
    importlib.invalidate_caches()
    # What is installed is looked up once: here it has just changed.
    vars(registry.DEFAULT).pop("_installed", None)
    monkeypatch.chdir(work)
    return home


@pytest.fixture
def flyball(home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Flyball:
    """Run a command in this process; `stdin` is what is piped in."""

    def call(*argv: str, stdin: str | bytes = "") -> Said:
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(data), encoding="utf-8"))
        capsys.readouterr()
        code = main(list(argv))
        said = capsys.readouterr()
        return Said(code, said.out, said.err)

    return call


@pytest.fixture
def process(home: Path) -> Flyball:
    """Run a command in a process of its own."""

    def call(*argv: str, stdin: str | bytes = "", **environment: str) -> Said:
        finished = subprocess.run(
            [*COMMAND, *argv],
            input=stdin if isinstance(stdin, bytes) else stdin.encode(),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
            env={**os.environ, **environment},
        )
        return Said(finished.returncode, finished.stdout.decode(), finished.stderr.decode())

    return call


@pytest.fixture
def start(home: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a command and leave it running."""

    def call(*argv: str, **options: Any) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe, "text": True}
        return subprocess.Popen([*COMMAND, *argv], **(pipes | options))

    return call


@pytest.fixture
def on_terminal(home: Path) -> Iterator[OnTerminal]:
    """Run a command on a terminal of its own."""
    opened: list[Terminal] = []

    def call(*argv: str, **environment: str) -> Terminal:
        opened.append(Terminal(*argv, **environment))
        return opened[-1]

    yield call
    for terminal in opened:
        terminal.close()

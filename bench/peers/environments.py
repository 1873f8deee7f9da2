"""Each peer's own environment, made when it is first needed and whenever what it must hold has changed.

An environment is marked ready when all of it is installed, with a mark that depends on its requirements, the
interpreter and its place. One that was left half-made, or moved, is made anew.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

from bench import ROOT
from bench.peers.frameworks import Framework

ENVIRONMENTS = ROOT / ".venv-peers"
"""Where the environments stand; git ignores it."""

_MARK = "ready"


class Unavailable(Exception):
    """A framework cannot be measured here; the message says why, in a line."""


def is_ready(framework: Framework, folder: Path = ENVIRONMENTS) -> bool:
    """Whether the framework can be used at once."""
    if framework.requirements is None:
        return True
    home = folder / framework.name
    mark = home / _MARK
    return mark.exists() and mark.read_text() == _mark(framework.requirements, home)


def python_of(framework: Framework, folder: Path = ENVIRONMENTS) -> Path:
    """The interpreter of the framework's environment, which is made if it is not ready.

    Raises:
        Unavailable: it cannot be made.
    """
    if framework.requirements is None:
        return Path(sys.executable)
    home = folder / framework.name
    python = home / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not is_ready(framework, folder):
        shutil.rmtree(home, ignore_errors=True)
        _do(framework, "make its environment", [sys.executable, "-m", "venv", str(home)])
        install = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--require-hashes"]
        wanted = ["--requirement", str(framework.requirements)]
        _do(framework, "install it", [str(python), "-m", "pip", *install, *wanted])
        (home / _MARK).write_text(_mark(framework.requirements, home))
    return python


def _do(framework: Framework, what: str, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{framework.name}: cannot {what}: {_reason(done.stderr, done.returncode)}")


def _reason(said: str, code: int) -> str:
    """The line that tells most: pip's last error, or else the last line there is."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or [f"exit code {code}"])[-1]


def _mark(requirements: Path, home: Path) -> str:
    return sha256(repr((requirements.read_bytes(), sys.version, str(home.resolve()))).encode()).hexdigest()

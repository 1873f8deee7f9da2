"""A worker as seen from the command: a process in a framework's environment that is asked and answers."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

from bench import ROOT
from bench.peers.environments import Unavailable
from bench.peers.frameworks import Framework

SLOW_NS = 3_000_000_000
"""Who takes longer than this for a call is measured once only: it is far from the fastest."""


class About(NamedTuple):
    """What a framework says of itself."""

    versions: dict[str, str]
    notes: str
    imported: str


class Result(NamedTuple):
    """What came of a framework in a row: a figure, none as it has no such thing, or why it does not count."""

    figure: float | None = None
    void: str = ""


class Worker:
    """One framework's process for one row. It is ended when the block is left, whatever it is doing.

    What goes wrong ends in `result`; to ask one that has nothing more to say does no harm.
    """

    def __init__(self, framework: Framework, python: Path, row: str, sample_ns: int) -> None:
        self.result = Result()
        self._open = True
        # Not a pipe: one that nobody empties would stop it.
        self._complaints = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
        self._process = subprocess.Popen(
            _command(framework, python, row, str(sample_ns)),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env=environment(),
        )

    def wait_until_ready(self) -> None:
        """Wait until it has checked its answer."""
        said = self._hear()
        self._open = "ready" in said

    def ask(self, samples: int) -> None:
        """Have it do a round of so many samples."""
        figure = self.result.figure
        if not self._open or (figure is not None and figure > SLOW_NS):
            return
        self._tell(f"{samples}\n")
        said = self._hear()
        if "figure" in said:
            self.result = Result(said["figure"] if figure is None else min(figure, said["figure"]))

    def end(self) -> None:
        """Tell it that this is all, and hear whether its figures count."""
        if self._open:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._hear()

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        self._complaints.close()

    def _tell(self, order: str) -> None:
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), order.encode())
        except BrokenPipeError:
            pass  # it has ended; why is what is heard next

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        said: dict[str, Any] = json.loads(line) if line else {"void": self._last_words()}
        if "void" in said:
            self.result, self._open = Result(void=said["void"]), False
        return said

    def _last_words(self) -> str:
        self._process.wait()
        self._complaints.seek(0)
        lines = self._complaints.read().decode(errors="replace").strip().splitlines()
        return f"its process failed: {lines[-1] if lines else 'it ended without a word'}"


def about(framework: Framework, python: Path) -> About:
    """Ask a framework what it is.

    Raises:
        Unavailable: it cannot be imported.
    """
    command = _command(framework, python)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment())
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Unavailable(f"{framework.name}: cannot be imported: {lines[-1]}")
    said = json.loads(done.stdout)
    return About(said["versions"], said["notes"], said["import"])


def environment() -> dict[str, str]:
    """The processes' environment: nothing of this one's packages is on their path."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}


def _command(framework: Framework, python: Path, *arguments: str) -> list[str]:
    return [str(python), "-m", "bench.peers.worker", framework.module, *arguments]

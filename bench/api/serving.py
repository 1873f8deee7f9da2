"""The server as a user runs it, `flyball serve` in its own process; or the same over a journal in memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench import ROOT

_WHERE = re.compile(r" at http://127\.0\.0\.1:(\d+)")
AGENTS = "bench.api.agents"


class Serving(NamedTuple):
    """A server that runs: its process, its port, and the token that it wants."""

    pid: int
    port: int
    token: str


@contextmanager
def served(
    folder: Path,
    *,
    log: bool = False,
    tokens: bool = False,
    memory: bool = False,
    profile: Path | None = None,
) -> Generator[Serving]:
    """A server, for as long as it is needed; what it says goes to a file in the folder.

    Args:
        folder: where its journal and its tokens are.
        log: whether it writes a line for each request.
        tokens: whether it asks for a token.
        memory: whether its journal is in memory.
        profile: where to write what its time went into, as cProfile saw it (which slows it down).
    """
    token = _token(folder) if tokens else ""
    command = [
        sys.executable,
        *(["-m", "cProfile", "-o", str(profile.resolve())] if profile is not None else []),
    ]
    if memory:
        command += ["-m", "bench.api.in_memory"]
    else:
        command += ["-m", "flyball", "serve", AGENTS, "--port", "0", "--journal", str(folder / "runs.db")]
        command += [] if log else ["--quiet"]
        command += ["--tokens", str(folder / "tokens.json")] if tokens else []
    said = folder / "said.txt"
    with said.open("w") as out:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=out, env=_environment())
    assert process.stdout is not None
    try:
        yield Serving(process.pid, _port(process, said), token)
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def _environment() -> dict[str, str]:
    source = str(ROOT / "src")
    return {**os.environ, "PYTHONPATH": source, "COLUMNS": "200", "PYTHONUNBUFFERED": "1"}


def _port(process: subprocess.Popen[bytes], said: Path) -> int:
    while process.poll() is None:
        if found := _WHERE.search(said.read_text()):
            return int(found[1])
        try:
            process.wait(0.02)
        except subprocess.TimeoutExpired:
            continue
    raise SystemExit(f"the server did not begin:\n{said.read_text()[-2000:]}")


def _token(folder: Path) -> str:
    from flyball.adapters.http.tokens import Tokens

    text, _ = Tokens(folder / "tokens.json").add("bench")
    return text

"""Processes that are told things line by line, answer in JSON, and end with the command that started them."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import IO, Any

from bench import ROOT, SOURCE

_START = 30.0


class Child:
    """One of them."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def tell(self, word: str) -> None:
        """Say something; it need not be there yet."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n".encode())

    async def answer(self) -> Any:
        """What it says next.

        Raises:
            RuntimeError: it has ended.
        """
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process of the measurement ended with {await self._process.wait()}")
        return json.loads(line)

    def kill(self) -> None:
        """End it at once."""
        if self._process.returncode is None:
            self._process.kill()

    async def gone(self) -> None:
        """Wait until it is no more."""
        await self._process.wait()

    async def ended(self) -> None:
        """Let it end by itself: its standard input is at its end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()


async def start(module: str, told: dict[str, Any], said: IO[bytes] | None = None) -> Child:
    """Start `python -m module` with a JSON text as its argument; what it says first is that it is ready.

    `said` is a file for what it says on standard error; without one that is shown.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        json.dumps(told),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(SOURCE)])},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=said,
    )
    return Child(process)


@asynccontextmanager
async def children(module: str, tell: Sequence[dict[str, Any]]) -> AsyncGenerator[list[Child]]:
    """Processes that are ready, inside the block."""
    started = [await start(module, told) for told in tell]
    try:
        async with asyncio.timeout(_START):
            for child in started:
                await child.answer()
        yield started
        for child in started:
            await child.ended()
    finally:
        for child in started:
            child.kill()


def say(what: Any) -> None:
    """In a child: say something to the command."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def hears() -> asyncio.StreamReader:
    """In a child: what the command says; at its end the child is to end."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    return reader

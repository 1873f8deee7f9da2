"""Other processes that use a journal: `python children.py <what> <path> <arguments>`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import flyball
from flyball.core.errors import JournalConflict, JournalFailure
from flyball.runtime.sqlite import SQLiteJournal
from flyball.runtime.sqlite.schema import Synchronous
from flyball.testing.conformance.samples import numbered


def start(what: str, path: Path, *arguments: object) -> subprocess.Popen[str]:
    """Start a child; it says "ready" when it has the journal open, and waits for a line before it goes on."""
    child = subprocess.Popen(
        [sys.executable, __file__, what, str(path), *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(flyball.__file__).parents[1])},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def go(child: subprocess.Popen[str]) -> None:
    """Let a child go on."""
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


def said(child: subprocess.Popen[str]) -> str:
    """What a child says until it ends, which it must do well."""
    out, _ = child.communicate(timeout=60)
    assert child.returncode == 0, out
    return out


def say(text: object) -> None:
    """Say something that arrives even if the next moment is the last."""
    os.write(1, f"{text}\n".encode())


async def race(journal: SQLiteJournal, writer: int, appends: int) -> None:
    """Append pairs to one loop that all race for, and to a loop of one's own; tell where each went."""
    expected = 0
    for k in range(appends):
        await journal.append(f"own-{writer}", numbered(1, k), k)
        while True:
            try:
                expected = await journal.append("shared", numbered(2, 10_000 * writer + 2 * k), expected)
                break
            except JournalConflict as error:
                expected = error.details["actual"]
        say(expected - 2)


async def stream(journal: SQLiteJournal) -> None:
    """Append three events at a time until killed, and tell each length once it was reached."""
    length = 0
    while True:
        length = await journal.append("loop", numbered(3, length), length)
        say(length)


async def append(journal: SQLiteJournal, count: int) -> None:
    """Append some events, and close."""
    length = await journal.size("loop")
    await journal.append("loop", numbered(count, length), length)


async def outgrow(journal: SQLiteJournal) -> None:
    """Append until the operating system lets no file grow further, then on, when it does again."""
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, resource.RLIM_INFINITY))
    length, error = 0, None
    while error is None:
        try:
            length = await journal.append("loop", numbered(50, length), length)
        except JournalFailure as failure:
            error = failure
    intact = await journal.read("loop") == numbered(length)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    length = await journal.append("loop", numbered(50, length), length)
    intact = intact and await journal.read("loop") == numbered(length) and await journal.integrity() == []
    say(f"{error.details['sqlite']} {intact}")


async def main(what: str, path: str, synchronous: Synchronous, *arguments: str) -> None:
    """Do it."""
    async with SQLiteJournal(path, synchronous=synchronous, busy_timeout=30) as journal:
        say("ready")
        sys.stdin.readline()
        await globals()[what](journal, *map(int, arguments))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], *sys.argv[4:]))  # pyright: ignore[reportArgumentType]

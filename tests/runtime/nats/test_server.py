"""A server of one's own: it comes up, comes again, and goes with whoever started it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from flyball.core.errors import JournalFailure, MissingExtra, UserError
from flyball.runtime.nats import EmbeddedServer, NatsJournal
from flyball.runtime.nats.server import binary, embedded
from flyball.testing.conformance.samples import numbered
from tests.patience import PATIENCE
from tests.runtime.nats.conftest import kill


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):
        return False


async def gone(pid: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while alive(pid):  # noqa: ASYNC110 - another process tells us nothing
            await asyncio.sleep(0.01)


async def test_what_was_written_is_there_the_next_time(folder: Path) -> None:
    async with EmbeddedServer(folder) as server:
        async with await NatsJournal.open(server.options) as journal:
            await journal.append("loop", numbered(3), 0)
        first = server.pid
    assert not alive(first)
    async with EmbeddedServer(folder) as server, await NatsJournal.open(server.options) as journal:
        assert await journal.read("loop") == numbered(3)


async def test_a_killed_server_comes_again_and_nothing_is_lost(folder: Path) -> None:
    async with EmbeddedServer(folder) as server, await NatsJournal.open(server.options) as journal:
        await journal.append("loop", numbered(1), 0)
        waiting = asyncio.create_task(journal.wait("loop", 4))
        for n in range(1, 5):
            await kill(server)
            # Made while it is down: asked again until it is back.
            assert await journal.append("loop", numbered(1, n), n) == n + 1
        assert await asyncio.wait_for(waiting, PATIENCE)
        assert await journal.read("loop") == numbered(5)
        assert server.restarts == 4


async def test_a_server_that_does_not_come_up_again_at_once_is_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where somebody else has its port for a moment."""
    broken = Path(shutil.which("false") or "")
    programs = [broken, broken, binary.find_binary()]
    monkeypatch.setattr(embedded, "_PAUSE", 0.01)
    async with EmbeddedServer(folder) as server, await NatsJournal.open(server.options) as journal:
        await journal.append("loop", numbered(1), 0)
        monkeypatch.setattr(embedded, "find_binary", lambda: programs.pop(0))
        await kill(server)
        assert await journal.append("loop", numbered(1, 1), 1) == 2
        assert (programs, server.restarts) == ([], 1)
    monkeypatch.setattr(embedded, "find_binary", lambda: broken)
    with pytest.raises(JournalFailure, match="ended with code 1"):  # at first it is told
        await EmbeddedServer(folder).__aenter__()


async def test_the_secret_is_nobody_elses(folder: Path) -> None:
    async with EmbeddedServer(folder) as server:
        assert stat.S_IMODE((folder / "server.conf").stat().st_mode) == 0o600
        assert server.url.startswith("nats://127.0.0.1:")


async def test_one_folder_has_one_server(folder: Path) -> None:
    async with EmbeddedServer(folder):
        with pytest.raises(UserError, match="another server uses"):
            await EmbeddedServer(folder).__aenter__()
    async with EmbeddedServer(folder):
        pass


async def test_a_port_that_is_taken_is_told_in_the_servers_words(folder: Path, tmp_path: Path) -> None:
    async with EmbeddedServer(folder) as server:
        port = int(server.url.rpartition(":")[2])
        with pytest.raises(JournalFailure, match=r"(?s)ended with code 1.*address already in use"):
            await EmbeddedServer(tmp_path / "other", port=port).__aenter__()


async def test_a_folder_that_cannot_be_used(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="cannot be kept in"):
        await EmbeddedServer(tmp_path / "file" / "x").__aenter__()


async def test_no_program_at_all(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(binary, "_PACKAGE", "no-such-package")
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(MissingExtra, match=r"flyball\[nats\]"):
        await EmbeddedServer(folder).__aenter__()


CHILD = """
import asyncio, sys
from pathlib import Path
from flyball.runtime.nats import EmbeddedServer
async def main():
    async with EmbeddedServer(Path(sys.argv[1])) as server:
        print(server.pid, server._process.pid, flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


@pytest.mark.parametrize("victim", ["parent", "guard"])
@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
async def test_no_server_outlives_whoever_started_it(folder: Path, victim: str) -> None:
    child = subprocess.Popen(  # noqa: ASYNC220
        [sys.executable, "-c", CHILD, str(folder)], stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    try:
        assert child.stdout is not None
        server, guard = map(int, (await asyncio.to_thread(child.stdout.readline)).split())
        assert alive(server)
        if victim == "parent":
            child.kill()
            await gone(server)
            await gone(guard)
        else:
            os.kill(guard, signal.SIGKILL)
            await gone(server)
    finally:
        child.kill()
        child.wait()
        if child.stdout is not None:
            child.stdout.close()

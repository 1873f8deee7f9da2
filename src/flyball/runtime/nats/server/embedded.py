"""A nats-server of one's own: for one machine, started with what needs it and ended with it.

    async with EmbeddedServer(folder) as server:
        journal = await NatsJournal.open(server.options)

Its data stays in the folder, and one server at a time uses that. It is started again, on the same port, when
it ends by itself; it never outlives the process that started it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import shutil
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from flyball.core.errors import JournalFailure, UserError
from flyball.locks import try_locked
from flyball.runtime.nats.connection import NatsOptions
from flyball.runtime.nats.server import guard
from flyball.runtime.nats.server.binary import find_binary
from flyball.runtime.nats.server.settings import ServerSettings

_log = logging.getLogger("flyball.nats")
_START = 20.0
"""Seconds that it may take until the server listens: it reads all its data first."""
_LOOK = 0.01
_PAUSE = 0.5
"""Seconds until a server that did not come up again is started anew."""


class EmbeddedServer:
    """The server of a folder, from the beginning of the block to its end."""

    def __init__(self, folder: Path | str, *, port: int = 0) -> None:
        """Nothing happens yet. `port` 0 is any that is free."""
        self._settings = ServerSettings(Path(folder).resolve(), secrets.token_urlsafe(24), port)
        self._process: asyncio.subprocess.Process | None = None
        self._supervisor: asyncio.Task[None] | None = None
        self._held = ExitStack()
        self.restarts = 0
        """How often it was started again."""

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"nats://{self._settings.host}:{self._settings.port}"

    @property
    def options(self) -> NatsOptions:
        """How to come in."""
        return NatsOptions((self.url,), token=self._settings.token, synced=True)

    @property
    def pid(self) -> int:
        """The server's own process."""
        found = list(self._settings.ports_path.glob("*.ports"))
        return int(found[0].stem.rpartition("_")[2])

    async def __aenter__(self) -> Self:
        """Start it.

        Raises:
            MissingExtra: there is no nats-server.
            UserError: the folder cannot be used, or another server uses it, or the port is taken.
            JournalFailure: the server does not come up; the message has what it said.
        """
        settings = self._settings
        try:
            settings.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            free = self._held.enter_context(try_locked(settings.folder / "lock"))
        except OSError as error:
            raise UserError(f"a server's data cannot be kept in {settings.folder}: {error}") from error
        if not free:
            self._held.close()
            raise UserError(
                f"another server uses {settings.folder}: stop it, or give this one another folder",
                folder=str(settings.folder),
            )
        try:
            await self._start()
        except BaseException:
            self._held.close()
            raise
        self._supervisor = asyncio.create_task(self._supervise())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop it, and wait until it has stopped."""
        try:
            if self._supervisor is not None:
                self._supervisor.cancel()
                with suppress(asyncio.CancelledError):
                    await self._supervisor
            await self._stop()
        finally:
            self._held.close()

    async def _supervise(self) -> None:
        """Start it again whenever it ends; and again, if it does not come up."""
        while self._process is not None:
            await self._process.wait()
            self.restarts += 1
            while not await self._comes_up():  # noqa: ASYNC110 - nobody tells us when it could
                await asyncio.sleep(_PAUSE)

    async def _comes_up(self) -> bool:
        """Start it; whether it listens. Its port may be another's for a while, or the machine too busy."""
        try:
            await self._start()
        except JournalFailure as error:
            _log.warning("%s; it is tried again in %g s", error, _PAUSE)
            return False
        return True

    async def _start(self) -> None:
        settings = self._settings
        shutil.rmtree(settings.ports_path, ignore_errors=True)
        settings.ports_path.mkdir()
        _write_private(settings.config_path, settings.text())
        # The guard is run by its path: it has no need of flyball, and no time for it.
        self._process = process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-I",
            str(Path(guard.__file__)),
            str(find_binary()),
            "-c",
            str(settings.config_path),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            async with asyncio.timeout(_START):
                while (port := self._listening_port()) is None:
                    if process.returncode is not None:
                        raise self._failed(f"it ended with code {process.returncode}")
                    await asyncio.sleep(_LOOK)
        except TimeoutError:
            await self._stop()
            raise self._failed(f"it does not listen after {_START:g} s") from None
        # Whoever is connected finds it there again.
        self._settings = msgspec.structs.replace(settings, port=port)

    async def _stop(self) -> None:
        process = self._process
        self._process = None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()  # the guard sees that, and ends the server
        await process.wait()

    def _listening_port(self) -> int | None:
        for file in self._settings.ports_path.glob("*.ports"):
            with suppress(msgspec.DecodeError):  # half written: it is looked at again
                listed: dict[str, list[str]] = msgspec.json.decode(file.read_bytes())
                return int(listed["nats"][0].rpartition(":")[2])
        return None

    def _failed(self, why: str) -> JournalFailure:
        said = _last_lines(self._settings.log_path)
        return JournalFailure(
            f"nats-server does not come up in {self._settings.folder}: {why}{said}",
            folder=str(self._settings.folder),
        )


def _write_private(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)


def _last_lines(path: Path) -> str:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    wrong = [line for line in lines[-40:] if "[FTL]" in line or "[ERR]" in line]
    return "".join([f"\n  {line}" for line in wrong[-3:]])

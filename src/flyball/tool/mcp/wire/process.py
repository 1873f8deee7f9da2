"""A server's process: started with pipes, and ended for certain.

The SDK's own transport does not tell how a process ended, nor bounds its lines. Not asyncio's subprocesses
either: before Python 3.12 those depend on the policy that some library has set.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from mcp.client.stdio import get_default_environment

from flyball.core.errors import UserError
from flyball.tool.mcp.course import Course
from flyball.tool.mcp.place import Program

_TO_END = 2.0
"""Seconds that a server has to end in: after its stdin was closed, and again after SIGTERM."""


class Process:
    """A process with pipes to it. What it writes to stderr goes into its course.

    It is started when one is made; from then on `stop` is owed. `connect` comes before all else.

    Raises:
        UserError: it cannot be started.
    """

    stdin: asyncio.StreamWriter
    stdout: asyncio.StreamReader

    def __init__(self, program: Program, course: Course) -> None:
        self._popen = _started(program)
        self._course = course
        self._pipes: list[asyncio.BaseTransport] = []
        self._listening: asyncio.Task[None] | None = None

    async def connect(self, limit: int) -> None:
        """Make the pipes ready to be waited for; no line of stdout may be longer than `limit` bytes."""
        loop, popen = asyncio.get_running_loop(), self._popen
        self.stdout, errors = asyncio.StreamReader(limit=limit), asyncio.StreamReader()
        protocol = asyncio.StreamReaderProtocol(asyncio.StreamReader())
        for reader, pipe in ((self.stdout, popen.stdout), (errors, popen.stderr)):
            reading = asyncio.StreamReaderProtocol(reader)
            transport, _ = await loop.connect_read_pipe(lambda reading=reading: reading, pipe)
            self._pipes.append(transport)
        into, _ = await loop.connect_write_pipe(lambda: protocol, popen.stdin)
        self._pipes.append(into)
        self.stdin = asyncio.StreamWriter(into, protocol, None, loop)
        self._listening = loop.create_task(self._listen(errors))

    async def stop(self) -> int | None:
        """Close its stdin, and end it if that does not; gives its exit code, None if it cannot be ended."""
        for pipe in self._pipes[2:] or ([self._popen.stdin] if self._popen.stdin else []):
            with suppress(OSError):
                pipe.close()
        steps: list[Callable[[], None]] = [lambda: None, self._terminate, self._kill]
        for step in steps:
            step()
            if await self._ended(_TO_END):
                break
        if self._listening is not None:
            # What it said last is on the way; others that it started may hold the pipe open for ever.
            await asyncio.wait([self._listening], timeout=0.5)
            self._listening.cancel()
        for transport in self._pipes:
            transport.close()
        for file in (self._popen.stdout, self._popen.stderr):
            if file is not None and len(self._pipes) < 2:
                file.close()
        await asyncio.sleep(0)  # transports close what is theirs in the loop's next round
        return self._popen.returncode

    async def _ended(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        wait = 0.001
        while self._popen.poll() is None:
            if loop.time() >= until:
                return False
            await asyncio.sleep(wait)
            wait = min(wait * 2, 0.05)
        return True

    def _terminate(self) -> None:
        self._send("SIGTERM")

    def _kill(self) -> None:
        self._send("SIGKILL")

    def _send(self, name: str) -> None:
        with suppress(OSError):
            if sys.platform == "win32":
                self._popen.kill()
            else:
                os.killpg(self._popen.pid, signal.Signals[name])

    async def _listen(self, errors: asyncio.StreamReader) -> None:
        while chunk := await errors.read(65_536):
            self._course.hear(chunk.decode("utf-8", "replace"))


def _started(program: Program) -> subprocess.Popen[bytes]:
    environment = get_default_environment() | program.env
    found = shutil.which(program.command, path=environment.get("PATH"))
    if os.path.dirname(program.command) and program.cwd is not None:
        found = shutil.which(os.path.join(program.cwd, program.command))
    if found is None:
        raise UserError(
            f"the program {program.command!r} of an MCP server is not found: install it or give its path",
            command=program.command,
        )
    pipe = subprocess.PIPE
    pipes: dict[str, Any] = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "bufsize": 0}
    command = [os.path.abspath(found), *program.args]
    try:
        # A session of its own: Ctrl-C at a terminal is not for it, and what it starts is ended with it.
        return _popen()(command, env=environment, cwd=program.cwd, start_new_session=True, **pipes)
    except (OSError, ValueError) as error:
        told = getattr(error, "strerror", None) or error
        raise UserError(
            f"the program {program.command!r} of an MCP server cannot be started: {told}"
        ) from error


def _popen() -> Any:
    if sys.platform == "win32":
        from asyncio import windows_utils

        return windows_utils.Popen  # its pipes can be waited for
    return subprocess.Popen

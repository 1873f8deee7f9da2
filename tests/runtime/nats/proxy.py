"""A line to a server that goes wrong in the way, and at the moment, that a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Literal, TypeAlias

Way: TypeAlias = Literal["up", "down"]
"""From the client to the server, or back."""
Fault: TypeAlias = Literal["cut", "cut after", "swallow", "half-close", "delay"]
LAG = 1.5
"""Seconds that a piece takes which is delayed: longer than workers hold messages in tests."""


class Proxy:
    """Passes bytes on, until its moment comes: the `at`th piece on the way `way`.

    `cut` drops the line before the piece is passed on, `cut after` behind it. `swallow` passes nothing on
    that way any more, while the line stays. `half-close` ends that way alone. `delay` has the piece come
    late, and all behind it. The next line is a good one.
    """

    def __init__(self, host: str, port: int) -> None:
        self._server = (host, port)
        self._lines: set[asyncio.Task[None]] = set()
        self._plan: tuple[Way, int, Fault] | None = None
        self.pieces = {"up": 0, "down": 0}
        """How many pieces were passed on."""
        self.struck = False
        """Whether the fault has happened."""

    def plan(self, way: Way, at: int, fault: Fault) -> None:
        """Let something go wrong, counted from now on."""
        self.pieces = {"up": 0, "down": 0}
        self._plan = (way, at, fault)
        self.struck = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One line, from its beginning to its end."""
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        ends = [writer]
        try:
            there, back = await asyncio.open_connection(*self._server)
            ends.append(back)
            async with asyncio.TaskGroup() as both:
                both.create_task(self._pump("up", reader, back, both_end := Ending()))
                both.create_task(self._pump("down", there, writer, both_end))
        except* (OSError, Cut):
            pass
        finally:
            self._lines.discard(task)
            for end in ends:
                end.close()
                with suppress(OSError):
                    await end.wait_closed()

    async def aclose(self) -> None:
        """End all lines: none is left to whoever comes after."""
        await asyncio.sleep(0)  # one that came just now is known, too
        lines = list(self._lines)
        for line in lines:
            line.cancel()
        await asyncio.gather(*lines, return_exceptions=True)

    async def _pump(
        self, way: Way, source: asyncio.StreamReader, target: asyncio.StreamWriter, ending: Ending
    ) -> None:
        deaf = False
        while data := await source.read(65_536):
            fault = self._due(way)
            if fault == "cut":
                raise Cut
            if fault == "delay":
                await asyncio.sleep(LAG)
            deaf = deaf or fault == "swallow"
            if not deaf:
                target.write(data)
                await target.drain()
            if fault == "cut after":
                raise Cut
            if fault == "half-close":
                target.write_eof()
                return
        if ending.both():
            raise Cut
        with suppress(OSError):
            target.write_eof()

    def _due(self, way: Way) -> Fault | None:
        self.pieces[way] += 1
        if self._plan is None or self._plan[:2] != (way, self.pieces[way]):
            return None
        fault, self._plan = self._plan[2], None
        self.struck = True
        return fault


class Cut(Exception):  # noqa: N818 - it is a mishap
    """The line is dropped here."""


class Ending:
    """Whether both sides have come to their end."""

    def __init__(self) -> None:
        self._ended = 0

    def both(self) -> bool:
        """One more has ended; whether that was the second."""
        self._ended += 1
        return self._ended == 2


@asynccontextmanager
async def proxied(url: str) -> AsyncGenerator[tuple[Proxy, str]]:
    """A proxy before a server, and its address."""
    host, _, port = url.rpartition("//")[2].partition(":")
    proxy = Proxy(host, int(port))
    serve: Callable[..., object] = proxy.serve
    server = await asyncio.start_server(serve, "127.0.0.1", 0)  # pyright: ignore[reportArgumentType]
    try:
        yield proxy, f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        await proxy.aclose()

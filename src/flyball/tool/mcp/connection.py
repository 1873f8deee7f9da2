"""The connection to a server: one session at a time, opened when it is needed, and again when it was lost.

All of it runs in the background's loop. A call that certainly was not run is made again, a few times,
whatever the tool: the session was over before, the service was not there, or had forgotten the session. What
else happens to a call that is under way is its failure, and that of no other.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from flyball.core.backoff import Backoff
from flyball.core.errors import MissingExtra, ToolExecutionFailed, ToolFailure
from flyball.tool.mcp.background import Background
from flyball.tool.mcp.content import failed
from flyball.tool.mcp.faults import Faults
from flyball.tool.mcp.listing import Listing
from flyball.tool.mcp.place import Place

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from flyball.core.messages import ToolResult
    from flyball.tool.mcp.exchange import Exchange
    from flyball.tool.mcp.wire.session import Session

_TRIES = 3
_WAITS = Backoff(0.25, factor=2.0, most=2.0)
"""How often a session is opened, or a call made, that could not be; and how long is waited in between."""
_TO_CLOSE = 7.0
_STAND_INS = ("Server returned an error response", "Not Found", "Session terminated")
"""What the SDK says where a service answers with a status, and with no error of the protocol."""
_UNREADABLE = ("Failed to parse", "Unexpected content type", "server answered a request with 202")
"""What it says where the answer is none."""


class Connection:
    """The connection to one server, in one background."""

    def __init__(self, place: Place, faults: Faults, connect_timeout: float, home: Background) -> None:
        self.home = home
        self.closed = False
        self._place = place
        self._faults = faults
        self._seconds = connect_timeout
        self._session: Session | None = None
        self._opening = asyncio.Lock()
        self._take_back = home.at_end(self.close)

    @property
    def listing(self) -> Listing | None:
        """What the server offers now, as far as is known; None while there is no session."""
        session = self._session
        if session is None or not session.ready.done() or session.over.is_set():
            return None
        return session.listing

    @property
    def stderr(self) -> tuple[str, ...]:
        """The last lines of the program's stderr."""
        return () if self._session is None else self._session.course.stderr

    async def open(self) -> Listing:
        """What the server offers; it is connected to, if it is not.

        Raises:
            MissingExtra: the SDK is not installed.
            FlyballError: it cannot be; see `faults`.
        """
        return (await self._opened(tries=1)).listing

    async def call(
        self, tool: str, arguments: dict[str, Any], headers: Mapping[str, str]
    ) -> CallToolResult | ToolResult:
        """Call a tool; what the server answered, or a result that says why the server refused it.

        Raises:
            ToolFailure: there is no answer, or none that can be taken; see `faults`.
        """
        from mcp import MCPError
        from pydantic import ValidationError

        from flyball.tool.mcp.exchange import Exchange

        tries = 0
        while True:
            if self.closed:
                raise self._faults.closed(tool)
            session = await self._opened(tries=_TRIES)
            if tool not in session.listing.names:
                raise self._faults.vanished(tool, session.listing.names)
            exchange, tries = Exchange(headers), tries + 1
            faults = self._faults.beside(headers.values())
            try:
                return await session.call(tool, arguments, exchange)
            except MCPError as error:
                over = session.over.is_set()
                forgotten = not over and _forgot(session, exchange, error)
                if over or forgotten:
                    await self._leave(session)
                if (forgotten or exchange.unsent) and tries < _TRIES:
                    await asyncio.sleep(0 if over or forgotten else _WAITS.wait(tries))
                    continue
                if over or (exchange.fault and not exchange.unsent):
                    raise faults.lost(tool, session.course, exchange) from None
                stand_in = exchange.unsent or error.message in _STAND_INS
                if stand_in and (wrong := faults.refused(tool, exchange)):
                    raise wrong from None
                if error.message.startswith(_UNREADABLE):
                    raise faults.malformed(tool, error) from error
                refusal = f"refused {tool!r}: {error.message}"
                return failed(faults.make(ToolExecutionFailed, refusal, tool).message)
            except (ValidationError, RuntimeError, ValueError) as error:
                raise faults.malformed(tool, error) from error

    async def close(self) -> None:
        """End the session, and the program with it. Waits until it has ended, for a bounded time."""
        self.closed = True
        self._take_back()
        if self._session is not None:
            await self._leave(self._session)

    async def _leave(self, session: Session) -> None:
        session.close()
        await asyncio.wait([session.task], timeout=_TO_CLOSE)

    async def _opened(self, tries: int) -> Session:
        async with self._opening:
            for retry in range(1, tries + 1):
                session = self._session
                if session is not None and not session.over.is_set():
                    return session
                try:
                    await self._open()
                except ToolFailure as error:
                    if retry == tries or not error.retryable:
                        raise
                    await asyncio.sleep(_WAITS.wait(retry))
        assert self._session is not None
        return self._session

    async def _open(self) -> None:
        kind = _sessions() if "mcp" in sys.modules else await asyncio.to_thread(_sessions)
        # Kept at once, so that closing ends it too; nobody else uses it before it is ready.
        self._session = session = kind(self._place)
        try:
            await asyncio.wait([session.ready], timeout=self._seconds)
            late = not session.ready.done()
        except asyncio.CancelledError:
            session.close()
            raise
        if not late and not session.over.is_set():
            return
        await self._leave(session)
        if self.closed:
            raise self._faults.closed("")
        if late:
            raise self._faults.late(session.course, self._seconds)
        raise self._faults.unopened(session.error, session.course, session.opening)


def _sessions() -> type[Session]:
    """The class of sessions. The SDK takes half a second to load: not on the loop that all servers share.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        from flyball.tool.mcp.wire.session import Session
    except ModuleNotFoundError as error:
        if error.name is not None and error.name.partition(".")[0] in ("mcp", "mcp_types", "httpx2"):
            raise MissingExtra("speaking to an MCP server needs mcp: pip install 'flyball[mcp]'") from None
        raise
    return Session


def _forgot(session: Session, exchange: Exchange, error: Any) -> bool:
    """Whether a service has forgotten the session: by the protocol 404, and 400 of some that say so."""
    if not session.remembered:
        return False
    return exchange.status == 404 or (exchange.status == 400 and "session" in error.message.lower())

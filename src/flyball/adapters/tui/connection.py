"""A connection to one server: requests, and streams of server-sent events.

Guarantees: what the server refuses is raised as the error of the taxonomy that it has written down; a server
that cannot be reached is `Unreachable`, and whoever watches is told so, once each way.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import aiohttp
import msgspec
from msgspec import Struct

from flyball.adapters.tui.address import address
from flyball.adapters.tui.frames import Frame, Frames
from flyball.core.errors import (
    FailureCategory,
    FlyballError,
    OrchestrationFailure,
    SystemError,  # noqa: A004 - pagantic's name for it
    UserError,
)

_SECONDS = 30.0
"""For an answer that is not a stream."""
_SILENCE = 15.0
"""After which a stream counts as lost: the server says every 5 s that it is still there."""


class Unreachable(OrchestrationFailure):
    """The server cannot be reached, or went away in the middle."""

    code = "TUI_UNREACHABLE"
    retryable = True


_AWAY = (502, 503, 504)
"""What a proxy answers while the server behind it is away."""


class Problem(Struct, frozen=True):
    """What the server says of what went wrong (RFC 9457)."""

    detail: str = ""
    code: str = "ORCHESTRATION_FAILED"
    category: FailureCategory = FailureCategory.ORCHESTRATION
    retryable: bool = False
    details: dict[str, Any] | None = None

    def error(self) -> FlyballError:
        """The error that it was written from."""
        return SystemError(self.code, self.category, self.detail, self.retryable, self.details).exception()


class Connection:
    """Speaks to one server.

    Args:
        url: the server's address.
        token: the bearer token, where the server asks for one.

    Raises:
        UserError: that is no address, or no token.
    """

    def __init__(self, url: str, token: str = "") -> None:
        self.url = address(url)
        token = token.strip()
        if not (token.isascii() and token.isprintable()):
            raise UserError("the token has characters that none of flyball's has: copy it again")
        self.watch: Callable[[str], None] = lambda _: None
        """Is told when the server is lost (with the reason), and when it is there again (with "")."""
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._session: aiohttp.ClientSession | None = None
        self._lost = ""

    async def aclose(self) -> None:
        """Let go of all that is open."""
        if self._session is not None:
            await self._session.close()

    async def ask(self, method: str, path: str, query: Mapping[str, str], body: bytes | None = None) -> bytes:
        """What the server answers.

        Raises:
            Unreachable: it does not.
            FlyballError: it refuses.
        """
        headers = {"Content-Type": "application/json"} if body is not None else {}
        asked = self._http.request(method, self.url + path, params=query, data=body, headers=headers)
        try:
            async with asked as response:
                self._reached()
                await _checked(response)
                return await response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self.lost(_reason(error)) from error

    async def stream(self, path: str, last: str) -> AsyncGenerator[Frame]:
        """A stream's events after one of them, by its id; nothing where all was told.

        Raises:
            Unreachable: the connection is lost; also where it ends and nobody said that this is the end.
            FlyballError: the server refuses.
        """
        headers = {"Last-Event-ID": last} if last else {}
        times = aiohttp.ClientTimeout(total=None, sock_connect=_SECONDS, sock_read=_SILENCE)
        frames = Frames()
        try:
            async with self._http.get(self.url + path, headers=headers, timeout=times) as response:
                self._reached()
                if response.status == 204:
                    return
                await _checked(response)
                async for chunk in response.content.iter_any():
                    for frame in frames.feed(chunk):
                        yield frame
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise self.lost(_reason(error)) from error
        raise self.lost("the server closed the connection")

    def lost(self, reason: str) -> Unreachable:
        """The server is lost, for this reason."""
        if not self._lost:
            self._lost = reason
            self.watch(reason)
        return Unreachable(f"{self.url} cannot be reached: {reason}")

    def _reached(self) -> None:
        if self._lost:
            self._lost = ""
            self.watch("")

    @property
    def _http(self) -> aiohttp.ClientSession:
        if self._session is None:
            times = aiohttp.ClientTimeout(total=_SECONDS)
            self._session = aiohttp.ClientSession(headers=self._headers, timeout=times)
        return self._session


async def _checked(response: aiohttp.ClientResponse) -> None:
    """Raise what the server says went wrong, if something did."""
    if response.status < 400:
        return
    text = await response.read()
    try:
        problem = msgspec.json.decode(text, type=Problem)
    except (msgspec.DecodeError, UnicodeError):
        if response.status in _AWAY:
            raise aiohttp.ClientError(f"something in front of it answers {response.status}") from None
        problem = Problem(f"the server answered with the status {response.status}")
    raise problem.error()


def _reason(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"nobody answers at {error.host}:{error.port}"
    if isinstance(error, aiohttp.ClientPayloadError | aiohttp.ServerDisconnectedError):
        return "it went away"
    return str(error) or type(error).__name__

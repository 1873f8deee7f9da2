"""A request's body, as it comes: not more of it, and not slower, than is taken here."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from flyball.adapters.http.limits import Limits
from flyball.adapters.http.problems import TooLarge, TooSlow


class Body:
    """The body of one request, received within limits. What comes after its end is passed on as it is.

    Args:
        receive: where it comes from.
        headers: the request's, with small letters.
        limits: how much is taken.
    """

    def __init__(
        self, receive: Callable[[], Awaitable[Any]], headers: Mapping[str, str], limits: Limits
    ) -> None:
        self._receive = receive
        self._headers = headers
        self._limits = limits
        self._size = 0
        self._until: float | None = None
        self._whole = False

    async def receive(self) -> Any:
        """The next message.

        Raises:
            TooLarge, TooSlow: there is too much of it, or it does not come.
        """
        if self._whole:
            return await self._receive()
        if self._until is None:
            self._check_length()
            self._until = asyncio.get_running_loop().time() + self._limits.body_seconds
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            seconds = self._limits.body_seconds
            raise TooSlow(f"the body did not come within {seconds:g} s", {"Connection": "close"}) from None
        self._size += len(message.get("body", b""))
        if self._size > self._limits.body:
            raise self._too_large()
        self._whole = not message.get("more_body", False)
        return message

    def _check_length(self) -> None:
        said = self._headers.get("content-length", "")
        if said.isdecimal() and len(said) < 20 and int(said) > self._limits.body:
            raise self._too_large()

    def _too_large(self) -> TooLarge:
        return TooLarge(
            f"the body is larger than the {self._limits.body} bytes that are taken here",
            {"Connection": "close"},
            limit=self._limits.body,
        )

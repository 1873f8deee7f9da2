"""Debouncing: the pieces of a text, gathered for a little while each, for who draws a screen at every one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from flyball.core.errors import UserError


def debounced(pieces: AsyncGenerator[str], window: float, *, joined: bool) -> AsyncGenerator[str]:
    """What came within `window` seconds of the first of it, as one text; nothing is held back for longer.

    Where the pieces end in an error, that comes after the text that was held.

    Args:
        pieces: the text, piece by piece, or all of it so far each time. It is read ahead by one window.
        window: seconds.
        joined: whether pieces are joined; otherwise the last one stands for those before it.

    Raises:
        UserError: the window is no number of seconds.
    """
    return _gathered(pieces, sensible_window(window), joined=joined)


def sensible_window(window: float) -> float:
    """Seconds that something can be gathered for.

    Raises:
        UserError: they are none.
    """
    if not isinstance(window, int | float) or not 0 <= window < float("inf"):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserError(f"debounce_by= takes seconds, from 0, not {window!r}")
    return window


async def _gathered(pieces: AsyncGenerator[str], window: float, *, joined: bool) -> AsyncGenerator[str]:
    now = asyncio.get_running_loop().time
    coming: asyncio.Future[str] | None = None
    held, until = "", 0.0
    try:
        while True:
            if coming is None:
                coming = asyncio.ensure_future(anext(pieces))
            await asyncio.wait([coming], timeout=max(until - now(), 0.0) if held else None)
            if coming.done():
                try:
                    piece = coming.result()
                except Exception as error:
                    coming, ended = None, error
                    break
                coming = None
                if not held:
                    until = now() + window
                held = held + piece if joined else piece
            if held and now() >= until:
                yield held
                held = ""
        if held:
            yield held
        if not isinstance(ended, StopAsyncIteration):
            raise ended
    finally:
        if coming is not None:
            coming.cancel()
            await asyncio.wait([coming])
            if not coming.cancelled():
                coming.exception()  # it is seen here, or nobody wants it any more
        await pieces.aclose()

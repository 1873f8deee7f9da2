"""The bytes that a terminal gets, whatever a server says: none of its text is an order."""

from __future__ import annotations

import asyncio
import re
import time
import unicodedata
from pathlib import Path

import pytest

from tests.adapters.cli.terminal import Terminal
from tests.adapters.tui.hostile_server import hostile_server
from tests.patience import PATIENCE

NASTY = (
    "MARK\x1b[2J\x1b]0;owned\x07\x1b]52;c;b3duZWQ=\x07\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\"
    "\x1bP1$r\x1b\\\x1b_apc\x1b\\\x9b31m\x9d52;c;x\x9c[bold red]x[/][@click=app.quit]y[/][link=http://e]z[/link]"
    "\u202e\u2066\u200b\ufeff\x00\r\x08\x7f\U000e0041"
)
ORDER = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)", re.DOTALL)
OWN = re.compile(r"\x1b(\[[0-9;]*[mH]|\[\?[0-9]+(\$p|[hl])|\[[<>][0-9]*u|\]22;[a-z]+\x07)")
"""Colours, where to write, modes of the terminal and of its keys, and the form of the pointer."""


class Typed:
    """Somebody who types, and looks."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    async def sees(self, keys: str, text: str) -> None:
        """Press keys, and wait until something is drawn that was not there before."""
        seen = len(self._terminal.raw)
        self._terminal.type(keys)
        await asyncio.to_thread(self._read_until, seen, text)

    def _read_until(self, seen: int, text: str) -> None:
        end = time.monotonic() + PATIENCE
        while text not in ORDER.sub("", self._terminal.raw[seen:]):
            assert time.monotonic() < end, f"{text!r} was not drawn"
            self._terminal._read(0.1)  # pyright: ignore[reportPrivateUsage]


LOOKED_AT = {
    "a call that waits, and the commands": [
        ("\r", "Approve (a)"),
        ("v", "arguments"),
        ("\x10", "Search for"),
        ("Chat", "Chat with MARK"),
    ],
    "what is refused, and the models": [("\r", "Approve (a)"), ("p", "MARK"), ("k", "Another model")],
    "the agents, and a chat": [("c", "Enter chooses"), ("\r", "Say something, below")],
}
"""What is pressed, and what is drawn then, after the list of runs."""


@pytest.mark.parametrize("keys", LOOKED_AT.values(), ids=LOOKED_AT)
async def test_no_text_of_a_server_is_an_order_to_the_terminal(
    tmp_path: Path, keys: list[tuple[str, str]]
) -> None:
    async with hostile_server(NASTY) as url:
        terminal = Terminal("tui", "--server", url, LINES="50", FLYBALL_HOME=str(tmp_path))
        somebody = Typed(terminal)
        try:
            for pressed, text in [("", "MARK"), *keys]:
                await somebody.sees(pressed, text)
            terminal.type("\x11")
            assert await asyncio.to_thread(terminal.end) == 0
        finally:
            terminal.close()
    orders = set(ORDER.findall(terminal.raw))
    assert not [order for order in orders if not OWN.fullmatch(order)]
    drawn = ORDER.sub("", terminal.raw)
    assert not {one for one in drawn if unicodedata.category(one) in ("Cc", "Cf", "Cs")} - {"\r", "\n"}

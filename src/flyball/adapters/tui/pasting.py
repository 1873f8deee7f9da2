"""What is pasted comes in as one text, whatever is in it: no part of it is ever a key.

A terminal brackets what is pasted (`ESC [200~` ... `ESC [201~`). textual's own parser looks for escape
sequences also between the brackets: a second ESC, a long sequence or a moment's silence after an ESC make
keys of what follows, which then approve, cancel and send as if somebody had pressed them. Here a paste is
taken out of what the terminal sends before keys are looked for.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from textual._xterm_parser import BRACKETED_PASTE_END, BRACKETED_PASTE_START, XTermParser
from textual.driver import Driver
from textual.events import Paste
from textual.message import Message

_BEGIN, _END = BRACKETED_PASTE_START, BRACKETED_PASTE_END
_CUT = len(_END) - 1
"""Characters of a mark that may have come, when it is cut."""


class WholePastes(XTermParser):
    """textual's parser, but for pastes. Each character is looked at once, however what comes is cut."""

    def __init__(self, debug: bool = False) -> None:
        super().__init__(debug)
        self._pasted: list[str] | None = None
        """What was pasted so far; None outside of a paste."""
        self._last = ""
        """The last characters, which may be the beginning of a mark."""

    def feed(self, data: str) -> Iterable[Message]:
        """What the terminal has sent, as keys, pastes and all else. Nothing is the end."""
        if not data:
            yield from super().feed(data)
        while data:
            if self._pasted is None:
                taken = self._up_to_a_paste(data)
                yield from super().feed(data[:taken])
                data = data[taken:]
            else:
                pasted, data = self._up_to_its_end(self._pasted, data)
                if pasted is not None:
                    # textual's own parser has seen the beginning, too: what it makes of the end is nothing.
                    list(super().feed(_END))
                    yield Paste(pasted)

    def _up_to_a_paste(self, data: str) -> int:
        """How many characters come before what is pasted."""
        text, before = self._last + data, len(self._last)
        at = text.find(_BEGIN)
        if at < 0:
            self._last = text[-_CUT:]
            return len(data)
        self._pasted, self._last = [], ""
        return at + len(_BEGIN) - before

    def _up_to_its_end(self, pasted: list[str], data: str) -> tuple[str | None, str]:
        """What was pasted, if its end has come; and what comes after it."""
        text = self._last + data
        end = text.find(_END)
        if end < 0:
            pasted.append(text[:-_CUT])
            self._last = text[-_CUT:]
            return None, ""
        # A terminal takes end marks out of what it pastes. Of one that does not, the last mark is its own.
        another = text.find(_BEGIN, end)
        end = text.rfind(_END, end, len(text) if another < 0 else another)
        pasted.append(text[:end])
        self._pasted, self._last = None, ""
        return "".join(pasted), text[end + len(_END) :]


def with_whole_pastes(driver: type[Driver]) -> type[Driver]:
    """A driver that takes pastes whole: its parser is chosen by name in its own module, and only there."""
    names = {kind.__module__ for kind in driver.__mro__} | {"textual.drivers.win32"}
    for module in [sys.modules[name] for name in names if name in sys.modules]:
        if getattr(module, "XTermParser", None) is XTermParser:
            module.XTermParser = WholePastes  # pyright: ignore[reportAttributeAccessIssue] - a module's name
    return driver

"""A growing text, cut into what can be handed on and what may still be a call."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

from flyball.engines.openai.written.calls import MARKS, Found, calls_in

_OPEN, _CLOSE = "<think>", "</think>"
_JSON_CALL = re.compile(
    r"(?:```(?:json)?\s*)?\[?\s*\{\s*\"(?:name|function|type|tool|arguments|parameters)\""
)
_MAY_BE = re.compile(r"(?:`{0,3}|```j?s?o?n?|```(?:json)?\s*\[?\s*\{?\s*\"?\w{0,10}|\[?\s*\{?\s*\"?\w{0,10})")
"""What a call in nothing but JSON may begin with, as far as it has come."""


class Kind(Enum):
    """What a piece of text is."""

    THOUGHT = "thought"
    TEXT = "text"


class Splitter:
    """Cuts one text. `feed` gives pieces as they are certain, `end` all that is left, calls last.

    What comes out hangs on the text alone, and not on how it was cut.
    """

    def __init__(self, tools: Mapping[str, Mapping[str, Any]]) -> None:
        """`tools`: the schemas of the tools on offer by name; where there are none, no call is looked for."""
        self._tools = tools
        self._rest = ""
        self._state = self._beginning
        self._last = False

    def feed(self, text: str) -> Iterator[tuple[Kind, str]]:
        """The pieces that are certain now."""
        self._rest += text
        yield from self._go_on()

    def end(self) -> Iterator[tuple[Kind, str] | Found]:
        """The pieces that are left, and the calls."""
        self._last = True
        yield from self._go_on()
        if not self._rest:
            return
        calls = calls_in(self._rest, self._tools)
        if calls is None:
            yield Kind.TEXT, self._rest
        else:
            yield from calls

    def _go_on(self) -> Iterator[tuple[Kind, str]]:
        state = None
        while state is not self._state:
            state = self._state
            yield from state()

    def _beginning(self) -> Iterator[tuple[Kind, str]]:
        bare = self._rest.lstrip()
        if not self._last and (not bare or (_OPEN.startswith(bare) and bare != _OPEN)):
            return
        if bare.startswith(_OPEN):
            self._rest = bare.removeprefix(_OPEN)
            self._state = self._thinking
        else:
            self._state = self._maybe_json if self._tools else self._free
        yield from ()

    def _thinking(self) -> Iterator[tuple[Kind, str]]:
        thought, closed, after = self._rest.partition(_CLOSE)
        if closed:
            self._rest, self._state = after, self._after_thought
        else:
            held = 0 if self._last else _overlap(thought, (_CLOSE,))
            self._rest = thought[len(thought) - held :]
            thought = thought[: len(thought) - held]
        if thought:
            yield Kind.THOUGHT, thought

    def _after_thought(self) -> Iterator[tuple[Kind, str]]:
        self._rest = self._rest.lstrip()
        if self._rest or self._last:
            self._state = self._maybe_json if self._tools else self._free
        yield from ()

    def _maybe_json(self) -> Iterator[tuple[Kind, str]]:
        bare = self._rest.lstrip()
        if _JSON_CALL.match(bare):
            self._state = self._held
        elif self._last or (bare and not _MAY_BE.fullmatch(bare)):
            self._state = self._marked
        yield from ()

    def _marked(self) -> Iterator[tuple[Kind, str]]:
        at = min((place for mark in MARKS if (place := self._rest.find(mark)) >= 0), default=-1)
        if at >= 0:
            self._state = self._held
        else:
            at = len(self._rest) - (0 if self._last else _overlap(self._rest, MARKS))
        text, self._rest = self._rest[:at], self._rest[at:]
        if text:
            yield Kind.TEXT, text

    def _free(self) -> Iterator[tuple[Kind, str]]:
        text, self._rest = self._rest, ""
        if text:
            yield Kind.TEXT, text

    def _held(self) -> Iterator[tuple[Kind, str]]:
        yield from ()


def _overlap(text: str, marks: tuple[str, ...]) -> int:
    """How many characters at the end of a text may be the beginning of a mark."""
    longest = max(map(len, marks)) - 1
    for size in range(min(longest, len(text)), 0, -1):
        if any(mark.startswith(text[-size:]) for mark in marks):
            return size
    return 0

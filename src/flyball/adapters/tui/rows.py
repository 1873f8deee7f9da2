"""Rows of what was said: texts, tool calls, notes. Each is drawn for a width, as far as it is unfolded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec
from msgspec import Struct

from flyball.adapters.tui.lines import Line, Look, styled
from flyball.adapters.tui.markdown import set_in_lines
from flyball.adapters.tui.wrapping import words, wrapped
from flyball.core.messages import ToolCall, ToolResult

_LOOK = 20_000
"""Characters of a text that are shown at once."""
_PART = 2_000
"""Characters of a tool call's arguments, and of its result, that are shown when it is unfolded."""
_MORE = 16
"""How many times as much is shown when more is asked for."""
_MOST = 1_000_000
"""Characters that are shown at most: what is longer is for programs."""


class Row(Protocol):
    """Something in a listing. `key` is what it is known by when the listing is given anew.

    `opened` counts how often it was unfolded further; 0 is as it is shown first.
    """

    @property
    def key(self) -> str:
        """What it is known by."""
        ...

    def lines(self, width: int, opened: int) -> Sequence[Line]:
        """What is drawn: at least one line."""
        ...

    def next(self, opened: int) -> int | None:
        """How it is opened when somebody asks for it; None where there is nothing to unfold."""
        ...

    @property
    def is_short(self) -> bool:
        """Whether it is one line as long as it is not opened."""
        ...


class TextRow(Struct, frozen=True):
    """What somebody said: a person, the model, or the model to itself."""

    key: str
    who: str
    text: str
    look: Look = "plain"
    body: Look = "plain"
    markdown: bool = False
    """Whether it is set as Markdown."""

    @property
    def is_short(self) -> bool:
        """It is as long as its text."""
        return False

    def lines(self, width: int, opened: int) -> Sequence[Line]:
        """Who said it, and what."""
        head: Line = ((words(self.who, 80), self.look),)
        limit = _limit(_LOOK, opened)
        if self.markdown:
            said = set_in_lines(self.text, width - 2, limit)
            return [head, *[(("  ", "plain"), *line) for line in said]]
        return [head, *styled(wrapped(self.text, width - 2, limit), self.body, "  ")]

    def next(self, opened: int) -> int | None:
        """More of it, where there is more."""
        if len(self.text) > _limit(_LOOK, opened) < _MOST:
            return opened + 1
        return 0 if opened else None


class CallRow(Struct, frozen=True):
    """A tool call: its name and how it went; unfolded, its arguments and its result."""

    key: str
    call: ToolCall
    result: ToolResult | None = None
    took: float = 0.0

    @property
    def is_short(self) -> bool:
        """A line, until it is unfolded."""
        return True

    def lines(self, width: int, opened: int) -> Sequence[Line]:
        """The call in a line; unfolded, all about it."""
        mark, look = _went(self)
        fold = "▾" if opened else "▸"
        name, took = words(self.call.name, 60), f"  {seconds(self.took)}" if self.result is not None else ""
        room = max(width - len(name) - len(took) - 7, 8)
        about = "" if opened else f"  {words(self.call.args_json, room)}"
        head: Line = (
            (f"  {fold} ", "dim"),
            (f"{mark} ", look),
            (name, "tool"),
            (about, "dim"),
            (took, "dim"),
        )
        return [head] if not opened else [head, *self.about(width, opened)]

    def about(self, width: int, opened: int) -> list[Line]:
        """Its arguments, and what came of it."""
        limit = _limit(_PART, opened - 1)
        parts = _part("arguments", pretty(self.call.args_json), width, limit)
        if (result := self.result) is not None:
            bad, kind = result.is_error, "" if result.status == "return" else f" ({result.status})"
            name, look = ("error", "bad") if bad else ("result", "plain")
            parts += _part(f"{name}{kind}", pretty(result.text), width, limit, look)
        return parts

    def next(self, opened: int) -> int | None:
        """Unfolded, then more of it as long as there is more, then folded again."""
        longest = max(len(self.call.args_json), len(self.result.text) if self.result is not None else 0)
        if not opened or longest > _limit(_PART, opened - 1) < _MOST:
            return opened + 1
        return 0


class NoteRow(Struct, frozen=True):
    """Something that happened: a signal, an error, the end. `loop_id` is the loop that it leads to."""

    key: str
    mark: str
    text: str
    look: Look = "dim"
    loop_id: str = ""

    @property
    def is_short(self) -> bool:
        """It is as long as its text."""
        return False

    def lines(self, width: int, opened: int) -> Sequence[Line]:
        """The mark, and what happened."""
        first, *rest = wrapped(self.text, width - 4, _limit(_PART, opened))
        return [((f"  {self.mark} {first}", self.look),), *styled(rest, self.look, "    ")]

    def next(self, opened: int) -> int | None:
        """More of it, where there is more."""
        if len(self.text) > _limit(_PART, opened) < _MOST:
            return opened + 1
        return 0 if opened else None


def _limit(base: int, opened: int) -> int:
    return min(base * _MORE**opened, _MOST)


def _went(row: CallRow) -> tuple[str, Look]:
    """The sign of how a call went."""
    if row.result is None:
        return "…", "dim"
    if row.result.status == "deferred":
        return "⧗", "warn"
    if row.result.is_error or row.result.status != "return":
        return "✘", "bad"
    return "✔", "good"


def _part(name: str, text: str, width: int, limit: int, look: Look = "plain") -> list[Line]:
    return [((f"      {name}", "dim"),), *styled(wrapped(text, width - 8, limit), look, "        ")]


def pretty(text: str) -> str:
    """JSON set over several lines, if it is JSON and not long; any other text as it is."""
    if len(text) > _LOOK or text[:1] not in ("{", "["):
        return text
    try:
        return msgspec.json.format(text.encode(), indent=2).decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def seconds(took: float) -> str:
    """A length of time, in the shortest way that is clear."""
    took = max(took, 0.0)
    if took < 0.0995:
        return f"{took * 1000:.0f} ms"
    if took < 100:
        return f"{took:.1f} s"
    return f"{took / 60:.0f} min" if took < 5940 else f"{took / 3600:.0f} h"

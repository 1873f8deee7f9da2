"""Where somebody was in a loop's stream, as the id of a server-sent event, and how to go on from there.

    17                  after event 17
    17.230.1.9f86d081   and then 230 characters of the answer under way, one part of which was complete

An answer may be cut in other places when it is told again, and may even be another one: its call was made
again. So what was given is counted in characters (and one for each part that began) and summed up. Where the
answer that is told now begins so, it is gone on with; where it does not, a `Restart` takes back what was
given, and it is told from its beginning. Nothing is lost, and nothing comes twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

from msgspec import Struct
from msgspec.structs import replace

from flyball.core.events import Event, ModelAnswered, ModelFailed
from flyball.core.messages import Part, Text, Thinking, ToolCall
from flyball.inference.stream import (
    Finish,
    PartEnd,
    PartStart,
    Restart,
    StreamEvent,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)


class Position(Struct, frozen=True):
    """After `number` events, and `characters` of an answer with this checksum, `closed` parts of it complete.

    An answer that is complete counts as one more part that is.
    """

    number: int = 0
    characters: int = 0
    closed: int = 0
    checksum: int = 0

    def __str__(self) -> str:
        if not (self.characters or self.closed):
            return str(self.number)
        return f"{self.number}.{self.characters}.{self.closed}.{self.checksum:08x}"

    @classmethod
    def read(cls, text: str) -> Position:
        """A position from the id of an event; the beginning, where it is none of ours."""
        numbers = text.split(".")
        try:
            if not all(number.isascii() and number.isalnum() and len(number) < 16 for number in numbers):
                return cls()
            if len(numbers) == 1:
                return cls(int(numbers[0]))
            number, characters, closed, checksum = numbers
            return cls(int(number), int(characters), int(closed), int(checksum, 16) & 0xFFFFFFFF)
        except ValueError:
            return cls()


def ends_answer(event: Event) -> bool:
    """Whether an event is what came of a turn's model call: the pieces before it were its answer's."""
    return isinstance(event, ModelAnswered | ModelFailed) and event.purpose == "turn"


class Tally:
    """Counts what is given of a loop, so that each piece has a position."""

    __slots__ = ("_begun", "_characters", "_checksum", "_closed", "_number")

    def __init__(self, number: int) -> None:
        self._number = number
        self._begin()

    def _begin(self) -> None:
        self._characters = self._closed = self._checksum = 0
        self._begun: set[int] = set()

    @property
    def position(self) -> Position:
        """Where one is after what was counted."""
        return Position(self._number, self._characters, self._closed, self._checksum)

    def event(self, number: int, event: Event) -> Position:
        """An event of the loop; one that ends a turn's model call is the end of the answer, too."""
        self._number = number
        if ends_answer(event):
            self._begin()
        return self.position

    def piece(self, piece: StreamEvent) -> Position:
        """A piece of an answer."""
        if isinstance(piece, Restart):
            self._begin()
        elif isinstance(piece, PartEnd | Finish):
            self._closed += 1
            self._sum(_end(piece))
        else:
            text = _text_of(piece)
            if self.begins(piece.index):
                self._begun.add(piece.index)
                self._characters += 1
                self._sum(_head(piece))
            self._characters += len(text)
            self._sum(text)
        return self.position

    def _sum(self, text: str) -> None:
        self._checksum = crc32(text.encode(errors="surrogatepass"), self._checksum)

    def begins(self, index: int) -> bool:
        """Whether nothing came of this part before."""
        return index not in self._begun


def _end(piece: PartEnd | Finish) -> str:
    if isinstance(piece, Finish):
        return "\0end\0"
    # One that never began is all there at its end.
    whole = "" if piece.part is None or isinstance(piece.part, Text | Thinking) else _kind(piece.part)
    return f"\0{piece.index} end {whole}\0"


def _head(piece: PartStart | TextDelta | ThinkingDelta | ToolCallDelta) -> str:
    """What tells a part from others, besides its text."""
    if isinstance(piece, PartStart):
        kind = _kind(piece.part)
    else:
        kind = "thinking" if isinstance(piece, ThinkingDelta) else "text"
    return f"\0{piece.index} {kind}\0"


def _kind(part: Part) -> str:
    if isinstance(part, Text | Thinking):
        return "text" if isinstance(part, Text) else "thinking"
    if isinstance(part, ToolCall):
        unknown = " {}" if part.args_json == "{}" else ""  # which is more than nothing, and less than a text
        return f"call {part.id} {part.name}{unknown}"
    return repr(part)


def _text_of(piece: PartStart | TextDelta | ThinkingDelta | ToolCallDelta) -> str:
    if isinstance(piece, PartStart):
        return _begun_with(piece.part)
    return piece.args_json if isinstance(piece, ToolCallDelta) else piece.text


def _begun_with(part: Part) -> str:
    if isinstance(part, Text | Thinking):
        return part.text
    return part.args_json if isinstance(part, ToolCall) and part.args_json != "{}" else ""


class Return:
    """Passes over what somebody who comes back has been given of an answer, and gives the rest."""

    __slots__ = ("_held", "_tally", "_wanted")

    def __init__(self, wanted: Position) -> None:
        self._wanted = wanted
        self._tally = Tally(wanted.number)
        self._held: list[StreamEvent] = []
        """What was passed over: it is told after all, if it is something else than what was given."""

    @property
    def waits(self) -> bool:
        """Whether what was given has not been reached yet."""
        return bool(self._wanted.characters or self._wanted.closed)

    def take(self, piece: StreamEvent) -> Iterator[StreamEvent]:
        """What of a piece is to be told."""
        wanted = self._wanted
        if not self.waits:
            yield piece
            return
        if isinstance(piece, Restart):
            # What it takes back was given, or was not even told yet.
            self._wanted, self._held = Position(wanted.number), []
            yield piece
            return
        room = wanted.characters - self._tally.position.characters
        given, rest = _cut(
            piece, room, begins=isinstance(piece, _NUMBERED) and self._tally.begins(piece.index)
        )
        if isinstance(given, PartEnd | Finish) and self._tally.position.closed == wanted.closed:
            given, rest = None, given
        if given is not None:
            self._held.append(given)
            self._tally.piece(given)
        reached = self._tally.position
        if reached == wanted:
            self._wanted, self._held = Position(wanted.number), []
        elif rest is not None:
            yield from self.give_up()
        if rest is not None:
            yield rest

    def give_up(self) -> Iterator[StreamEvent]:
        """What was given is not what is there: all of it is told anew, after a `Restart`."""
        if self.waits:
            self._wanted = Position(self._wanted.number)
            yield Restart()
            held, self._held = self._held, []
            yield from held


_NUMBERED = (PartStart, TextDelta, ThinkingDelta, ToolCallDelta)


def _cut(piece: StreamEvent, room: int, *, begins: bool) -> tuple[StreamEvent | None, StreamEvent | None]:
    """What of a piece has room in so many characters, and what is left of it."""
    if not isinstance(piece, _NUMBERED):
        return piece, None
    text, room = _text_of(piece), room - begins
    if len(text) <= room:
        return piece, None
    if room < 0 or (room == 0 and not begins):
        return None, piece
    if not isinstance(piece, PartStart):
        return _with_text(piece, text[:room]), _with_text(piece, text[room:])
    part = piece.part
    if isinstance(part, ToolCall):
        first = replace(part, args_json=text[:room] or "{}")
        return PartStart(piece.index, first), ToolCallDelta(piece.index, text[room:])
    assert isinstance(part, Text | Thinking), "nothing else has a text"
    delta = TextDelta if isinstance(part, Text) else ThinkingDelta
    return PartStart(piece.index, replace(part, text=text[:room])), delta(piece.index, text[room:])


def _with_text(
    piece: TextDelta | ThinkingDelta | ToolCallDelta, text: str
) -> TextDelta | ThinkingDelta | ToolCallDelta:
    if isinstance(piece, ToolCallDelta):
        return replace(piece, args_json=text)
    return replace(piece, text=text)

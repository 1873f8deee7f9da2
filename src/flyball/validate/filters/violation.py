"""What filters find, and what they make of a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from flyball.core.context import RunContext
from flyball.core.errors import FlyballError
from flyball.core.messages import Message
from flyball.core.violation import Severity


class Violation(Struct, frozen=True):
    """That a filter found something of a kind, how often, and whether that may not pass (`blocks`).

    The text itself is not in it: violations are recorded and logged.
    """

    filter: str
    kind: str
    severity: Severity
    count: int = 1
    blocks: bool = True

    def __str__(self) -> str:
        times = f" ({self.count} times)" if self.count > 1 else ""
        return f"{self.filter}: {self.kind}{times}, {self.severity}"


class Change(Struct, frozen=True):
    """That something else was put in the place of a part of a text, from `start` up to `stop`."""

    start: int
    stop: int
    text: str


class Screened(Struct, frozen=True):
    """A text as a filter leaves it, and what it found.

    `changes` say which places it changed, in their order, if it can: where a text is in several parts, each
    part then keeps the rest of its own.
    """

    text: str
    violations: tuple[Violation, ...] = ()
    changes: tuple[Change, ...] = ()


def changed(text: str, changes: Sequence[Change]) -> str:
    """The text with the changes made."""
    pieces, at = list[str](), 0
    for change in changes:
        pieces += (text[at : change.start], change.text)
        at = change.stop
    return "".join([*pieces, text[at:]])


@runtime_checkable
class TextFilter(Protocol):
    """Looks through a text. `name` is what it is called in violations."""

    name: str

    def screen(self, text: str) -> Screened:
        """The text as it may pass, and what was found in it. It is pure, and takes linear time."""
        ...


@runtime_checkable
class JudgingFilter(Protocol):
    """A filter that has to ask somebody, such as a model. A chain asks `judged` in the place of `screen`."""

    name: str

    async def judged(self, text: str) -> Screened:
        """The text as it may pass, and what was found in it. What it raises ends the run."""
        ...


class Looked(Struct, frozen=True):
    """What a filter of whole requests found, and the error that says so where that may not pass."""

    violations: tuple[Violation, ...] = ()
    error: FlyballError | None = None


@runtime_checkable
class RequestFilter(Protocol):
    """Looks at a whole request: who sends it, when, how much. A chain asks it before it looks at texts."""

    name: str

    def look(self, ctx: RunContext[Any], messages: Sequence[Message]) -> Looked:
        """What was found. It is asked once for each request; what it decided is recorded, and holds."""
        ...

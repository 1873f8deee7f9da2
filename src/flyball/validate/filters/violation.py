"""What filters find, and what they make of a text."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from msgspec import Struct

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


class Screened(Struct, frozen=True):
    """A text as a filter leaves it, and what it found."""

    text: str
    violations: tuple[Violation, ...] = ()


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

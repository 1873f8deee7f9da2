"""What the compilers of the single kinds share: where they are, and what they may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from msgspec import Struct

from flyball.constraint.grammar.bounds import Bounds
from flyball.constraint.grammar.tree import Expr
from flyball.core.errors import GrammarUnsupported

Node = Mapping[str, Any]
"""A schema that is an object."""


class At(Struct, frozen=True):
    """A place in the schema: its JSON pointer, a name for rules made there, how often it may still recur."""

    path: str
    name: str
    room: int

    def into(self, *steps: str | int, name: str = "") -> At:
        """The place some keys further in."""
        path = self.path + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)
        return At(path, name or self.name, self.room)

    def refuse(self, keyword: str, why: str) -> GrammarUnsupported:
        """The error to raise where a keyword cannot be expressed; `why` also says what to do."""
        path = self.path if self.path.rpartition("/")[2] == keyword else f"{self.path}/{keyword}"
        return GrammarUnsupported(
            f"no grammar can hold an output to {keyword!r} at {path}: {why}", path=path, keyword=keyword
        )


class Scope(Protocol):
    """The compilation that is under way, as its parts see it."""

    @property
    def bounds(self) -> Bounds:
        """How far open ends go."""
        ...

    def compile(self, schema: Any, at: At) -> Expr:
        """What follows a schema, as an expression."""
        ...

    def rule(self, name: str, expr: Expr) -> Expr:
        """A reference to a rule that says this; an equal one is found again, what is short stays itself."""
        ...

    def any_value(self, at: At) -> Expr:
        """Any JSON value, nested as far as there is room."""
        ...

    def accepts(self, schema: Any, value: Any) -> bool:
        """Whether a value follows a schema of this document."""
        ...

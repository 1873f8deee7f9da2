"""What a template is once it is read: a tree of plain structs."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct


class Path(Struct, frozen=True):
    """Which value: `.Name`, `.A.B`, `.` (what a range or a with is at), `$.Name` (from the top).

    `at` is where it stands in the text.
    """

    fields: tuple[str, ...]
    at: int
    from_top: bool = False

    def __str__(self) -> str:
        start = "$" if self.from_top else ""
        return start + ("".join([f".{name}" for name in self.fields]) or "." * (not start))


class Literal(Struct, frozen=True):
    """Text that stands as it is."""

    text: str


class Value(Struct, frozen=True):
    """The value of a path, as text."""

    path: Path


class Arm(Struct, frozen=True):
    """What stands there if a value is not empty."""

    path: Path
    body: tuple[Node, ...]


class If(Struct, frozen=True):
    """The first arm that holds, or else the rest."""

    arms: tuple[Arm, ...]
    otherwise: tuple[Node, ...] = ()


class With(Struct, frozen=True):
    """The body at a value, if that is not empty; or else the rest, where one was."""

    arm: Arm
    otherwise: tuple[Node, ...] = ()


class Range(Struct, frozen=True):
    """The body at each item of a value; the rest where there is none."""

    arm: Arm
    otherwise: tuple[Node, ...] = ()


Node: TypeAlias = Literal | Value | If | With | Range


def variables(nodes: tuple[Node, ...]) -> tuple[str, ...]:
    """The names that are looked up from the top, in the order in which they first stand there."""
    found: dict[str, None] = {}
    _collect(nodes, found, at_top=True)
    return tuple(found)


def _collect(nodes: tuple[Node, ...], found: dict[str, None], *, at_top: bool) -> None:
    for node in nodes:
        if isinstance(node, Value):
            _note(node.path, found, at_top=at_top)
        elif isinstance(node, If):
            for arm in node.arms:
                _note(arm.path, found, at_top=at_top)
                _collect(arm.body, found, at_top=at_top)
            _collect(node.otherwise, found, at_top=at_top)
        elif isinstance(node, With | Range):
            path = node.arm.path
            _note(path, found, at_top=at_top)
            still_at_top = (at_top or path.from_top) and not path.fields
            _collect(node.arm.body, found, at_top=still_at_top)
            _collect(node.otherwise, found, at_top=at_top)


def _note(path: Path, found: dict[str, None], *, at_top: bool) -> None:
    if path.fields and (at_top or path.from_top):
        found[path.fields[0]] = None
